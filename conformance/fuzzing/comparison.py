"""What several answers to a case mean: agreement, a difference that is known, or one that nobody has explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol, TypeAlias

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.fuzzing.cached_prediction import model_says, with_conf
from conformance.fuzzing.causes import parting_rules, settling_rules
from conformance.fuzzing.oracle import Oracle, OracleAnswer
from conformance.judging.divergence import divergence
from conformance.model.unpredictable import Unpredictable
from conformance.oracle.prediction import Prediction

Rules: TypeAlias = tuple[tuple[str, str], ...]
"""Names of rules, each with its ticket or the section that says it."""


@dataclass(frozen=True)
class Said:
    """What somebody says of a case."""

    who: str
    version: SparkVersion
    observation: Observation
    conf: Mapping[str, str] = field(default_factory=dict)
    """The Spark settings it has for all cases."""

    def on(self, case: Case) -> Case:
        """The case, as it was for this one."""
        return with_conf(case, self.conf)


@dataclass(frozen=True)
class Difference:
    """Two answers that are not the same."""

    one: Said
    """The one that was asked."""
    other: Said
    """Another, or what the model says of the first one's version."""
    what: str
    """``rows``, ``watermark`` …: see ``conformance.judging.divergence``."""
    rules: Rules = ()
    """The rules that separate them, each alone; none where the model knows of none, or before it was asked."""


@dataclass(frozen=True)
class Judgement:
    """What the answers to one case mean."""

    finds: tuple[Difference, ...] = ()
    """Those that nobody has explained."""
    known: tuple[Rules, ...] = ()
    """The rules of those that are as the model says of both versions."""
    not_predicted: str = ""
    """What the model does not know in the case; empty where it knows all."""


class Judge(Protocol):
    """Makes a judgement of answers."""

    def judge(self, case: Case, answers: Mapping[str, OracleAnswer], oracles: Mapping[str, Oracle]) -> Judgement:
        """
        Args:
            case: that was asked.
            answers: by name of the voice.
            oracles: by name.
        """
        ...

    def explained(self, case: Case, difference: Difference) -> Difference:
        """The difference with the rules that separate the two. It takes many readings of the case."""
        ...


class ByTheModel:
    """An answer is right where it is what the model says of its version; where two right ones differ, the rule is known.

    Where the model does not know a case, answers that differ are a find.

    Args:
        alone: whether an answer that is not what the model says is a find by itself, or only where another answer differs.
    """

    def __init__(self, *, alone: bool = True) -> None:
        self._alone = alone

    def judge(self, case: Case, answers: Mapping[str, OracleAnswer], oracles: Mapping[str, Oracle]) -> Judgement:
        said = _said(answers, oracles)
        try:
            predicted = {one.who: model_says(one.on(case), one.version) for one in said}
        except Unpredictable as unknown:
            return Judgement(_first_difference(said), not_predicted=unknown.construct)
        unlike = {one.who: found for one in said if (found := _from_the_model(one, predicted[one.who]))}
        if self._alone and unlike:
            first: dict[str, Difference] = {}
            for found in unlike.values():
                first.setdefault(found.what, found)  # who else goes wrong in the same way is no other find
            return Judgement(tuple(first.values()))
        known: dict[Rules, None] = {}
        for one, other in _neighbours(said):
            parts = divergence(one.observation, other.observation)
            if parts is None:
                continue
            if one.who in unlike or other.who in unlike:
                return Judgement((Difference(one, other, parts.what),))
            known[parting_rules(case, predicted[one.who], predicted[other.who])] = None
        return Judgement(known=tuple(known))

    def explained(self, case: Case, difference: Difference) -> Difference:
        """By the rules of which another reading gives the answer that is not what the model says."""
        rules: dict[tuple[str, str], None] = {}
        for one in (difference.one, difference.other):
            rules |= dict.fromkeys(settling_rules(one.on(case), one.version, one.observation))
        return replace(difference, rules=tuple(rules))


class ByEachOther:
    """Nothing is known beforehand: any two answers that differ are a find. The model is asked only for the rule between them."""

    def judge(self, case: Case, answers: Mapping[str, OracleAnswer], oracles: Mapping[str, Oracle]) -> Judgement:  # noqa: ARG002
        return Judgement(_first_difference(_said(answers, oracles)))

    def explained(self, case: Case, difference: Difference) -> Difference:
        try:
            here, there = (model_says(one.on(case), one.version) for one in (difference.one, difference.other))
        except Unpredictable:
            return difference
        return replace(difference, rules=parting_rules(case, here, there))


def _said(answers: Mapping[str, OracleAnswer], oracles: Mapping[str, Oracle]) -> list[Said]:
    return [
        Said(name, oracles[name].version, answer.observation, oracles[name].conf)
        for name, answer in answers.items()
        if answer.observation is not None
    ]


def _from_the_model(one: Said, prediction: Prediction) -> Difference | None:
    parts = divergence(one.observation, prediction.observation)
    if parts is None:
        return None
    model = Said(f"model-{one.version}", one.version, prediction.observation, one.conf)
    return Difference(one, model, parts.what)


def _neighbours(said: Sequence[Said]) -> Iterable[tuple[Said, Said]]:
    """Each and the next newer one: where none of these differ, none at all do."""
    return pairwise(sorted(said, key=lambda one: one.version))


def _first_difference(said: Sequence[Said]) -> tuple[Difference, ...]:
    for one, other in _neighbours(said):
        parts = divergence(one.observation, other.observation)
        if parts is not None:
            return (Difference(one, other, parts.what),)
    return ()
