"""An experiment whose results are reported: two methods on two data sets."""

EXPERIMENT = {
    "title": "T & U_1",
    "datasets": {"a": {}, "b": {}},
    "methods": {"ours": {"name": "Ours"}, "base": {}},
    "measures": ["nllh"],
    "reported": [],
}
