"""Where two Spark versions first differ on a case according to the reference model, and the rule that causes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.judging.divergence import divergence
from conformance.model.catalogue import Rule, RuleValue, catalogue, rules_of
from conformance.model.errors import Refused, Unpredictable
from conformance.model.progress import BatchProgress
from conformance.model.rules import Rules, differing
from conformance.model.versioned_data import features, refusals
from conformance.oracle.prediction import Prediction, predict


@dataclass(frozen=True)
class RuleChanged:
    """A rule that differs between two versions."""

    name: str
    source: str
    here: str
    """On the first version."""
    there: str
    """On the second version."""


@dataclass(frozen=True)
class VersionDivergence:
    """The first place where two versions differ."""

    step: int
    """From 1."""
    batch: int | None
    """Id of the micro-batch; None if one of them fails in this step before it."""
    here: BatchProgress | Refused | None
    """What the first version does there; None if it does nothing."""
    there: BatchProgress | Refused | None
    rules: tuple[RuleChanged, ...]
    """Every rule that alone would make the first version behave like the second there."""


def version_divergence(case: Case, here: Prediction, there: Prediction) -> VersionDivergence | None:
    """Where two versions first differ; None if they behave the same.

    Args:
        case: the case.
        here, there: the predictions for the two versions.
    """
    found = _first(here, there)
    if found is None:
        return None
    step, batch, mine, theirs = found
    rules = tuple(_responsible(case, here, there, found))
    return VersionDivergence(step, batch, mine, theirs, rules)


_Place = tuple[int, int | None, BatchProgress | Refused | None, BatchProgress | Refused | None]


def _first(here: Prediction, there: Prediction) -> _Place | None:
    """The step, the micro-batch, and what the model tells of it on both sides: a micro-batch, or the error instead."""
    found = divergence(here.observation, there.observation, error_classes=False)
    if found is None or found.step is None:
        return None
    sides = [next((one for one in told.steps if one.step.number == found.step), None) for told in (here, there)]
    batches = [side.batches if side is not None else () for side in sides]
    ids = [batch.id for batch in batches[0]]
    at = ids.index(found.batch) if found.batch is not None else min(map(len, batches))
    mine, theirs = (
        told[at] if at < len(told) else side.error if side is not None else None
        for told, side in zip(batches, sides, strict=True)
    )
    batch = next((one.id for one in (mine, theirs) if isinstance(one, BatchProgress)), None)
    return found.step, batch, mine, theirs


def _responsible(case: Case, here: Prediction, there: Prediction, found: _Place) -> Iterator[RuleChanged]:
    """The refusal that stops one of them here, or every rule that alone makes the first behave like the second."""
    mine, theirs = rules_of(here.version), rules_of(there.version)
    refused = {one.name for one in found[2:] if isinstance(one, Refused)}
    for altered, change in _alternatives(mine, theirs, here.version, there.version):
        if change.name in refused:
            yield change
            continue
        if not here.read.tell_apart(mine, altered):
            continue
        try:
            other = predict(case, here.version, altered)
        except Unpredictable:
            continue
        next_place = _first(other, there)
        if next_place is None or (next_place[:2] != found[:2] and _after(next_place, found)):
            yield change


def _after(one: _Place, other: _Place) -> bool:
    return (one[0], one[1] if one[1] is not None else 10**9) > (other[0], other[1] if other[1] is not None else -1)


def _alternatives(
    mine: Rules, theirs: Rules, here: SparkVersion, there: SparkVersion
) -> Iterator[tuple[Rules, RuleChanged]]:
    for name in differing(mine, theirs):
        if name in catalogue():
            rule: Rule = catalogue()[name]
            one, other = rule.at(here), rule.at(there)
            yield replace(mine, **{name: getattr(theirs, name)}), _changed(rule, one, other)
    for refusal in refusals():
        one_wording, other_wording = mine.refusals.get(refusal.name), theirs.refusals.get(refusal.name)
        if one_wording != other_wording:
            worded = {**mine.refusals}
            worded.pop(refusal.name, None)
            if other_wording is not None:
                worded[refusal.name] = other_wording
            yield (
                replace(mine, refusals=worded),
                RuleChanged(
                    refusal.name,
                    refusal.source,
                    f"refused: {one_wording.text}" if one_wording else "not refused",
                    f"refused: {other_wording.text}" if other_wording else "not refused",
                ),
            )
    for feature in sorted(mine.features ^ theirs.features):
        available_there = feature in theirs.features
        having = mine.features | {feature} if available_there else mine.features - {feature}
        yield (
            replace(mine, features=having),
            RuleChanged(
                feature,
                features()[feature].link,
                f"{feature} is {'not ' if available_there else ''}available",
                f"{feature} is {'' if available_there else 'not '}available",
            ),
        )


def _changed(rule: Rule, here: RuleValue, there: RuleValue) -> RuleChanged:
    return RuleChanged(rule.name, rule.source, here.says, there.says)
