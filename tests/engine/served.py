"""A Spark Connect server on this machine, from the environment of a target's client."""

import socket
from collections.abc import Sequence
from pathlib import Path

from tests.engine.processes import Processes

TOKEN = "sesame-4711"


class Served:
    """One server at one port, that opens to ``TOKEN`` only (before 4.0 to anybody); ``close`` ends it.

    ``jars``: the server itself, where the environment has none (before 4.0); ``variables``: of its process.

    https://spark.apache.org/docs/latest/spark-connect-overview.html
    """

    def __init__(self, environment, folder: Path, jars: Sequence[Path] = (), **variables: str) -> None:
        self._jars = jars
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._processes = Processes(folder, environment.environ() | {"SPARK_LOCAL_IP": "127.0.0.1"} | variables)
        self._submit = str(environment.spark_home / "bin" / "spark-submit")
        self.start()

    @property
    def address(self) -> str:
        return f"sc://localhost:{self._port}"

    @property
    def url(self) -> str:
        """With what opens it."""
        return f"{self.address}/;token={TOKEN}"

    def start(self, token: str = TOKEN) -> None:
        settings = {
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.ui.enabled": "false",
            "spark.driver.memory": "1g",
            # A Python worker of a busy machine may take longer than 15 s to come up.
            "spark.python.authenticate.socketTimeout": "120s",
        }
        self._processes.start(
            "server",
            [
                *(self._submit, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *("--master", "local[2]", "--name", "Spark-Connect"),
                *(("--jars", ",".join(map(str, self._jars))) if self._jars else ()),
                *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
                "spark-internal",
            ],
            until=r"(Spark Connect server started at)",
            SPARK_CONNECT_AUTHENTICATE_TOKEN=token,
        )

    def kill(self) -> None:
        self._processes.kill("server")

    def close(self) -> None:
        self._processes.close()
