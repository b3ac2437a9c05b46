"""The machines of the distributed vocabulary compression as tasks of a Spark session (Bateni et al. 2019, theorem 5)."""

from agglearn.optional import active_session


class SparkMachines:
    """What `agglearn.vocabulary.distributed.Machines` is, on executors: each task holds one machine's part.

    The driver ranks the values and hands out the parts once; questions and cuts are all that travels afterwards. A part
    that is lost with its executor is handed out again.
    """

    def __init__(self, machines: list):
        context = active_session().sparkContext
        self._held = context.parallelize(machines, len(machines)).cache()

    def ask(self, question: str, *arguments) -> list:
        """What every machine answers, in their order."""
        return self._held.map(lambda machine: getattr(machine, question)(*arguments)).collect()

    def close(self) -> None:
        """Let the parts go."""
        self._held.unpersist()
