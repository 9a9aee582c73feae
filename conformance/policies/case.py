"""A case on a policy, as written: a trace, the rules it is read under, and what each entry must lead to.

Such a case says nothing about Spark and is never sent to an engine: the policies of this package are its target. See
``docs/case-language.md``, "Cases on watermark policies".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from conformance.core.case import Frozen, Strength
from conformance.policies.catalogue import rules
from conformance.policies.rules import Rules
from conformance.policies.trace import Entry, Trace

Json: TypeAlias = Any

TARGET = "model"
"""What the target of these cases is called, where Spark versions have ``spark-3.5.9``."""


class PolicyExpectation(Frozen):
    """What an entry must lead to; keys that are absent are not checked, and ``model_fields_set`` tells which are."""

    watermark: int | Mapping[str, int | None] | None = None
    """Of the input's policy, or of each input's by name; None is no watermark yet."""
    emitted: int | None = None
    """The watermark that operators were sent; None is none."""
    downstream: int | None = None
    """The watermark that operators have; None is no watermark yet."""
    late: bool | None = None
    closed: tuple[int, ...] = ()
    """Ends of the windows that are complete now."""
    idle: tuple[str, ...] = ()
    """Inputs that nobody waits for."""


class PolicyStep(Frozen):
    number: int
    """From 1."""
    entry: Entry
    name: str | None = None
    expect: PolicyExpectation | None = None


class PolicyCase(Frozen):
    """One case on a policy, valid and complete."""

    id: str
    path: Path
    digest: str
    """As a ``Case`` has it."""
    lines: Mapping[str, int]
    """Where things stand in the file, from 1: ``title``, ``trace.3``, ``trace.3.expect.late``."""

    title: str
    policy: str
    given: Mapping[str, Json]
    """Parameters of the policy."""
    throttle: tuple[str, Mapping[str, Json]] | None = None
    trace: Trace
    steps: tuple[PolicyStep, ...]
    """One per entry of the trace."""
    strength: Strength = "documented"
    links: tuple[str, ...] = ()
    why: str | None = None
    mirrors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The folder the case is in: ``policies``; empty for a case that is in none."""
        return self.id.rpartition("/")[0]

    @property
    def behaviour(self) -> tuple[str, ...]:
        """None: behaviours are Spark's."""
        return ()

    def rules(self) -> Rules:
        """What the trace is read under."""
        return rules(self.policy, self.given, self.throttle)
