"""The real engines of ``engines.yaml``, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.policies.catalogue import POLICIES
from harness.environments.jars import Jar

ALL = "all"


@dataclass(frozen=True)
class PolicyEngine:
    """An engine whose own classes answer for its watermark policies."""

    name: str
    """Of its column: ``flink-1.20.5``."""
    title: str
    program: str
    """The Java source file that drives it."""
    policies: tuple[str, ...]
    decides: str
    """What of an entry its classes decide, for the reader."""
    jars: tuple[Jar, ...]
    release: str | None = None
    """The value that the policies' parameter ``release`` must have."""

    def has(self, policy: str, given: Mapping[str, Any]) -> bool:
        """Whether the engine has a policy with these parameters."""
        if policy not in self.policies or self.release is None:
            return policy in self.policies
        return bool(given.get("release", POLICIES[policy].parameters["release"].default) == self.release)


def select(names: Sequence[str]) -> tuple[PolicyEngine, ...]:
    """The engines with these names, in the order of the catalogue, each once.

    Args:
        names: ``flink-1.20.5``, the same without its version, or ``all``.

    Raises:
        WrongUsage: no engine has one of them.
    """
    chosen: set[str] = set()
    for name in names:
        named = {engine for engine in ENGINES if name in (ALL, engine) or engine.startswith(f"{name}-")}
        if not named:
            near = get_close_matches(name, ENGINES, 1, 0.4)
            hint = f"did you mean {near[0]}?" if near else f"use {ALL}, or one of {', '.join(ENGINES)}"
            raise WrongUsage(f"no policy engine is called {name!r}: {hint}")
        chosen |= named
    return tuple(engine for name, engine in ENGINES.items() if name in chosen)


def _engine(name: str, jars: Mapping[str, str], policies: Sequence[str], **about: Any) -> PolicyEngine:
    return PolicyEngine(name=name, jars=tuple(Jar(*jar) for jar in jars.items()), policies=tuple(policies), **about)


ENGINES: Mapping[str, PolicyEngine] = {
    name: _engine(name, **entry) for name, entry in read_data("harness.policy_engines", "engines.yaml").items()
}
"""Name → engine, in the order of columns."""
