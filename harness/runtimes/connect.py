"""The ``connect`` runtime: engines that run elsewhere, and are reached through Spark Connect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.core.case import Case
from conformance.core.versions import NotAVersion, SparkVersion
from harness.engine.driver_engine import DriverEngine
from harness.engine.engine import Engine, EngineDied, EngineLocation
from harness.engine.request import alters_its_checkpoint, has_operation, looks_at_plans
from harness.engine.segments import kills_its_engine
from harness.environments.provision import prepare
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes import program
from harness.runtimes.loopback import is_loopback
from harness.runtimes.storage import StorageUrl
from harness.targets.target import Target

_START_SECONDS = 180.0
_URL = re.compile(r"sc://[^\s/;]+(/?|/;\S*)")


class NotAnEndpoint(ValueError):
    """A text that is no address of a Connect server."""

    exit_code = 2

    def __init__(self) -> None:
        # The text itself may hold a token.
        super().__init__(
            "--connect takes the address of a Spark Connect server, sc://host:15002, with parameters behind /;, as in "
            "sc://host:443/;use_ssl=true;token=…; it may stand in the variable CONFORMANCE_CONNECT instead"
        )


class NoConnect(HarnessError):
    """The version has no Connect that runs streaming queries."""

    def __init__(self, target: Target) -> None:
        super().__init__(
            f"{target.name} runs no streaming query through Spark Connect. Ask for a line that has `connect` in targets.yaml: "
            "--spark newest has"
        )


class EndpointFailed(HarnessError):
    """The server does not take us in.

    Attributes:
        endpoint: its address, without parameters.
    """

    def __init__(self, endpoint: str, why: str) -> None:
        super().__init__(f"{endpoint} takes no session of ours: {why}")
        self.endpoint = endpoint


class OtherVersion(HarnessError):
    """Another Spark answers than the one that was asked for; nothing is judged by another's expectations.

    Attributes:
        spark: the version that answers, as it says itself.
    """

    def __init__(self, endpoint: str, spark: str, target: Target) -> None:
        super().__init__(f"{endpoint} is Spark {spark}, and {target.version} was asked for: --spark {_number(spark)}")
        self.spark = spark


@dataclass(frozen=True)
class Endpoint:
    """Where a Connect server listens, and what opens it."""

    url: str
    """With its parameters: the token among them is shown nowhere."""

    @classmethod
    def parse(cls, url: str) -> Endpoint:
        """
        Raises:
            NotAnEndpoint: it is no address of a Connect server.
        """
        if not _URL.fullmatch(url.strip()):
            raise NotAnEndpoint
        return cls(url.strip())

    def __repr__(self) -> str:
        return f"Endpoint({self})"

    def __str__(self) -> str:
        """``sc://host:15002``."""
        return self.url.split("/;")[0].rstrip("/")

    @property
    def on_this_machine(self) -> bool:
        """Whether it sees this machine's files."""
        return is_loopback(str(self))

    def hidden(self, text: str) -> str:
        """A text without what is secret in the address."""
        for value in self._secrets():
            text = text.replace(value, "…")
        return text

    def _secrets(self) -> Iterator[str]:
        _, _, parameters = self.url.partition("/;")
        for parameter in parameters.split(";"):
            name, _, value = parameter.partition("=")
            # `use_ssl=true` is no secret, and neither is whom one says one is.
            if value and name not in ("use_ssl", "user_id", "user_agent", "session_id"):
                yield value


class ConnectRuntime:
    """Starts a driver on this machine for each engine, as a client of the server.

    Args:
        root: a folder of this machine, which the server sees at the same path unless there is a storage.
        endpoint: the server.
        code_path: folder for modules that ``call`` names, None where the user did not allow code.
        storage: where cases have their files, as the server reaches it; None for ``root``.
    """

    name = "connect"

    def __init__(
        self, root: Path, endpoint: Endpoint, *, code_path: Path | None = None, storage: StorageUrl | None = None
    ) -> None:
        self._root = root
        self._endpoint = endpoint
        self._code_path = code_path
        self._storage = storage

    def fingerprint(self, target: Target) -> None:
        """Nobody knows what the server is made of."""

    def lacks(self, case: Case, target: Target) -> str | None:
        if kills_its_engine(case):
            return "through Connect the engine's process cannot be killed"
        if looks_at_plans(case):
            return "through Connect no plan of a micro-batch is to be had"
        for operation, ticket in target.connect_lacks:
            if has_operation(case, operation):
                return f"Connect of this version takes no `{operation}` over a stream ({ticket})"
        if self._storage is not None and alters_its_checkpoint(case):
            return "through Connect nothing of a checkpoint on another storage can be taken away or spoilt"
        return None

    def start(self, target: Target, *, on_progress: ProgressCallback) -> Engine:
        if not target.connect:
            raise NoConnect(target)
        environment = prepare(client_of(target), on_progress=on_progress)
        work = program.stage(target, self._root, "driver")
        on_progress(f"{target.name}: connecting to {self._endpoint}")
        also = {"CONFORMANCE_ENDPOINT": self._endpoint.url}
        transport = program.start("driver", environment, work, {}, None, storage=self._storage, also=also)
        try:
            engine = DriverEngine(
                transport,
                work=str(work),
                cases=f"{self._storage}/{work.name}" if self._storage else None,
                place=EngineLocation(self.name, master=str(self._endpoint)),
                code_path=str(self._code_path) if self._code_path else None,
                start_timeout=_START_SECONDS,
                hidden=self._endpoint.hidden,
            )
        except EngineDied as error:
            text = self._endpoint.hidden(str(error))
            if self._storage is not None and f"nothing can be written to {self._storage}" in text:
                raise EngineDied(text) from None
            raise EndpointFailed(str(self._endpoint), _reason(text)) from None
        if _number(engine.identity.spark) != target.version:
            engine.close()
            raise OtherVersion(str(self._endpoint), engine.identity.spark, target)
        return engine

    def close(self) -> None:
        """Nothing is shared between engines, and each ends with its seat."""


def client_of(target: Target) -> Target:
    """The target with what its client of Connect needs beside Spark."""
    return replace(target, packages=tuple(dict.fromkeys((*target.packages, *target.connect))))


def _number(spark: str) -> SparkVersion | str:
    try:
        return SparkVersion.parse(spark)
    except NotAVersion:
        return spark


def _reason(text: str) -> str:
    """What gRPC says, out of a traceback."""
    for pattern in (r'details = "(.+)"', r"^\S*(?:Error|Exception): (.+)$"):
        if found := re.findall(pattern, text, re.MULTILINE):
            return str(found[-1])
    return text
