"""Progress of a run in few lines: how far each source is, how long it takes, and every job that fails.

`snakemake --logger agglearn` prints these lines in place of Snakemake's own, which stay whole in its log file.
They are plain lines, so that a terminal, a pipe and a file show the same.
"""

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from agglearn.reporting.run_summary import error_in
from agglearn.workflow.plan import Plan

SHORTEST_GAP = 20.0  # seconds between two lines of progress; later a tenth of the time that has passed
SURE_AFTER = 10.0  # seconds after which the time left is estimated
OVERHEAD = 1.0  # work of any job, in the seconds of an experiment's budget
TRUSTED = 60.0  # seconds for which the budgets alone tell the speed; the first jobs, which compile, would mislead
SURPLUS = (
    "RuleException:",
    "At least one job did not complete successfully",
    "Shutting down, this might take some time",
    "Exiting because",
)


@dataclass
class Part:
    """Jobs of one source: how many, how much work they are, and what of both is done."""

    jobs: int = 0
    work: float = 0.0
    done: int = 0
    worked: float = 0.0
    announced: bool = False  # whether a line has named its page, or that it is done


@dataclass
class Progress:
    """How far each source of a plan is.

    Parameters
    ----------
    plan : the plan, with the sources in their order.
    jobs : what is to run: objects with `jobid`, `rule` and `wildcards`.
    clock : seconds; only differences count.
    """

    plan: Plan
    jobs: Iterable
    clock: Callable[[], float] = time.monotonic
    parts: dict[str, Part] = field(default_factory=dict, init=False)

    def __post_init__(self):
        self.parts = {name: Part() for name in self.plan.sources()}
        self._jobs = {}
        for job in self.jobs:
            source = self.source_of(job.wildcards)
            if source is not None:
                self._jobs[job.jobid] = source, self.work_of(job.wildcards), "source" in dict(job.wildcards.items())
                self.parts[source].jobs += 1
                self.parts[source].work += self.work_of(job.wildcards)
        self._start = self._last = self.clock()

    def source_of(self, wildcards) -> str | None:
        """Source that a job belongs to; of a data set, the first that needs it."""
        values = dict(wildcards.items())
        if (name := values.get("experiment", values.get("target"))) in self.plan.experiments:
            return self.plan.experiments[name]["source"]
        if (dataset := values.get("dataset")) is not None:
            users = {e["source"] for e in self.plan.experiments.values() if dataset in e["datasets"]}
            return next((s for s in self.plan.sources() if s in users), None)
        return next((v for v in (values.get("source"), values.get("target")) if v in self.parts), None)

    def work_of(self, wildcards) -> float:
        """Work of a job: the share of its runs in the budget of the experiment, and what any job takes."""
        values = dict(wildcards.items())
        if "batch" not in values:
            return OVERHEAD
        name = values["experiment"]
        share = len(self.plan.runs(name, values["batch"])) / len(self.plan.runs(name))
        return OVERHEAD + share * self.plan.experiments[name].get("budget", 0)

    def finish(self, jobid: int) -> str | None:
        """Note that a job is done; a line when its source has its page or is done, or when it is time for one."""
        if jobid not in self._jobs:
            return None
        source, work, is_page = self._jobs.pop(jobid)
        part, now = self.parts[source], self.clock()
        part.done += 1
        part.worked += work
        passed = now - self._start
        ends = is_page or part.done == part.jobs
        if ends and not part.announced:
            part.announced = True
            page = f": {self.plan.config['scale_folder']}/site/{source}.html" if is_page else ""
            line = f"done {duration(passed)} after the start{page}"
        elif now - self._last >= max(SHORTEST_GAP, passed / 10):
            line = f"{part.done} of {part.jobs} jobs{self._left(part, passed)}"
        else:
            return None
        self._last = now
        return f"{source:<{max(map(len, self.parts))}}  {line}"

    def _left(self, part: Part, passed: float) -> str:
        """Time left for a source: its work that is left, at the speed of everything so far and of a second per second before."""
        speed = (sum(p.worked for p in self.parts.values()) + TRUSTED) / (passed + TRUSTED)
        return f", about {duration((part.work - part.worked) / speed)} left" if passed >= SURE_AFTER else ""


def duration(seconds: float) -> str:
    """Seconds in words: `40 s`, `3 min`, `2 h 5 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class LogHandler(LogHandlerBase):
    """Snakemake's events as lines of progress on standard error."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.progress: Progress | None = None

    def emit(self, record) -> None:
        """Print what a reader of progress needs of one record."""
        for line in self.lines(record):
            print(f"agglearn: {line}", file=sys.stderr, flush=True)

    def lines(self, record) -> list[str]:
        """Lines for a record; most have none."""
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_FINISHED and self.progress:
            line = self.progress.finish(record.job_id)
            return [line] if line else []
        if event == LogEvent.JOB_ERROR:
            if any(map(error_in, record.log)):
                return []  # the job has printed it
            return [f"error in {record.rule_name}: see {', '.join(map(str, record.log)) or 'the whole log'}"]
        text = (record.getMessage() or "").strip()
        if self.common_settings.dryrun or (record.levelname in ("ERROR", "CRITICAL") and not text_is_surplus(text)):
            return text.splitlines()
        return [text] if text.startswith("Nothing to be done") else []


def text_is_surplus(text: str) -> bool:
    """Whether a message only repeats that some job failed, which has a line already."""
    return not text or any(words in text for words in SURPLUS)


def begin(handlers: list, plan: Plan, jobs: Iterable) -> None:
    """Tell the handlers of a run what it is about to do."""
    for handler in handlers:
        if isinstance(handler, LogHandler):
            handler.progress = Progress(plan, jobs)
            print(f"agglearn: {summary(handler.progress)}", file=sys.stderr, flush=True)


def summary(progress: Progress) -> str:
    """What is about to be done, in one line."""
    jobs = sum(part.jobs for part in progress.parts.values())
    named = ", ".join(f"{name} ({part.jobs})" for name, part in progress.parts.items() if part.jobs)
    return f"{jobs} jobs: {named}"
