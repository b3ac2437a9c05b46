"""The machines of the distributed algorithm as tasks of a Spark session (Bateni et al. 2019, theorem 5)."""

from collections.abc import Sequence

from agglearn.optional import active_session


class SparkMachines:
    """`agglearn.vocabulary.distributed.Machines` on executors: each task holds the data of one machine.

    The driver ranks the values and sends out the data once. Only arguments and cuts travel afterwards. Data that are
    lost with their executor are sent again.
    """

    def __init__(self, machines: Sequence[object]):
        context = active_session().sparkContext
        self._machines = context.parallelize(machines, len(machines)).cache()

    def map_method(self, name: str, *arguments: float) -> list:
        """Results of a method of every machine, in their order."""
        return self._machines.map(lambda machine: getattr(machine, name)(*arguments)).collect()

    def close(self) -> None:
        """Release the machines' data."""
        self._machines.unpersist()
