"""Where two Spark versions first differ on a case according to the reference model, and the rule that causes it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.judging.comparison import divergence
from conformance.model.catalogue import catalogue, rules_of
from conformance.model.errors import Refused, Unpredictable
from conformance.model.operators import BatchProgress
from conformance.model.rules import Rules, differing, features, refusals
from conformance.oracle.prediction import Prediction, predict


@dataclass(frozen=True)
class RuleChanged:
    """A rule that differs between two versions."""

    name: str
    source: str
    here: str
    there: str


@dataclass(frozen=True)
class VersionDivergence:
    """The first place where two versions differ."""

    step: int
    batch: int | None
    """Id of the micro-batch; None if one of them fails in this step before it."""
    here: BatchProgress | Refused | None
    """What the first version does there; None if it does nothing."""
    there: BatchProgress | Refused | None
    rules: tuple[RuleChanged, ...] = ()
    """Every rule that alone would make the first version behave like the second there."""


def version_divergence(case: Case, here: Prediction, there: Prediction) -> VersionDivergence | None:
    """Where two versions first differ, by the predictions for both; None if they behave the same."""
    first = _first(here, there)
    return None if first is None else replace(first, rules=tuple(_responsible(case, here, there, first)))


def _first(here: Prediction, there: Prediction) -> VersionDivergence | None:
    place = divergence(here.observation, there.observation, error_classes=False)
    if place is None or place.step is None:
        return None
    sides = [next((step for step in run.steps if step.step.number == place.step), None) for run in (here, there)]
    batches = [side.batches if side is not None else () for side in sides]
    ids = [batch.id for batch in batches[0]]
    at = ids.index(place.batch) if place.batch is not None else min(map(len, batches))
    mine, theirs = (
        ran[at] if at < len(ran) else side.error if side is not None else None
        for ran, side in zip(batches, sides, strict=True)
    )
    batch = next((side.id for side in (mine, theirs) if isinstance(side, BatchProgress)), None)
    return VersionDivergence(place.step, batch, mine, theirs)


def _responsible(case: Case, here: Prediction, there: Prediction, first: VersionDivergence) -> Iterator[RuleChanged]:
    """The refusal that stops one of them here, or every rule that alone makes the first behave like the second."""
    mine, theirs = rules_of(here.version), rules_of(there.version)
    refused = {side.name for side in (first.here, first.there) if isinstance(side, Refused)}
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
        following = _first(other, there)
        if following is None or _is_later(following, first):
            yield change


def _is_later(place: VersionDivergence, other: VersionDivergence) -> bool:
    if place.step != other.step:
        return place.step > other.step
    if place.batch is None or other.batch is None:
        return place.batch != other.batch
    return place.batch > other.batch


def _alternatives(
    mine: Rules, theirs: Rules, here: SparkVersion, there: SparkVersion
) -> Iterator[tuple[Rules, RuleChanged]]:
    for name in differing(mine, theirs):
        if name in catalogue():
            rule = catalogue()[name]
            changed = RuleChanged(name, rule.source, rule.at(here).says, rule.at(there).says)
            yield replace(mine, **{name: getattr(theirs, name)}), changed
    for refusal in refusals():
        wordings = [rules.refusals.get(refusal.name) for rules in (mine, theirs)]
        if wordings[0] != wordings[1]:
            worded = {**mine.refusals, refusal.name: wordings[1]}
            known = {name: wording for name, wording in worded.items() if wording is not None}
            said = [f"refused: {wording.text}" if wording else "not refused" for wording in wordings]
            yield replace(mine, refusals=known), RuleChanged(refusal.name, refusal.source, *said)
    for feature in sorted(mine.features ^ theirs.features):
        said = [f"{feature} is {'' if feature in rules.features else 'not '}available" for rules in (mine, theirs)]
        yield replace(mine, features=mine.features ^ {feature}), RuleChanged(feature, features()[feature].link, *said)
