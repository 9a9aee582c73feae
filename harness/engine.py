"""The seam between the harness and whatever a case runs in."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from conformance.observation import Identity, Observation, StepSeen
from harness.protocol import CaseRequest
from harness.say import Say
from harness.surroundings import SurroundingsFailed
from harness.target import Target


class Engine(Protocol):
    """A running Spark with our driver inside; many cases, one after the other."""

    identity: Identity

    def new_directory(self, case: str) -> Path:
        """A directory for one run of a case, new and empty, on the engine's file system."""

    def observe(self, request: CaseRequest, *, step_timeout: float) -> Observation:
        """Run one case.

        Args:
            request: the case without its expectations.
            step_timeout: seconds one step may take.

        Raises:
            EngineFailed: no observation; unless it is a ``DriverFailed`` the engine is gone and must be replaced.
        """

    def close(self) -> None:
        """End the engine's process and everything it started; may be called twice."""


class Runtime(Protocol):
    """A way to bring engines up: ``local``, later ``container``."""

    name: str

    def start(self, target: Target, *, say: Say) -> Engine:
        """Bring up an engine of the target, installing what it lacks.

        Raises:
            SurroundingsFailed: this machine cannot run it; the error says why and how to mend it.
        """


class EngineFailed(SurroundingsFailed):
    """The engine gave no observation: the cell is broken, whatever Spark would have said."""

    def __init__(self, message: str, *, log: str = "", steps: tuple[StepSeen, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.log = log
        """The end of what the engine wrote to standard error."""
        self.steps = steps
        """The steps that were observed before."""

    def __str__(self) -> str:
        return self.message + (f"\nthe last lines of its log:\n{self.log}" if self.log else "")


class EngineDied(EngineFailed):
    """The process ended in the middle of a case."""


class StepTimedOut(EngineFailed):
    """A step did not come to rest in time; the process was ended."""


class DriverFailed(EngineFailed):
    """The driver reported that it went wrong itself; the engine lives on."""


class ProtocolBroken(EngineFailed):
    """The process said something that is no message of the protocol."""
