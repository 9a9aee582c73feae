"""The interface between the harness and what a case runs in: local, cluster, Connect, container."""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Self

from conformance.core.case import Case, TableFormat
from conformance.core.observation import Identity, Observation, StepSeen
from harness.driver.errors import FailureReason
from harness.engine.protocol import CaseRequest, ProgramRequest, ProgramSeen, StateRequest, StateSeen
from harness.errors import HarnessError, machine_cause
from harness.progress import ProgressCallback
from harness.targets.targets import Target

_LOG = logging.getLogger(__name__)
_RAISED = re.compile(r"(?:Exception|Error)\b")
_NO_JVM = re.compile(r"Py4JNetworkError|Connection(Refused|Reset)Error|BrokenPipeError")
"""What py4j raises when its JVM ends while it starts: at a request, or as the port that the JVM had opened is closed."""


@dataclass(frozen=True)
class EngineLocation:
    runtime: str
    """``local``, ``container`` …"""
    image: str | None = None
    """The reference of the container image, as requested."""
    image_digest: str | None = None
    """``registry/name@sha256:…`` if the image came from a registry, else its id, ``sha256:…``."""
    master: str | None = None
    """The cluster that runs its executors; None if they are threads of the driver."""
    kafka: str | None = None
    """The connector and the broker; None if it reads no topics."""
    tables: str | None = None
    """The packages of table formats; None if it reads no tables."""
    accelerator: str | None = None
    """The package of the accelerator that runs operators of its plans; None without one."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.runtime, self.image, self.master)))


@dataclass(frozen=True, order=True)
class EngineNeeds:
    """What cases need of their engine beyond their target."""

    topics: bool = False
    real_time: bool = False
    """Whether they are real-time queries, whose tasks run all at once."""
    tables: tuple[TableFormat, ...] = ()
    """The formats of the tables that they read, in order: all of them the same, because a format changes the session of an engine."""
    jars: tuple[str, ...] = ()
    """The jars that they name: all of them the same, because two jars may hold classes of one name."""
    main: bool = False
    """Whether some of them call a main method of a jar, which a debugger holds."""
    code: bool = False
    """Whether all of them need ``--allow-code``: what code changes in its process would change the answers to other cases."""

    @classmethod
    def of(cls, case: Case, target: Target) -> Self:
        real_time = case.runs_in_real_time(target.version)
        code = bool(case.needs_code)
        return cls(bool(case.topics), real_time, case.table_formats, case.jars, case.calls_main, code)

    def cover(self, others: Self) -> bool:
        """Whether an engine that was started for these needs runs cases with the others, too."""
        # It may have topics and a debugger that they do not need.
        return self == replace(others, topics=self.topics or others.topics, main=self.main or others.main)


NOTHING_ELSE = EngineNeeds()
"""The needs of most cases: any engine of the target runs them."""


class Engine(Protocol):
    """A running Spark with our driver inside; it runs many cases, one after another or side by side."""

    identity: Identity
    place: EngineLocation
    code: tuple[str, ...] | None
    """Folders where the engine finds the modules that ``call`` names; None if the user did not allow code."""
    kafka: str | HarnessError | None
    """The broker for topics, as in `KafkaAccess`; why there is none; None if it was started for cases that read no topics."""
    slots: int | None
    """Tasks that its cluster runs at once; None without a cluster."""
    memory: int | None
    """Bytes it used when a case last ended; None if unknown."""

    @property
    def ended(self) -> bool:
        """Whether it was killed or lost and must be replaced."""

    def new_directory(self, case: str) -> str:
        """A directory for one run of a case, at the same path for every engine of the runtime; the driver makes and removes it."""

    def observe(
        self, request: CaseRequest, *, step_timeout: float, on_step: Callable[[], None] | None = None
    ) -> Observation:
        """Run one case, or some of its steps. If the last of them is ``kill``, the engine is killed there and then ``ended``.

        Several threads may call it at once, each with another case; a request with a ``kill`` must be the only one. ``on_step`` is
        called in the same thread when a step has ended.

        Raises:
            KillMissed: the engine went past the point where it was to be killed.
            ExecutorsLost: the cluster lost executors while the case ran.
            TooBusy: the machine was overloaded.
            EngineFailed: there is no observation; after any but a ``DriverFailed`` the engine must be replaced.
        """

    def survey(self, request: ProgramRequest, *, timeout: float) -> ProgramSeen:
        """See what a program of the author's does. Raises ``EngineFailed`` without an answer, ``EngineSilent`` if it did not end."""

    def read_state(self, request: StateRequest, *, timeout: float) -> StateSeen:
        """Ask Spark's own reader for the state of a checkpoint. Raises ``EngineFailed`` without an answer."""

    def kill(self) -> None:
        """End the engine's process at once by SIGKILL; from any thread. ``observe`` then raises ``EngineDied``."""

    def close(self) -> None:
        """End the engine's process and everything it started; may be called twice."""


class Runtime(Protocol):
    """A way to start engines: ``local``, ``container``, ``connect``."""

    name: str

    def unsupported(self, case: Case, target: Target) -> str | None:
        """Why its engines of the target cannot run the case, although their Spark may support it; None if they can."""

    def fingerprint(self, target: Target) -> str | None:
        """The build and settings of its engines of the target: equal ones answer alike. None if unknown, or not installed yet."""

    def start(self, target: Target, *, on_progress: ProgressCallback, needs: EngineNeeds = NOTHING_ELSE) -> Engine:
        """Start an engine of the target for ``needs``, installing what is missing. Raises ``HarnessError`` if the machine cannot run it."""

    def close(self) -> None:
        """End all engines that are still running and release what they shared; may be called twice."""


class EngineFailed(HarnessError):
    """The engine gave no observation, so the cell is broken."""

    steps: tuple[StepSeen, ...] = ()

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.log = log
        """The end of what the engine wrote to standard error."""

    def __str__(self) -> str:
        return self.message + (f"\nThe last lines of its log:\n{self.log}" if self.log else "")


class EngineSilent(EngineFailed):
    """The engine did not answer in time."""


class EngineDied(EngineFailed):
    """The engine ended while it was starting or running a case."""


class EngineKilled(EngineFailed):
    """The kernel ended the engine for lack of memory: neither Spark nor the author's code did."""


class EngineNotStarted(EngineDied):
    """The driver reported that the engine did not start: ``reason``, and ``detail``, the driver's message."""

    def __init__(self, reason: FailureReason, detail: str, ending: str, *, log: str = "") -> None:
        what = f"the engine did not start and ended with {ending}"
        _LOG.debug("%s:\n%s\n%s", what, detail, log)
        short, said = detail, [line for line in log.splitlines() if _RAISED.search(line)]
        if (cause := machine_cause(f"{detail}\n{log}")) is not None:
            short, log = f"{cause} (see `ulimit -a`, and the free space of TMPDIR)", ""
        elif detail.startswith("Traceback "):
            raised = detail.rstrip().splitlines()[-1]
            gone = ["its JVM ended, perhaps killed"] if "py4j" in detail and _NO_JVM.search(raised) and not said else []
            short, log = "; ".join([*gone, raised, *said[-1:], "--debug shows the rest"]), ""
        super().__init__(f"{what}: {short}", log=log)
        self.reason = reason
        self.detail = detail


class KillMissed(EngineFailed):
    """The engine was killed too late: the run must be repeated, not judged."""


class DriverFailed(EngineFailed):
    """The driver could not carry out a request; the engine keeps running."""


class ExecutorsLost(DriverFailed):
    """The cluster lost executors while the case ran: the run must be repeated, not judged.

    Their tasks run again, and Spark counts state and late rows of a task each time it succeeds
    (https://spark.apache.org/docs/latest/rdd-programming-guide.html#accumulators). The executor that takes over checks the schema of the
    state again, against the plan of the micro-batch at hand: 3.2.2 to 3.5 may then reject their own state (SPARK-57003).
    """


class TooBusy(DriverFailed):
    """The machine was overloaded; retry the case alone."""
