"""What a case reaches in the reference model: the rules it is decided by, and what happens in its micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from conformance.core.case import Case, Restart
from conformance.core.versions import SparkVersion
from conformance.fuzzing.cached_prediction import model_says
from conformance.model.catalogue import rules_of
from conformance.model.query import ALLOW_MULTIPLE
from conformance.model.rules import Rules
from conformance.oracle.prediction import Prediction

_NAMES = frozenset(field.name for field in fields(Rules)) - {"refusals", "features"}


@dataclass(frozen=True)
class Reached:
    """What the model says of a case, and what it looked at to say so."""

    prediction: Prediction
    rules: frozenset[str]
    """The rules that were asked."""
    traits: frozenset[str]
    """Those with their outcomes, and what was seen in micro-batches: a case with a trait that none had before is worth keeping."""


def reached(case: Case, version: SparkVersion) -> Reached:
    """Predict a case and watch.

    Raises:
        Unpredictable: the model does not know what the case does.
    """
    asked: set[str] = set()
    outcomes: set[str] = set()
    prediction = model_says(case, version, _watched(rules_of(version), asked, outcomes))
    if case.conf.get(ALLOW_MULTIPLE) == "false":
        # Such a query makes itself rules of its own, and copying them looks at every one.
        asked.clear()
    traits = {*asked, *outcomes, *_seen(case, prediction)}
    return Reached(prediction, frozenset(asked), frozenset(traits))


def _watched(rules: Rules, asked: set[str], outcomes: set[str]) -> Rules:
    """The same rules, which tell who is asked and what is answered."""

    class Watched(Rules):
        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if name not in _NAMES:
                return value
            asked.add(name)
            return _telling(name, value, outcomes) if callable(value) else value

    return Watched(**{field.name: getattr(rules, field.name) for field in fields(Rules)})


def _telling(name: str, rule: Callable[..., Any], outcomes: set[str]) -> Callable[..., Any]:
    def asked(*arguments: Any) -> Any:
        found = rule(*arguments)
        if isinstance(found, bool):
            # At a boundary the readings of a rule part: that is an outcome of its own.
            meet = len(arguments) == 2 and all(isinstance(one, int) for one in arguments)
            beside = arguments[0] - arguments[1] * 1000 if meet else None
            outcomes.add(f"{name}: {found}" + (f" at {beside}" if beside is not None and abs(beside) <= 1000 else ""))
        return found

    return asked


def _seen(case: Case, prediction: Prediction) -> Iterator[str]:
    mode = case.output_mode
    for step in prediction.story:
        action = step.step.action
        how = f"after {action.how}" if isinstance(action, Restart) else case.trigger
        if step.error is not None:
            yield f"refused: {step.error.name} at {step.error.stage}"
        for batch in step.batches:
            for one in batch.operators:
                did = [
                    name
                    for name, count in (
                        ("late", len(one.late)),
                        ("evicts", len(one.evicted)),
                        ("drops", one.dropped),
                        ("doubles", one.duplicates),
                        ("holds", one.held),
                        ("emits", len(batch.emitted)),
                    )
                    if count
                ]
                yield f"{one.title} {mode} {batch.kind} {how}: {', '.join(did) or 'nothing'}"
            moved = batch.advance.after_ms - batch.advance.before_ms
            inputs = sum(one.highest_ms is not None for one in batch.advance.nodes)
            yield f"watermark of {inputs} of {len(batch.advance.nodes)}: {'on' if moved > 0 else 'back' if moved < 0 else 'still'}"
