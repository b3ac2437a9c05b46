"""Lines of progress: one per source and now and then one between, from the events of a run."""

import logging
from types import SimpleNamespace

import pytest
from agglearn.reporting.progress import LogHandler, Progress, start
from snakemake.iocontainers import Wildcards
from snakemake_interface_logger_plugins.common import LogEvent

from agglearn.reporting import progress
from agglearn.reporting.numbers import duration_text
from agglearn.workflow import config as configuration
from agglearn.workflow.plan import Plan


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def jobs_of(plan):
    """A job per batch and a table per experiment, as the workflow has them, and one that belongs to no source."""
    wildcards = [
        *({"experiment": e, "batch": b} for e in plan.experiments for b in plan.batches(e)),
        *({"experiment": e} for e in plan.experiments),
        *({"source": s} for s in plan.sources()),
        {},
    ]
    return [SimpleNamespace(jobid=i, wildcards=Wildcards(fromdict=w)) for i, w in enumerate(wildcards)]


@pytest.fixture
def plan(project):
    project.path("experiments/other").write_text("extends: trial\nsource: vocabulary\nbudget: 80\n")
    project.edit("experiments/trial", lambda e: e.update(budget=20, batch_by=["dataset", "method"]))
    return Plan(configuration.load(project.base, {"run": ["other", "trial"]}) | {"scale_folder": "results"})


@pytest.fixture
def run(plan):
    clock = Clock()
    return Progress(plan, jobs_of(plan), clock), clock


def test_every_source_ends_with_a_line(plan, run):
    tracked, clock = run
    lines = []
    for job in jobs_of(plan):
        clock.now += 0.1
        lines.append(tracked.finish(job.jobid))
    said = [line for line in lines if line]
    assert sorted(line.split()[0] for line in said) == ["maxent", "vocabulary"]
    assert all(line.endswith(f"done 1 s after the start: results/site/{line.split()[0]}.html") for line in said)


def test_a_line_between_states_no_time_left(plan, run):
    tracked, clock = run
    slow = [i for i, j in enumerate(jobs_of(plan)) if dict(j.wildcards.items()).get("experiment") == "other"]
    clock.now = 60.0
    assert tracked.finish(slow[0]) == "vocabulary  1 of 6 jobs"


def test_lines_are_few_however_long_it_takes(plan):
    clock, jobs = (
        Clock(),
        [SimpleNamespace(jobid=i, wildcards=Wildcards(fromdict={"experiment": "trial"})) for i in range(20000)],
    )
    tracked = Progress(plan, jobs, clock)
    lines = 0
    for job in jobs:
        clock.now += 2.0
        lines += tracked.finish(job.jobid) is not None
    assert 20 < lines < 90  # eleven hours


def test_a_data_set_belongs_to_the_first_source_that_needs_it(plan, run):
    tracked, _ = run
    assert tracked.source_of({"dataset": "fair"}) == "maxent"
    assert tracked.source_of({"target": "vocabulary"}) == tracked.source_of({"experiment": "other"}) == "vocabulary"
    assert tracked.source_of({"target": "all"}) is None


def test_the_data_of_one_experiment_belong_to_its_source(plan):
    dataset = next(iter(plan.experiments["other"]["datasets"]))
    fetching, fitting = {"dataset": dataset}, {"experiment": "other", "batch": next(iter(plan.batches("other")))}
    jobs = [SimpleNamespace(jobid=k, wildcards=Wildcards(fromdict=w)) for k, w in enumerate([fetching, fitting])]
    assert {name: own.jobs for name, own in Progress(plan, jobs).by_source.items()} == {"maxent": 0, "vocabulary": 2}
    assert {name: own.jobs for name, own in Progress(plan, jobs[:1]).by_source.items()} == {
        "maxent": 1,
        "vocabulary": 0,
    }


def record(level=logging.INFO, text=None, **extra):
    made = logging.LogRecord("snakemake", level, "", 0, text, None, None)
    vars(made).update(extra)
    return made


@pytest.fixture
def handler():
    return LogHandler(SimpleNamespace(dryrun=False), None)


def test_what_is_printed_of_a_run(plan, handler, capsys):
    start([logging.NullHandler(), handler], plan, jobs_of(plan))
    assert capsys.readouterr().err == "agglearn: 12 jobs: maxent (6), vocabulary (6)\n"
    assert handler.lines(record(text="Execute 1 jobs...")) == []
    error = {"event": LogEvent.JOB_ERROR, "rule_name": "fit", "log": ["results/logs/fit/trial/a.log"]}
    assert handler.lines(record(logging.ERROR, "Error in rule fit, jobid: 3", **error)) == [
        "error in fit: see results/logs/fit/trial/a.log"
    ]
    assert handler.lines(record(logging.ERROR, "WorkflowError:\nAt least one job did not complete successfully.")) == []
    ended = (
        "RuleException:\nCalledProcessError in file \"rules/fit.smk\", line 21:\nCommand 'python stage.py' returned 1."
    )
    assert handler.lines(record(logging.ERROR, ended)) == []
    assert handler.lines(record(logging.ERROR, "SyntaxError in file Snakefile")) == ["SyntaxError in file Snakefile"]
    assert handler.lines(record(text="Nothing to be done (all requested files are present and up to date).")) != []
    for job in jobs_of(plan):
        handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=job.jobid))
    assert capsys.readouterr().err.count("\n") == 2


def test_before_it_begins_and_in_a_dry_run(handler):
    assert handler.lines(record(event=LogEvent.JOB_FINISHED, job_id=1)) == []
    handler.common_settings.dryrun = True
    assert handler.lines(record(text="Job stats:\njob count")) == ["Job stats:", "job count"]


def test_snakemake_finds_the_plugin():
    from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

    assert LoggerPluginRegistry().get_plugin("agglearn").log_handler is progress.LogHandler


def test_a_source_has_its_page_before_timed_fits_are_done(plan):
    jobs = [
        SimpleNamespace(jobid=0, wildcards=Wildcards(fromdict={"source": "maxent"})),
        SimpleNamespace(jobid=1, wildcards=Wildcards(fromdict={"experiment": "trial"})),
    ]
    tracked = Progress(plan, jobs, Clock())
    assert tracked.finish(0) == "maxent      done 0 s after the start: results/site/maxent.html"
    assert tracked.finish(1) is None  # one such line per source


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (89, "89 s"), (91, "2 min"), (5340, "89 min"), (5400, "1 h 30 min"), (10740, "2 h 59 min")],
)
def test_durations(seconds, words):
    assert duration_text(seconds) == words
