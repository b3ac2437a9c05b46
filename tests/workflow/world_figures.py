"""What the axes of figures hold, and what they should hold of the small world."""

import pytest
import world as w
from matplotlib.collections import FillBetweenPolyCollection

from agglearn_workflow.claims import judging
from agglearn_workflow.claims.samples import Rows
from agglearn_workflow.figures import drawing
from agglearn_workflow.plan import Plan
from agglearn_workflow.render import findings
from agglearn_workflow.tables import summary


def figures_of(plan: Plan, paths, out) -> list[list[dict]]:
    """Panels of every figure of the experiment, drawn into a file."""
    kept, experiment = [], plan.experiments["world"]
    rows = summary.load_rows(paths, plan, "world")
    with pytest.MonkeyPatch.context() as patch:
        write = drawing.from_figure
        patch.setattr(
            drawing,
            "from_figure",
            lambda f, *words: kept.append([panel(ax) for ax in f.axes if ax.axison]) or write(f, *words),
        )
        titles = {"people": plan.config["datasets"]["people"]["title"]}
        claims = judging.claims_on(plan.config.get("claims", {}), "world")
        said = experiment | {"findings": findings(claims, judging.judge_all(claims, Rows(rows)))}
        assert drawing.draw(rows, summary.summarise(rows, experiment), said, titles, out) == []
    return kept


def panel(ax) -> dict:
    """The drawn data of a panel, as numbers."""
    dots = [(round(float(y)), float(x)) for bars in ax.containers for x, y in zip(*bars[0].get_data(), strict=True)]
    whiskers = [ends for bars in ax.containers for ends in bars[2][0].get_segments()]
    return {
        "title": ax.get_title(loc="left").replace("\n", " "),
        "y_limits": ax.get_ylim(),
        "axis": (ax.get_xlabel(), ax.get_ylabel()),
        "ticks": [text.get_text() for text in ax.get_yticklabels()],
        "x_ticks": [text.get_text() for text in ax.get_xticklabels()],
        "dots": dict(dots),
        "whiskers": {round(float(ends[0][1])): (float(ends[0][0]), float(ends[1][0])) for ends in whiskers},
        "printed": [(float(x), round(float(y))) for line in ax.lines if line.get_marker() == "D" for x, y in zip(*line.get_data(), strict=True)],
        "lines": {line.get_label(): list(zip(*map(list, line.get_data()), strict=True)) for line in ax.lines if line.get_label()[:1] != "_"},
        "bands": [band.get_paths()[0].vertices.tolist() for band in ax.collections if isinstance(band, FillBetweenPolyCollection)],
    }  # fmt: skip


def check_means(found: dict, expected: dict[str, list]) -> None:
    """Lines through means, and bands from low to high, of some labels."""
    assert set(found["lines"]) == set(expected)
    for label, points in expected.items():
        assert found["lines"][label] == [(x, pytest.approx(e.mean)) for x, e in points]
    bands = [
        {(x, end) for x, e in points for end in (e.low, e.high)} for points in expected.values() if len(points) > 1
    ]
    assert len(found["bands"]) == len(bands)
    for band in bands:
        assert any(
            all(any(v == pytest.approx(point) for v in vertices) for point in band)
            and all(any(v == pytest.approx(point) for point in band) for v in vertices)
            for vertices in found["bands"]
        )


def labelled(method: str, prior, size=None) -> str:
    """Label of a method, its prior and its size."""
    parts = [w.METHOD_NAMES.get(method, method), prior and f"prior {prior:g}", size and f"rows {size}"]
    return ", ".join(filter(None, parts))


def with_result(world: w.World) -> list[tuple]:
    """Cells with a result of some seed, in the order of the summary."""
    return [c for c in world.cells if any(world.values[(*c, seed)] for seed in w.SEEDS)]


def check_dots(panels: list[dict], world: w.World) -> None:
    """A dot, an interval and a printed number for each cell."""
    [found] = panels
    assert found["title"] == w.ENTRY["title"]
    assert found["axis"][0] == "NLLH"
    assert sorted(found["ticks"]) == sorted(labelled(*c) for c in with_result(world))
    printed = {}
    for method, prior, size in with_result(world):
        y, estimate = (
            found["ticks"].index(labelled(method, prior, size)),
            w.cell(world, method, prior, size, "nllh").estimate,
        )
        assert found["dots"][y] == pytest.approx(estimate.mean)
        assert found["whiskers"][y] == pytest.approx((estimate.low, estimate.high))
        if entry := w.printed_for(method, prior, size, "nllh"):
            printed[y] = entry["value"]
    assert {y: x for x, y in found["printed"]} == pytest.approx(printed)
    assert len(found["dots"]) == len(found["ticks"])


def check_curves(panels: list[dict], world: w.World) -> None:
    """Means over stages, by size."""
    assert [p["title"] for p in panels] == [f"rows {size}" for size in w.SIZES]
    assert len({p["y_limits"] for p in panels}) == 1  # one axis for one measure
    for found, size in zip(panels, w.SIZES, strict=True):
        cells = [c for c in with_result(world) if c[2] == size]
        expected = {
            labelled(*c[:2]): [(k / 8, w.Estimate.of(world.seeds(*c, "nllh", step=k))) for k in w.STAGES] for c in cells
        }
        check_means(found, expected)
    assert panels[0]["axis"] == ("iteration", "NLLH")


def check_lines(panels: list[dict], world: w.World) -> None:
    """Means over priors, by size, and the level of methods without one."""
    assert [p["title"] for p in panels] == [f"rows {size}" for size in w.SIZES]
    assert len({p["y_limits"] for p in panels}) == 1  # one axis for one measure
    for found, size in zip(panels, w.SIZES, strict=True):
        assert found["x_ticks"] == ["1", "8", "none"]
        rates = [(p, w.cell(world, "rates", p, size, "nllh").estimate) for p in (1.0, 8.0)]
        level = found["lines"].pop("base")
        assert [y for _, y in level] == pytest.approx([w.cell(world, "base", None, size, "nllh").estimate.mean] * 2)
        if exacting := w.cell(world, "exacting", None, size, "nllh").estimate:
            assert found["lines"].pop("exacting")[0][1] == pytest.approx(exacting.mean)
        check_means(found, {"Rates & 5 %": rates})
        assert found["axis"][0] == "prior"


def check_scatter_against_a_method(panels: list[dict], world: w.World) -> None:
    """Points at the baseline's mean and the method's, by size and colour."""
    named = {p["title"]: p for p in panels}
    assert set(named) == {f"rows {size}, colour {colour}" for size in w.SIZES for colour in w.COLOURS}
    for size in w.SIZES:
        for colour in w.COLOURS:
            found, keys = named[f"rows {size}, colour {colour}"]["lines"], w.colour_keys(colour)
            x = w.cell(world, "base", None, size, "right", keys).estimate.mean
            expected = {
                labelled(*c[:2]): [(x, w.cell(world, *c, "right", keys).estimate.mean)]
                for c in with_result(world) if c[2] == size and c[0] != "base"
            }  # fmt: skip
            assert {k: v for k, v in found.items() if v} == {
                k: [pytest.approx(p) for p in v] for k, v in expected.items()
            }


def check_scatter_against_a_measure(panels: list[dict], world: w.World) -> None:
    """Points at the true flow and the found one of every leg."""
    [found] = panels
    assert found["axis"] == ("true flow", "flow")
    assert set(found["lines"]) == {labelled(*c) for c in with_result(world)}
    for c in with_result(world):
        expected = [
            tuple(w.cell(world, *c, m, w.leg_keys(leg)).estimate.mean for m in ("true_flow", "flow")) for leg in w.LEGS
        ]  # a line joins few points, from the left to the right
        assert found["lines"][labelled(*c)] == [pytest.approx(p) for p in sorted(expected)]
