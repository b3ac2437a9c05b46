"""A method in a module of its own, so that an edit of it concerns no other method."""

from ledger import Rates


class Drawn(Rates):
    """Rates that are drawn towards `pull`."""

    pull = 0.5
