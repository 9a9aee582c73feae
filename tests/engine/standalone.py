"""A standalone cluster on this machine, from the environment of a target: a master and two workers with a core each."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

START_S = 60


class Standalone:
    """Processes of Spark's own standalone mode; ``close`` ends them all.

    https://spark.apache.org/docs/latest/spark-standalone.html#starting-a-cluster-manually
    """

    def __init__(self, environment, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        self._variables = environment.environ() | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
        self._class = environment.spark_home / "bin" / "spark-class"
        self._processes: list[subprocess.Popen[bytes]] = []
        # A port of the system's choice is in the log only.
        self._start(
            "master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
        )
        self.master = self._said("master", r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            name = f"worker-{number}"
            self._start(
                name,
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"),
                *("--work-dir", str(folder / name), self.master),
            )
            self._said(name, r"(Successfully registered with master)")
        self.workers = self._processes[1:]

    def kill(self, worker: int) -> None:
        """SIGKILL to a worker and to the executor it has started."""
        os.killpg(self.workers[worker].pid, signal.SIGKILL)
        self.workers[worker].wait()

    def close(self) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, name: str, *command: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(self._class), *command],
                    env=self._variables,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def _said(self, name: str, pattern: str) -> str:
        log = self._folder / f"{name}.log"
        begun = time.monotonic()
        while time.monotonic() - begun < START_S:
            if found := re.search(pattern, log.read_text(errors="replace")):
                return found[1]
            time.sleep(0.1)
        self.close()
        raise AssertionError(f"{name} did not come up:\n{log.read_text(errors='replace')[-2000:]}")
