"""A standalone cluster on this machine, from the environment of a target: a master and two workers with a core each."""

from pathlib import Path

from tests.engine.processes import Processes


class Standalone:
    """Processes of Spark's own standalone mode; ``close`` ends them all.

    https://spark.apache.org/docs/latest/spark-standalone.html#starting-a-cluster-manually
    """

    def __init__(self, environment, folder: Path, workers: int = 2) -> None:
        self._processes = Processes(
            folder, environment.environ() | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
        )
        self._spark_class = str(environment.spark_home / "bin" / "spark-class")
        self._folder, self._workers = folder, 0
        self.start_master("0")
        for _ in range(workers):
            self.add_worker()

    def start_master(self, port: str | None = None) -> None:
        """At the port of the one before, if none is given; 0: of the system's choice, which is in the log only."""
        self.master = self._start(
            "master",
            "master.Master",
            *("--port", port or self.master.rpartition(":")[2]),
            until=r"Starting Spark master at (spark://\S+)",
        )

    def add_worker(self) -> None:
        name = f"worker-{self._workers}"
        size = ("--port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / name))
        self._start(name, "worker.Worker", *size, self.master, until=r"(Successfully registered with master)")
        self._workers += 1

    def _start(self, name: str, what: str, *words: str, until: str) -> str:
        command = [self._spark_class, f"org.apache.spark.deploy.{what}", "--host", "127.0.0.1", "--webui-port", "0"]
        return self._processes.start(name, [*command, *words], until=until)

    def kill(self, worker: int) -> None:
        """SIGKILL to a worker and to the executor it has started."""
        self._processes.kill(f"worker-{worker}")

    def kill_master(self) -> None:
        self._processes.kill("master")

    def close(self) -> None:
        self._processes.close()
