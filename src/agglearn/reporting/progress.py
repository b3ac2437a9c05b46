"""Progress of a run in few lines: finished jobs of each source, and every job that fails.

`snakemake --logger=agglearn` prints these lines in place of Snakemake's own, which are in its log file.
They are plain lines, so that a terminal, a pipe and a file show the same.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from agglearn.reporting.numbers import duration_text
from agglearn.reporting.run_summary import error_in
from agglearn.workflow.plan import Plan

MIN_INTERVAL = 20.0  # seconds between two lines of progress, later a tenth of the elapsed time
SURPLUS = (
    "RuleException:",
    "At least one job did not complete successfully",
    "Shutting down, this might take some time",
    "Exiting because",
)


@dataclass
class SourceJobs:
    """Jobs of one source: their number, and how many of them are done."""

    jobs: int = 0
    done: int = 0
    announced: bool = False  # whether a line has reported its page, or its end


@dataclass
class Progress:
    """Progress of each source of a plan."""

    plan: Plan
    jobs: Iterable
    clock: Callable[[], float] = time.monotonic
    by_source: dict[str, SourceJobs] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.by_source = {name: SourceJobs() for name in self.plan.sources()}
        self._jobs: dict[int, tuple[str, bool]] = {}
        jobs = list(self.jobs)
        self._experiments = {dict(job.wildcards.items()).get("experiment") for job in jobs} & set(self.plan.experiments)
        for job in jobs:
            source = self.source_of(job.wildcards)
            if source is not None:
                self._jobs[job.jobid] = source, "source" in dict(job.wildcards.items())
                self.by_source[source].jobs += 1
        self._start = self._last = self.clock()

    def source_of(self, wildcards: Mapping[str, str]) -> str | None:
        """Source of a job. For a data set, the first source that needs it, of those that have experiments to run if there are any."""
        values = dict(wildcards.items())
        if (name := values.get("experiment", values.get("target"))) in self.plan.experiments:
            return self.plan.experiments[name]["source"]
        if (dataset := values.get("dataset")) is not None:
            names = {n for n, e in self.plan.experiments.items() if dataset in e["datasets"]}
            users = {self.plan.experiments[n]["source"] for n in names & self._experiments or names}
            return next((s for s in self.plan.sources() if s in users), None)
        return next((v for v in (values.get("source"), values.get("target")) if v in self.by_source), None)

    def finish(self, jobid: int) -> str | None:
        """Record that a job is done, and return a line where its source has its page, is done, or has had none for long."""
        if jobid not in self._jobs:
            return None
        source, is_page = self._jobs.pop(jobid)
        own, now = self.by_source[source], self.clock()
        own.done += 1
        passed = now - self._start
        ends = is_page or own.done == own.jobs
        if ends and not own.announced:
            own.announced = True
            page = f": {self.plan.config['scale_folder']}/site/{source}.html" if is_page else ""
            line = f"done {duration_text(passed)} after the start{page}"
        elif now - self._last >= max(MIN_INTERVAL, passed / 10):
            line = f"{own.done} of {own.jobs} jobs"
        else:
            return None
        self._last = now
        return f"{source:<{max(map(len, self.by_source))}}  {line}"


class LogHandler(LogHandlerBase):
    """Snakemake's events as lines of progress on standard error."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.progress: Progress | None = None

    def emit(self, record: Any) -> None:
        """Print the lines of one record."""
        for line in self.lines(record):
            print(f"agglearn: {line}", file=sys.stderr, flush=True)

    def lines(self, record: Any) -> list[str]:
        """Lines for a record of Snakemake. Most records have none."""
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
    """Whether a message repeats that some job failed, which has a line of its own."""
    return not text or any(words in text for words in SURPLUS)


def start(handlers: list, plan: Plan, jobs: Iterable) -> None:
    """Give the handlers of a run its plan and jobs, and print a summary."""
    for handler in handlers:
        if isinstance(handler, LogHandler):
            handler.progress = Progress(plan, jobs)
            print(f"agglearn: {summary(handler.progress)}", file=sys.stderr, flush=True)


def summary(progress: Progress) -> str:
    """The jobs to run, in one line."""
    jobs = sum(own.jobs for own in progress.by_source.values())
    named = ", ".join(f"{name} ({own.jobs})" for name, own in progress.by_source.items() if own.jobs)
    return f"{jobs} jobs: {named}"
