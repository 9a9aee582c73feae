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
        spark_class = str(environment.spark_home / "bin" / "spark-class")
        # A port of the system's choice is in the log only.
        address = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.master = self._processes.start(
            "master",
            [spark_class, "org.apache.spark.deploy.master.Master", *address],
            until=r"Starting Spark master at (spark://\S+)",
        )
        self._worker = [
            spark_class,
            "org.apache.spark.deploy.worker.Worker",
            *address,
            "--cores",
            "1",
            "--memory",
            "1g",
        ]
        self._folder, self._workers = folder, 0
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        name = f"worker-{self._workers}"
        self._processes.start(
            name,
            [*self._worker, "--work-dir", str(self._folder / name), self.master],
            until=r"(Successfully registered with master)",
        )
        self._workers += 1

    def kill(self, worker: int) -> None:
        """SIGKILL to a worker and to the executor it has started."""
        self._processes.kill(f"worker-{worker}")

    def kill_master(self) -> None:
        self._processes.kill("master")

    def close(self) -> None:
        self._processes.close()
