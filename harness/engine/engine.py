"""The seam between the harness and whatever a case runs in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from conformance.core.case import Case
from conformance.core.observation import Identity, Interrupted, Observation, StepSeen
from harness.engine.protocol import CaseRequest
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.targets.target import Target


@dataclass(frozen=True)
class EngineLocation:
    """Where an engine runs."""

    runtime: str
    """``local``, ``container`` …"""
    image: str | None = None
    """The reference of the container image it was asked for by."""
    image_digest: str | None = None
    """``registry/name@sha256:…`` where the image came from a registry, else the image's own id, ``sha256:…``."""
    master: str | None = None
    """Of the cluster its executors are in; None where they are threads of the driver."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.runtime, self.image, self.master)))


class Engine(Protocol):
    """A running Spark with our driver inside; many cases, one after the other or side by side."""

    identity: Identity
    place: EngineLocation
    code_path: str | None
    """Where the engine finds the modules that ``call`` names; None where the user did not allow code."""
    ended: bool
    """Whether it was killed or lost: it must be replaced."""
    slots: int | None
    """Tasks a cluster runs for it at once; None where there is no cluster."""
    memory: int | None
    """Bytes it held when a case last ended; None where that is not known."""

    def new_directory(self, case: str) -> str:
        """A directory for one run of a case, at the same path for every engine of the runtime; the driver makes it and removes it again."""

    def observe(self, request: CaseRequest, *, step_timeout: float) -> Observation:
        """Run one case, or some of its steps. Where the last of them is ``kill``, the engine is killed there and ``ended`` afterwards.

        Several threads may call it at once, each with another case; with a ``kill`` there must be no other.

        Args:
            request: the case without its expectations.
            step_timeout: seconds one step may take.

        Raises:
            KillMissed: the engine went past the point at which it was to be killed.
            ExecutorsLost: the cluster lost executors meanwhile.
            TooBusy: the machine had no time or memory for it.
            EngineFailed: no observation; unless it is a ``DriverFailed`` the engine is gone and must be replaced.
        """

    def kill(self) -> None:
        """End the engine's process at once, by SIGKILL; from any thread. ``observe`` then raises ``EngineDied``."""

    def close(self) -> None:
        """End the engine's process and everything it started; may be called twice."""


class Runtime(Protocol):
    """A way to bring engines up: ``local``, ``container``, ``connect``."""

    name: str

    def lacks(self, case: Case, target: Target) -> str | None:
        """Why its engines of the target cannot carry the case out, though their Spark may; None where they can."""

    def fingerprint(self, target: Target) -> str | None:
        """What its engines of the target are made of, told without starting one: two engines of one fingerprint give the same answers.

        None where that cannot be known, or nothing is there yet to start one from.
        """

    def start(self, target: Target, *, on_progress: ProgressCallback) -> Engine:
        """Bring up an engine of the target, installing what it lacks.

        Raises:
            HarnessError: this machine cannot run it; the error says why and how to mend it.
        """

    def close(self) -> None:
        """End whatever is left of every engine it started, and what they shared; may be called twice."""


class EngineFailed(HarnessError):
    """The engine gave no observation: the cell is broken, whatever Spark would have said."""

    def __init__(
        self, message: str, *, log: str = "", steps: tuple[StepSeen, ...] = (), emitted: tuple[Interrupted, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.emitted = emitted
        """Micro-batches that were told as they came, where that was asked for."""
        self.log = log
        """The end of what the engine wrote to standard error."""
        self.steps = steps
        """The steps that were observed before."""

    def __str__(self) -> str:
        return self.message + (f"\nthe last lines of its log:\n{self.log}" if self.log else "")


class EngineDied(EngineFailed):
    """The process ended in the middle of a case."""


class KillMissed(EngineFailed):
    """The engine was killed, but behind the point that was meant: the run must be repeated, not judged."""


class StepTimedOut(EngineFailed):
    """A step did not come to rest in time; the process was ended."""


class DriverFailed(EngineFailed):
    """The driver reported that it has no answer; the engine lives on."""


class ExecutorsLost(DriverFailed):
    """The cluster lost executors while the case ran: the run must be repeated, not judged.

    Their tasks run again, and Spark counts state and late rows of a task each time it ends well
    (https://spark.apache.org/docs/latest/rdd-programming-guide.html#accumulators). The executor that goes on checks the schema of the
    state anew, against the plan of whichever micro-batch comes: 3.2.2 to 3.5 may refuse their own state then (SPARK-57003).
    """


class TooBusy(DriverFailed):
    """What the machine had no time or memory for it may have another time: the run is to be repeated, with nothing beside it."""


class ProtocolBroken(EngineFailed):
    """The process said something that is no message of the protocol."""
