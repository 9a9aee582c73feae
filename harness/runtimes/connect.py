"""The ``connect`` runtime: engines that already run somewhere and are reached through Spark Connect."""

import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from conformance.core.case import Case, Restart
from conformance.core.errors import WrongUsage, ended_by_stop
from conformance.core.versions import NotAVersion, SparkVersion
from conformance.core.wording import without_secrets
from harness.driver.errors import FailureReason
from harness.engine.driver_engine import DriverEngine
from harness.engine.engine import NOTHING_ELSE, Engine, EngineLocation, EngineNeeds, EngineNotStarted, Runtime
from harness.engine.request import kills_its_engine, looks_at_plans, runs_a_sink
from harness.environments.provision import prepare
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes import program
from harness.runtimes.cluster import StorageUrl, check_port, is_loopback
from harness.runtimes.own_code import OwnCode, with_requirements
from harness.targets.targets import Target

_PORT = 15002
"""Of an address without one."""
_BACK_SECONDS = 60
"""How long to wait for a server that has answered before."""
_URL = re.compile(r"sc://[^\s/;]+(/?|/;\S*)")


class NoConnect(HarnessError):
    """The version's Connect does not run streaming queries."""

    def __init__(self, target: Target) -> None:
        super().__init__(f"{target.name} does not run streaming queries through Spark Connect; --spark newest does")


@dataclass(frozen=True)
class Endpoint:
    """The address of a Connect server, with its credentials."""

    url: str
    """Its parameters belong to it; the token among them is never shown."""

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse the address of a Connect server; raises ``WrongUsage`` for another text."""
        if not _URL.fullmatch(url.strip()):
            # The text itself may hold a token.
            raise WrongUsage(
                "--connect takes the address of a Spark Connect server, sc://host:15002, with optional parameters after /;, as "
                "in sc://host:443/;use_ssl=true;token=…; you can also set it in the variable CONFORMANCE_CONNECT"
            )
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

    def check(self, version: SparkVersion) -> None:
        """Raise ``HarnessError`` if its port takes no connection, or has no TLS and the client does; that tries for minutes."""
        at, host = urlsplit(str(self)), urlsplit(str(self)).hostname or ""
        proxied = any(os.environ.get(name) for name in ("grpc_proxy", "https_proxy", "http_proxy"))
        if proxied and not (self.on_this_machine or proxy_bypass(host)):
            return
        check_port(f"the Connect server {self}", [at.netloc], _PORT)
        try:
            if "use_ssl=true" in self.url or ("token=" in self.url and (host != "localhost" or version.major < 4)):
                ssl.get_server_certificate((host, at.port or _PORT), timeout=5)
        except OSError as error:
            if getattr(error, "reason", None) == "WRONG_VERSION_NUMBER":
                how = "write localhost from 4.0 on, or no token"
                raise HarnessError(f"{self} has no TLS, which the client of {version.line} uses: {how}") from None

    def redact(self, text: str) -> str:
        """The text without the secrets of the address."""
        parameters = (parameter.partition("=") for parameter in self.url.partition("/;")[2].split(";"))
        # Neither `use_ssl=true` nor the user's name is a secret.
        shown = ("use_ssl", "user_id", "user_agent", "session_id")
        return without_secrets(value for name, _, value in parameters if value and name not in shown)(text)


@dataclass(frozen=True, eq=False)
class ConnectRuntime:
    """Starts a driver on this machine for each engine, as a client of the server."""

    root: Path
    """A folder of this machine; without a storage, the server must see it at the same path."""
    endpoint: Endpoint
    _: KW_ONLY
    own_code: OwnCode | None = None
    """The modules that ``call`` may name; None if the user did not allow code."""
    requirements: Sequence[str] = ()
    """Python packages of the user's code, for the client; a server has its own."""
    storage: StorageUrl | None = None
    """Holds the files of cases, as the server reaches it; None for ``root``."""
    variables: Mapping[str, str] = field(default_factory=dict)

    _answered: threading.Event = field(default_factory=threading.Event, init=False)
    """Whether the server has opened a session."""

    name = "connect"

    def fingerprint(self, target: Target) -> None:
        """Unknown: a client cannot identify the server's build."""

    def unsupported(self, case: Case, target: Target) -> str | None:
        jvm = "the engine's JVM, which Connect hides"
        restarts = [step.action for step in case.steps if isinstance(step.action, Restart)]
        altered = any(
            restart.how == "crash-before-commit" or restart.damage or restart.checkpoint or restart.recreated
            for restart in restarts
        )
        names = {operation.name for operation in case.operations()}
        obstacles = (
            (kills_its_engine(case), "the engine's process cannot be killed through Connect"),
            (case.tables, f"its rows come from a table, which the driver writes through {jvm}"),
            (case.written, "its rows are read from a sink that only the server's machine and its packages may reach"),
            (case.topics, f"its rows come from Kafka, whose records the driver sends through {jvm}"),
            (
                case.in_real_time,
                "rows for a real-time query lie in the memory of the engine's JVM, which Connect does not reach",
            ),
            (case.interval_ms is not None, f"the clock of a query is exchanged in {jvm}"),
            (
                runs_a_sink(case),
                "a sink of the case's author runs in the driver's process, which is a server's through Connect",
            ),
            (case.jars, "its jar belongs on the class path of the server, which Connect does not change"),
            (case.calls_main, "its main method runs in the JVM of the engine, which Connect hides"),
            (looks_at_plans(case), "Connect does not return the plan of a micro-batch"),
            (
                any(restart.repartition is not None for restart in restarts),
                "repartitioning of state runs in the JVM, which Connect does not reach",
            ),
            *(
                (name in names, f"Connect of this version does not support `{name}` on a stream ({ticket})")
                for name, ticket in target.connect_unsupported
            ),
            (self.storage is not None and altered, "a checkpoint on a storage behind Connect cannot be changed"),
        )
        return next((why for applies, why in obstacles if applies), None)

    def start(self, target: Target, *, on_progress: ProgressCallback, needs: EngineNeeds = NOTHING_ELSE) -> Engine:  # noqa: ARG002
        if not target.connect:
            raise NoConnect(target)
        self._reach(target.version, on_progress)
        environment = prepare(with_requirements(target, (*target.connect, *self.requirements)), on_progress=on_progress)
        work = program.stage(target, self.root)
        on_progress(f"{target.name}: connecting to {self.endpoint}")
        variables = {**self.variables, "CONFORMANCE_ENDPOINT": self.endpoint.url}
        transport = program.start("driver", environment, work, {}, None, storage=self.storage, variables=variables)
        try:
            engine = DriverEngine(
                transport,
                work=str(work),
                cases=f"{self.storage}/{work.name}" if self.storage else None,
                place=EngineLocation(self.name, master=str(self.endpoint)),
                code=self.own_code.paths() if self.own_code else None,
                start_timeout=program.START_SECONDS,
                redact=self.endpoint.redact,
            )
        except EngineNotStarted as error:
            if error.reason in (FailureReason.CONNECT_REFUSED, FailureReason.ENGINE_LOST):
                raise HarnessError(f"{self.endpoint} did not open a session: {error.detail}") from None
            raise
        self._answered.set()
        spark = number = engine.identity.spark
        with suppress(NotAVersion):
            number = str(SparkVersion.parse(spark))
        if number != str(target.version):
            engine.close()
            raise HarnessError(f"{self.endpoint} runs Spark {spark}, not {target.version}; use --spark {number}")
        return engine

    def _reach(self, version: SparkVersion, on_progress: ProgressCallback) -> None:
        """Wait for a server that has answered before: its operator may restart it. Raises ``HarnessError`` if it does not come back."""
        deadline = time.monotonic() + (_BACK_SECONDS if self._answered.is_set() else 0)
        stopped, said = threading.Event(), False
        with ended_by_stop(stopped.set):
            while True:
                try:
                    return self.endpoint.check(version)
                except HarnessError as error:
                    if stopped.is_set() or time.monotonic() >= deadline:
                        raise
                    if not said:
                        on_progress(f"{error}; trying again for {_BACK_SECONDS} s")
                    said = True
                stopped.wait(1)

    def close(self) -> None:
        """Nothing: engines share nothing, and each is closed by its user."""


@dataclass(frozen=True, eq=False)
class Beside:
    """Two runtimes that see the same files: some targets use the second, all others the first."""

    here: Runtime
    there: Runtime
    is_there: Callable[[Target], bool]

    name = "local"

    def unsupported(self, case: Case, target: Target) -> str | None:
        return self._of(target).unsupported(case, target)

    def fingerprint(self, target: Target) -> str | None:
        return self._of(target).fingerprint(target)

    def start(self, target: Target, *, on_progress: ProgressCallback, needs: EngineNeeds = NOTHING_ELSE) -> Engine:
        return self._of(target).start(target, on_progress=on_progress, needs=needs)

    def close(self) -> None:
        self.here.close()
        self.there.close()

    def _of(self, target: Target) -> Runtime:
        return self.there if self.is_there(target) else self.here
