"""The watermark policy of one input, its parameters, and the 64-bit integers that policies compute with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, TypeAlias

MIN = -(2**63)
"""``Long.MIN_VALUE``: in most engines, a watermark that has not been computed yet."""
MAX = 2**63 - 1
"""``Long.MAX_VALUE``: the watermark of an input that has ended."""

ParameterKind: TypeAlias = Literal["count", "positive", "whole", "share"]
"""0, 1, 2, … · 1, 2, 3, … · any integer · greater than 0 and at most 1."""


@dataclass(frozen=True)
class PolicyParameter:
    """A parameter of a policy or throttle. The case reader and the JSON Schema are built from it."""

    meaning: str
    """With its unit."""
    kind: ParameterKind = "count"
    words: tuple[str, ...] = ()
    """The allowed words, if the value is not a number."""
    default: Any = None
    required: bool = True


class InvalidParameter(ValueError):
    """A parameter value that a policy does not accept."""

    def __init__(self, policy: str, parameter: str, value: object, allowed: str) -> None:
        super().__init__(f"{parameter} of {policy} is {value}: it must be {allowed}")
        self.policy = policy
        self.parameter = parameter
        self.value = value
        self.allowed = allowed


class Policy(Protocol):
    """Computes the watermark of one input. A frozen value: each method returns the policy after the call.

    ``now`` is the clock, in the unit that the policy documents. A policy overrides only the methods that affect it.
    """

    @property
    def watermark(self) -> int:
        """The current watermark; ``MIN`` if there is none yet."""
        return MIN

    def idle(self, now: int) -> bool:  # noqa: ARG002
        """Whether the input counts as idle and no longer holds back the watermark."""
        return False

    def started(self, now: int) -> Self:  # noqa: ARG002
        """The input has been opened."""
        return self

    def event(self, timestamp: int, now: int) -> Self:  # noqa: ARG002
        """An event has arrived."""
        return self

    def poll(self, now: int) -> Self:  # noqa: ARG002
        """The engine has polled the input and found nothing."""
        return self

    def boundary(self, now: int) -> Self:  # noqa: ARG002
        """A batch has ended: see ``trace.Boundary``."""
        return self


def at_least(policy: str, parameter: str, value: int, least: int) -> None:
    """
    Raises:
        InvalidParameter: the value is less than ``least``.
    """
    if value < least:
        raise InvalidParameter(policy, parameter, value, f"at least {least}")


def wrapped(number: int) -> int:
    """The number after 64-bit overflow, as Java's ``+`` and ``-`` compute it."""
    return (number - MIN) % 2**64 + MIN


def clamped(number: int) -> int:
    """The nearest 64-bit integer."""
    return max(MIN, min(MAX, number))
