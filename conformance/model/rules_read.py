"""Which rules a run of the model reads. With another value of a rule that it never reads, it would give the same answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from conformance.model.rules import Rules
from conformance.model.versioned_data import Wording, features, refusals


@dataclass(frozen=True)
class RulesRead:
    """What a run of the model has read of its rules."""

    rules: set[str] = field(default_factory=set)
    refusals: set[str] = field(default_factory=set)
    features: set[str] = field(default_factory=set)

    def tell_apart(self, these: Rules, those: Rules) -> bool:
        """Whether two sets of rules differ in anything that was read. If not, the run is the same with both."""
        return (
            any(getattr(these, name) != getattr(those, name) for name in self.rules)
            or any(these.refusals.get(name) != those.refusals.get(name) for name in self.refusals)
            or any((name in these.features) != (name in those.features) for name in self.features)
        )


class WatchedRules:
    """A view of ``Rules`` that records in ``read`` what the model reads of them."""

    refusal = Rules.refusal
    require = Rules.require

    def __init__(self, rules: Rules, read: RulesRead) -> None:
        self._rules = rules
        self._read = read
        self.refusals: Mapping[str, Wording] = _WatchedRefusals(rules.refusals, read.refusals)
        self.features: Set[str] = _WatchedFeatures(rules.features, read.features)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._rules, name)
        self._read.rules.add(name)
        # From now on it is found without this method: the model reads some rules for each row.
        self.__dict__[name] = value
        return value

    def altered(self, **values: Any) -> WatchedRules:
        return WatchedRules(self._rules.altered(**values), self._read)


class _WatchedRefusals(Mapping[str, Wording]):
    def __init__(self, wordings: Mapping[str, Wording], read: set[str]) -> None:
        self._wordings = wordings
        self._read = read

    def __getitem__(self, name: str) -> Wording:
        self._read.add(name)
        return self._wordings[name]

    def __contains__(self, name: object) -> bool:
        self._read.add(str(name))
        return name in self._wordings

    def __iter__(self) -> Iterator[str]:
        self._read.update(one.name for one in refusals())
        return iter(self._wordings)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _WatchedFeatures(Set[str]):
    def __init__(self, available: frozenset[str], read: set[str]) -> None:
        self._available = available
        self._read = read

    def __contains__(self, name: object) -> bool:
        self._read.add(str(name))
        return name in self._available

    def __iter__(self) -> Iterator[str]:
        self._read.update(features())
        return iter(self._available)

    def __len__(self) -> int:
        return sum(1 for _ in self)
