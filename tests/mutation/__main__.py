"""Plant bugs in copies of the project, one at a time, and run the tests that run the changed line.

    make mutants SAMPLE=200
    make mutants ARGS=--kinds

The first draws changes of syntax at random, the second plants the bugs of `kinds.toml`. The work is resumed where it
stopped: `.mutants/results.jsonl` holds one line per change and text of its module.
"""

import argparse
import compileall
import hashlib
import json
import py_compile
import shutil
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from mutation.coverage import END_TO_END, TestsByLine
from mutation.kinds import Edit, read_edits
from mutation.sites import ROOT, Mutant, equivalents, reason_of_equivalence, sample, source_files

Change = Mutant | Edit
FOLDER = ROOT / ".mutants"
WANTED = 0.95
SECONDS = 60  # of quick tests before whole files are run
FEW = 6  # of them that are tried first
FILES = 8  # that are run whole


def main() -> int:
    """Exit status 1 where fewer than 95 % of the changes that are not equivalent fail a test."""
    arguments = parse_arguments()
    chosen, absent = read_edits() if arguments.kinds else (sample(arguments.sample, arguments.seed, source_files()), [])
    store = Store(FOLDER / "results.jsonl")
    accepted = equivalents()
    done = ("killed", "survived", *(["open"] if arguments.quick else []))
    open_ = [
        m for m in chosen if not (store.get(m) or "").startswith(done) and reason_of_equivalence(m, accepted) is None
    ]
    print(f"{len(chosen)} changes, {len(chosen) - len(open_)} judged before or equivalent", flush=True)
    judge_all(open_, store, arguments.workers, arguments.quick)
    status = report(chosen, store, accepted)
    print("".join(f"not planted: {line}\n" for line in absent), end="")
    return 1 if absent else status


def parse_arguments() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Mutation testing of src/agglearn")
    parser.add_argument("--sample", type=int, default=200, help="number of changes")
    parser.add_argument("--kinds", action="store_true", help="the bugs of kinds.toml in place of a sample")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--workers", type=int, default=2, help="changes that are tested at the same time")
    parser.add_argument("--quick", action="store_true", help="quick tests only: what they let pass stays open")
    return parser.parse_args()


class Store:
    """Outcomes by change and content of the changed module, kept in a file."""

    def __init__(self, path: Path):
        self.path, self.lock = path, threading.Lock()
        lines = path.read_text().splitlines() if path.is_file() else []
        self.outcomes = {entry["key"]: entry["outcome"] for entry in map(json.loads, lines)}

    def get(self, mutant: Change) -> str | None:
        """`killed: TEST`, `survived`, `open` after quick tests only, or None for a change that was not tested."""
        return self.outcomes.get(key_of(mutant))

    def put(self, mutant: Change, outcome: str) -> None:
        """Keep an outcome at once."""
        with self.lock, self.path.open("a") as file:
            file.write(json.dumps({"key": key_of(mutant), "outcome": outcome}) + "\n")
            self.outcomes[key_of(mutant)] = outcome


def key_of(mutant: Change) -> str:
    """Name of a change: another text of the module makes it another change."""
    text = (ROOT / mutant.path).read_text()
    return hashlib.sha256(repr((mutant, text)).encode()).hexdigest()[:20]


class Copy:
    """A copy of the project, and the process that runs its tests."""

    def __init__(self, folder: Path):
        self.folder = folder
        # by default Python reads what it compiled of a source of the same second and size: of another bug
        compileall.compile_dir(folder, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        self.runner = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("runner.py")],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def first_failure(self, tests: list[str], seconds: float) -> str | None:
        """Name of the first test that fails, see `runner`."""
        self.runner.stdin.write(json.dumps({"tests": tests, "seconds": seconds}) + "\n")
        self.runner.stdin.flush()
        if not (answer := self.runner.stdout.readline()):
            sys.exit(f"{self.folder}: the process that runs tests has ended")
        return json.loads(answer)["failed"]

    def close(self) -> None:
        """End the process."""
        self.runner.communicate()


def judge_all(mutants: list[Change], store: Store, workers: int, quick: bool) -> None:
    """Test changes side by side, each worker in a copy of the project."""
    if not mutants:
        return
    tests, copies = TestsByLine.read(FOLDER, ROOT), SimpleQueue()
    made = [Copy(copy_project(FOLDER / f"copy-{worker}")) for worker in range(workers)]
    for copy in made:
        copies.put(copy)
    if not quick and (failed := made[0].first_failure(list(END_TO_END), limit(END_TO_END, tests))):
        sys.exit(f"{failed} fails without any planted bug: mend it first")

    def judge_one(mutant: Change) -> None:
        copy = copies.get()
        try:
            outcome = judge(mutant, tests, copy, quick)
        finally:
            copies.put(copy)
        store.put(mutant, outcome)
        print(f"{outcome.partition(':')[0]:9} {mutant.place}  {mutant.changed()}", flush=True)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(judge_one, mutants))
    for copy in made:
        copy.close()


def copy_project(target: Path) -> Path:
    """A fresh copy of what git tracks, with the data beside it where there are any."""
    shutil.rmtree(target, ignore_errors=True)
    for name in subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    ):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    data = FOLDER / "shared"
    if (ROOT.parent / "shared").exists() and not data.exists():
        data.symlink_to(ROOT.parent / "shared")
    return target


def judge(mutant: Change, tests: TestsByLine, copy: Copy, quick: bool = False) -> str:
    """`killed: TEST` with the first test that fails, else `survived`, or `open` where only quick tests were run."""
    with mutant.planted(copy.folder):
        quickest, later = selections(mutant, tests)
        for selection in [*quickest, *([] if quick else later)]:
            if failed := copy.first_failure(selection, limit(selection, tests)):
                return f"killed: {failed}"
    return "open" if quick and later else "survived"


def limit(selection: list[str], tests: TestsByLine) -> float:
    """Seconds after which tests are too slow: ten times what they take, and a minute for a loaded machine."""
    files = {test.partition("::")[0] for test in selection if "::" not in test}
    seconds = sum(s for t, s in tests.seconds.items() if t.partition("::")[0] in files)
    return 60 + 10 * (seconds + sum(tests.seconds.get(t, 1.0) for t in selection if "::" in t))


def selections(mutant: Change, tests: TestsByLine) -> tuple[list[list[str]], list[list[str]]]:
    """Tests in the order of trial: quick ones that run the line, a few of them first; then whole files, and workflows."""
    running, quick, total = tests.running(mutant.path, range(mutant.start[0], mutant.end[0] + 1)), [], 0.0
    for test in running:
        total += tests.seconds.get(test, 1.0)
        if total > SECONDS:
            break
        quick.append(test)
    files = list(dict.fromkeys(t.partition("::")[0] for t in running)) or tests.files_of(mutant.path)
    later = [f for f in END_TO_END if f not in files]
    return [s for s in (quick[:FEW], quick[FEW:]) if s], [s for s in (files[:FILES], later) if s]


def report(chosen: list[Change], store: Store, accepted: list[dict[str, str]]) -> int:
    """Print the share of killed changes and the survivors."""
    reasons = {m: reason_of_equivalence(m, accepted) for m in chosen}
    judged = [m for m in chosen if reasons[m] is None]
    survivors = [m for m in judged if not (store.get(m) or "").startswith("killed")]
    for mutant in survivors:
        print(f"\n{mutant.place}\n- {mutant.line()}\n+ {mutant.changed()}")
    share = 1 - len(survivors) / max(len(judged), 1)
    counts = Counter(str(Path(m.path).parent) for m in survivors)
    print(f"\n{share:.1%} of {len(judged)} changes fail a test; {len(chosen) - len(judged)} more are equivalent")
    print("survivors by folder: " + (", ".join(f"{name} {n}" for name, n in counts.most_common()) or "none"))
    return 0 if share >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
