"""Where two versions of Spark part on a case, and the rule that parts them, by the reference model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import Rule, RuleValue, catalogue, rules_of
from conformance.model.errors import Refused, Unpredictable
from conformance.model.progress import BatchProgress
from conformance.model.rules import Rules, differing
from conformance.model.versioned_data import features, refusals
from conformance.oracle.prediction import Prediction, predict


@dataclass(frozen=True)
class RuleChanged:
    """A rule that reads otherwise on two versions."""

    name: str
    source: str
    here: str
    """What it says on the first version."""
    there: str
    """And on the second."""


@dataclass(frozen=True)
class VersionDivergence:
    """The first place where two versions do not do the same."""

    step: int
    """From 1."""
    batch: int | None
    """Id of the micro-batch; None where one of them fails in this step before it."""
    here: BatchProgress | Refused | None
    """What the first version does there; None where it does nothing."""
    there: BatchProgress | Refused | None
    rules: tuple[RuleChanged, ...]
    """Each of which alone would make the first version do there what the second does."""


def version_divergence(case: Case, here: Prediction, there: Prediction) -> VersionDivergence | None:
    """Where two versions part; None where they do the same all the way.

    Args:
        case: what both ran.
        here, there: what the model says of it on each.
    """
    found = _first(here, there)
    if found is None:
        return None
    step, batch, mine, theirs = found
    rules = tuple(_responsible(case, here, there, found))
    return VersionDivergence(step, batch, mine, theirs, rules)


T = TypeVar("T")
_Place = tuple[int, int | None, BatchProgress | Refused | None, BatchProgress | Refused | None]


def _first(here: Prediction, there: Prediction) -> _Place | None:
    for mine, theirs in _paired(here.steps, there.steps):
        number = (mine or theirs).step.number  # type: ignore[union-attr]
        for one, other in _paired(mine.batches if mine else (), theirs.batches if theirs else ()):
            if one is None or other is None or seen(one) != seen(other):
                batch = one or other
                failed = (mine.error if mine else None, theirs.error if theirs else None)
                return number, batch.id if batch else None, one or failed[0], other or failed[1]
        mine_failed, theirs_failed = (mine.error if mine else None), (theirs.error if theirs else None)
        if said(mine_failed) != said(theirs_failed):
            return number, None, mine_failed, theirs_failed
    return None


def seen(batch: BatchProgress) -> tuple[object, ...]:
    """What anybody sees of a micro-batch: not how versions count it."""
    held = tuple(operator.state_rows for operator in batch.operators)
    return batch.kind, batch.watermark_ms, sorted(map(repr, batch.emitted)), batch.dropped, held, batch.advance.after_ms


def said(error: Refused | None) -> tuple[object, ...] | None:
    """What anybody sees of an error."""
    return None if error is None else (error.stage, error.classes, error.message)


def _paired(ones: tuple[T, ...], others: tuple[T, ...]) -> Iterator[tuple[T | None, T | None]]:
    for place in range(max(len(ones), len(others))):
        yield ones[place] if place < len(ones) else None, others[place] if place < len(others) else None


def _responsible(case: Case, here: Prediction, there: Prediction, found: _Place) -> Iterator[RuleChanged]:
    """The refusal that stops one of them here, or the single rules that alone make the first do what the second does."""
    mine, theirs = rules_of(here.version), rules_of(there.version)
    refused = {one.name for one in found[2:] if isinstance(one, Refused)}
    for altered, change in _alternatives(mine, theirs, here.version, there.version):
        if change.name in refused:
            yield change
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
        there_is = feature in theirs.features
        having = mine.features | {feature} if there_is else mine.features - {feature}
        yield (
            replace(mine, features=having),
            RuleChanged(
                feature,
                features()[feature].link,
                f"{feature} is {'not ' if there_is else ''}there",
                f"{feature} is {'' if there_is else 'not '}there",
            ),
        )


def _changed(rule: Rule, here: RuleValue, there: RuleValue) -> RuleChanged:
    return RuleChanged(rule.name, rule.source, here.says, there.says)
