"""The seam: what computes the watermark of one input."""

from __future__ import annotations

from typing import Protocol, Self

from conformance.policies.int64 import MIN


class NotAPolicy(ValueError):
    """A parameter with which a policy cannot be made."""

    def __init__(self, policy: str, parameter: str, value: object, allowed: str) -> None:
        super().__init__(f"{parameter} of {policy} is {value}: it must be {allowed}")
        self.policy = policy
        self.parameter = parameter
        self.value = value
        self.allowed = allowed


class Policy(Protocol):
    """The watermark of one input, as a frozen value; whatever happens gives the value after it.

    ``now`` is what the clock shows, in the unit that the policy's module names. A policy overrides what concerns it.
    """

    @property
    def watermark(self) -> int:
        """As the policy has it now; ``int64.MIN`` where there is none yet."""
        return MIN

    def idle(self, now: int) -> bool:  # noqa: ARG002
        """Whether the input counts as idle, so that nobody waits for it."""
        return False

    def started(self, now: int) -> Self:  # noqa: ARG002
        """The input is there from now on."""
        return self

    def event(self, timestamp: int, now: int) -> Self:  # noqa: ARG002
        """An event has arrived."""
        return self

    def poll(self, now: int) -> Self:  # noqa: ARG002
        """The engine asks although nothing has arrived."""
        return self

    def boundary(self, now: int) -> Self:  # noqa: ARG002
        """What has arrived so far was one batch: see ``trace.Boundary``."""
        return self


def at_least(policy: str, parameter: str, value: int, least: int) -> None:
    """
    Raises:
        NotAPolicy: the value is below the least.
    """
    if value < least:
        raise NotAPolicy(policy, parameter, value, f"at least {least}")
