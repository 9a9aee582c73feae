"""What a case covers in the reference model: the rules that are read, their results, and what happens in its micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from conformance.core.case import Case, Restart
from conformance.core.versions import SparkVersion
from conformance.fuzzing.oracle import cached_prediction
from conformance.model.catalogue import catalogue, rules_of
from conformance.model.rules import Rules
from conformance.oracle.prediction import Prediction


@dataclass(frozen=True)
class ModelCoverage:
    prediction: Prediction
    rules: frozenset[str]
    """The rules that the prediction depends on."""
    traits: frozenset[str]
    """The rules, their results, and what happens in micro-batches. A case with a new trait is worth mutating."""


def coverage_of(case: Case, version: SparkVersion) -> ModelCoverage:
    """Predict a case and record what it covers.

    Raises:
        Unpredictable: the model does not know what the case does.
    """
    recording = RecordingRules(rules_of(version), _Recorded())
    prediction = cached_prediction(case, version, cast(Rules, recording))
    record = recording.record
    traits = {*record.rules, *record.results, *_traits(case, prediction)}
    return ModelCoverage(prediction, frozenset(record.rules), frozenset(traits))


@dataclass
class _Recorded:
    rules: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)


class RecordingRules:
    """A view of ``Rules`` that records which rules the model reads, and what their functions return."""

    def __init__(self, rules: Rules, record: _Recorded) -> None:
        self.rules = rules
        self.record = record

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.rules, name)
        if name not in catalogue():
            return value
        self.record.rules.add(name)
        return self._recording(name, value) if callable(value) else value

    def altered(self, **values: Any) -> RecordingRules:
        return RecordingRules(self.rules.altered(**values), self.record)

    def _recording(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            result = function(*arguments)
            if isinstance(result, bool):
                # A comparison close to its boundary is a result of its own.
                is_comparison = len(arguments) == 2 and all(isinstance(one, int) for one in arguments)
                distance = arguments[0] - arguments[1] * 1000 if is_comparison else None
                near = f" at {distance}" if distance is not None and abs(distance) <= 1000 else ""
                self.record.results.add(f"{name}: {result}{near}")
            return result

        return called


def _traits(case: Case, prediction: Prediction) -> Iterator[str]:
    for step in prediction.steps:
        action = step.step.action
        how = f"after {action.how}" if isinstance(action, Restart) else case.trigger
        if step.error is not None:
            yield f"refused: {step.error.name} at {step.error.stage}"
        for batch in step.batches:
            for one in batch.operators:
                counts = {
                    "late": len(one.late),
                    "evicts": len(one.evicted),
                    "drops": one.dropped,
                    "duplicates": one.duplicates,
                    "state": one.state_rows,
                    "emits": len(batch.emitted),
                }
                effects = ", ".join(name for name, count in counts.items() if count) or "nothing"
                yield f"{one.title} {case.output_mode} {batch.kind} {how}: {effects}"
            moved = batch.advance.after_ms - batch.advance.before_ms
            inputs = sum(one.highest_ms is not None for one in batch.advance.nodes)
            direction = "forward" if moved > 0 else "back" if moved < 0 else "unchanged"
            yield f"watermark of {inputs} of {len(batch.advance.nodes)}: {direction}"
