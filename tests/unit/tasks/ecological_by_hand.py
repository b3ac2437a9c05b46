"""Measures of cross tables of two districts, by hand. The first lacks the third option, the second has no large cell."""

from types import SimpleNamespace

import numpy as np
from measured_by_hand import about, mean, measured

from agglearn import tasks
from agglearn.tasks import ecological

NAN = np.nan
TRUE = np.array([[[60, 20, NAN], [10, 50, NAN]], [[8, 4, 0], [2, 6, 20]]])  # 140 and 40 people
FOUND = np.array([[[55, 25, NAN], [15, 45, NAN]], [[9, 3, 0], [1, 5, 22]]])
LOW = np.array([[[50, 21, NAN], [10, 40, NAN]], [[7, 2, 0], [1, 5, 18]]])
HIGH = np.array([[[65, 30, NAN], [20, 48, NAN]], [[10, 3, 1], [3, 7, 24]]])
MINIMUM = np.array([[[30, 0, NAN], [0, 20, NAN]], [[0, 0, 0], [0, 0, 20]]])
MAXIMUM = np.array([[[80, 50, NAN], [40, 50, NAN]], [[12, 10, 2], [10, 5, 28]]])


def tabulated() -> dict:
    stub = SimpleNamespace(
        tables_=FOUND, low_=LOW, high_=HIGH, minimum_=MINIMUM, maximum_=MAXIMUM, district_names_=("north", "south"),
        group_names_=("old", "young"), vote_names_=("left", "right", "other"),
    )  # fmt: skip
    return measured(tasks.EcologicalTables, stub, ecological.CrossTables(TRUE))


def tabulated_by_hand() -> dict:
    north, south = about(district="north"), about(district="south")
    index = 50 * (5 + 5 + 5 + 5) / 140, 50 * (1 + 1 + 0 + 1 + 1 + 2) / 40
    covered = 2 / 4, 5 / 6  # not 20 and 50 of the first district, not 4 of the second; 10 is on its limit
    found = {
        ("index_of_part", north, None): index[0], ("index_of_part", south, None): index[1],
        ("coverage_of_part", north, None): covered[0], ("coverage_of_part", south, None): covered[1],
        ("index", None, None): mean(index),
        ("coverage", None, None): mean(covered),
        ("large_coverage", None, None): 1 / 2,  # of 60 and 50, both in the first district
        ("width", None, None): mean([50 * (15 + 9 + 10 + 8) / 140, 50 * (3 + 1 + 1 + 2 + 2 + 6) / 40]),
        ("inside_bounds", None, None): mean([4 / 4, 5 / 6]),  # 6 is above 5
    }  # fmt: skip
    votes = {  # estimated and true votes of both districts
        ("old", "left"): (55 + 9, 60 + 8), ("old", "right"): (25 + 3, 20 + 4), ("old", "other"): (0, 0),
        ("young", "left"): (15 + 1, 10 + 2), ("young", "right"): (45 + 5, 50 + 6), ("young", "other"): (22, 20),
    }  # fmt: skip
    for (group, option), (estimated, true) in votes.items():
        keys = about(group=group, option=option)
        found["estimated", keys, None], found["true", keys, None] = estimated, true
    return found
