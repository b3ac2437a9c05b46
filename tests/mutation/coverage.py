"""Which tests run which line: from the coverage of one run of the suite, with a context per test."""

import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from coverage import CoverageData

# What reads a line in a process of its own has no context of a test. These files run the workflow from end to end.
END_TO_END = ("tests/workflow/test_world.py", "tests/workflow/test_workflow.py", "tests/workflow/test_results.py")


@dataclass(frozen=True, eq=False)
class TestsByLine:
    """Tests by the line that they run, with the seconds that each took."""

    data: CoverageData
    root: Path
    seconds: dict[str, float]

    @classmethod
    def read(cls, folder: Path, root: Path) -> "TestsByLine":
        """From the folder of `make coverage`: its database and its times."""
        data = CoverageData(str(folder / "coverage"))
        data.read()
        return cls(data, root, read_seconds(folder / "times.xml"))

    @lru_cache(maxsize=512)  # noqa: B019 - one object per run of the program
    def _contexts(self, path: str) -> dict[int, list[str]]:
        return self.data.contexts_by_lineno(str(self.root / path))

    def running(self, path: str, lines: range) -> list[str]:
        """Tests that run one of the lines in their own process, quickest first; none where the module was edited since.

        A line that runs when the module is imported belongs to no test: then tests of all its lines.
        """
        if (self.root / path).stat().st_mtime > Path(self.data.base_filename()).stat().st_mtime:
            return []
        contexts = self._contexts(path)
        found = {name_of_test(c) for line in lines for c in contexts.get(line, []) if c}
        found = found or {name_of_test(c) for tests in contexts.values() for c in tests if c}
        return sorted(found, key=lambda test: (self.seconds.get(test, 1.0), test))

    def files_of(self, path: str) -> list[str]:
        """Test files that run any line of a module, those with most tests of it first."""
        tests = defaultdict(set)
        for contexts in self._contexts(path).values():
            for test in {name_of_test(c) for c in contexts if c}:
                tests[test.partition("::")[0]].add(test)
        return sorted(tests, key=lambda file: -len(tests[file]))


def name_of_test(context: str) -> str:
    """Name of the test of a context, `name|phase`; names of parameters may hold the same sign."""
    return context.rpartition("|")[0]


def read_seconds(path: Path) -> dict[str, float]:
    """Seconds of each test, by its name as pytest prints it."""
    seconds = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        file = case.get("classname", "").replace(".", "/") + ".py"
        seconds[f"{file}::{case.get('name')}"] = float(case.get("time", 0))
    return seconds
