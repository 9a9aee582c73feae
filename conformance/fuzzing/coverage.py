"""Generates cases: half of them new, half of them mutations of cases that covered something new in the reference model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from conformance.core.case import Case, Restart
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import catalogue, rules_of
from conformance.oracle.prediction import Prediction, predict
from conformance.strategies.cases import Generated, changed, generated
from conformance.strategies.pipelines import chosen


@dataclass(frozen=True)
class ModelCoverage:
    rules: frozenset[str]
    """The rules that the prediction depends on."""
    traits: frozenset[str]
    """The rules, their results, and what happens in micro-batches. A case with a new trait is worth mutating."""


def coverage_of(case: Case, version: SparkVersion) -> ModelCoverage:
    """Predict a case and record what it covers; Unpredictable if the model does not know what it does."""
    rules, results = rules_of(version), set[str]()
    functions = {name: value for name in catalogue() if callable(value := getattr(rules, name))}
    recording = {name: _recording(name, function, results) for name, function in functions.items()}
    prediction = predict(case, version, rules.altered(**recording))
    read = frozenset(prediction.read.rules.keys() & catalogue().keys())
    return ModelCoverage(read, read | results | {*_traits(case, prediction)})


def _recording(name: str, function: Callable[..., Any], results: set[str]) -> Callable[..., Any]:
    """A function of the rules that records what it returns."""

    def called(*arguments: Any) -> Any:
        result = function(*arguments)
        if isinstance(result, bool):
            # A comparison close to its boundary is a result of its own.
            is_comparison = len(arguments) == 2 and all(isinstance(argument, int) for argument in arguments)
            distance = arguments[0] - arguments[1] * 1000 if is_comparison else None
            near = f" at {distance}" if distance is not None and abs(distance) <= 1000 else ""
            results.add(f"{name}: {result}{near}")
        return result

    return called


def _traits(case: Case, prediction: Prediction) -> Iterator[str]:
    for step in prediction.steps:
        action = step.step.action
        how = f"after {action.how}" if isinstance(action, Restart) else case.trigger
        if step.error is not None:
            yield f"refused: {step.error.name} at {step.error.stage}"
        for batch in step.batches:
            for operator in batch.operators:
                counts = {
                    "late": len(operator.late),
                    "evicts": len(operator.evicted),
                    "drops": operator.dropped,
                    "duplicates": operator.duplicates,
                    "state": operator.state_rows,
                    "emits": len(batch.emitted),
                }
                effects = ", ".join(name for name, count in counts.items() if count) or "nothing"
                yield f"{operator.title} {case.output_mode} {batch.kind} {how}: {effects}"
            moved = batch.advance.after_ms - batch.advance.before_ms
            inputs = sum(node.highest_ms is not None for node in batch.advance.nodes)
            direction = "forward" if moved > 0 else "back" if moved < 0 else "unchanged"
            yield f"watermark of {inputs} of {len(batch.advance.nodes)}: {direction}"


_MOST_ROUNDS = 1_000_000
"""Per seed, so that the rounds of two seeds never share one."""
_A_ROUND = 12
"""Cases per round: more would make a Hypothesis example too long."""


class Drawing:
    """Generates cases of families: the same for the same seed and remembered cases; WrongUsage if there is no such family."""

    def __init__(self, families: Sequence[str], seed: int) -> None:
        self._families = chosen(families)
        self._seed = seed
        self._rounds = 0
        self._remembered: list[Generated] = []

    def remember(self, case: Generated) -> None:
        """Also generate mutations of this case from now on."""
        self._remembered.append(case)

    def some(self, count: int) -> list[Generated]:
        drawn = generated(self._families)
        if self._remembered:
            drawn = st.one_of(drawn, changed(tuple(self._remembered)))
        cases: list[Generated] = []
        while len(cases) < count:
            cases += self._round(drawn, min(_A_ROUND, count - len(cases)))
        return cases

    def _round(self, drawn: st.SearchStrategy[Generated], count: int) -> list[Generated]:
        """Some unrelated cases.

        Hypothesis generates most examples by mutating the previous one, so all cases are drawn in one example: the second,
        because the first is always the simplest possible.
        """
        rounds: list[list[Generated]] = []
        number = self._seed * _MOST_ROUNDS + self._rounds
        self._rounds += 1

        @seed(number)
        @settings(
            max_examples=2, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
        )
        @given(st.data())
        def collect(data: st.DataObject) -> None:
            rounds.append([])
            while len(rounds[-1]) < count:
                rounds[-1].append(data.draw(drawn))

        collect()
        # Hypothesis aborts an example that grows too long; the cases drawn until then are still there.
        return max(rounds[1:], key=len, default=[])
