"""Whether two answers to one case are the same, where they first differ, and what that means for an upgrade.

This is the only comparison of two answers: engine with engine, engine with model, version with version, file with file. It compares
``Observation.behaviour`` field by field, with these rules:

- A micro-batch without ``dropped`` says nothing about it: versions before 3.1 have no such metric.
- Rows are compared as a multiset, by value: ``1.0`` and ``1.00`` are the same DECIMAL. Doubles are compared to nine decimals, and those
  of two engines to 12 digits and by sign, too: -0.0 is not 0.0. The order of rows is not compared, not even where the
  plan ends in a sort.
- Output columns are compared by name and type between two answers (`difference`), if both have some and nothing before them differs; a
  model predicts rows, not columns. They are not part of digests.
- The watermark after a step that failed is not compared, since no micro-batch can run with it.
- Watermarks are not compared at all if the event time is the engine's clock (``instants=False``).
- Errors are the same if their stage and their class are; only their stage counts if one of the answers is a model's, which does not
  predict every class of an error (``error_classes=False``).
"""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import ge
from typing import Literal, Protocol, TypeAlias

from conformance.core.observation import BatchBehaviour, BatchSeen, ErrorSeen, Observation, StepBehaviour, StepSeen
from conformance.core.values import show
from conformance.core.wording import counted
from conformance.judging.consistency import digest_omits_instants
from conformance.judging.step_comparison import OutputSchema
from conformance.judging.verdict import Status

Aspect: TypeAlias = Literal[
    "id",
    "kind",
    "watermark",
    "dropped",
    "rows",
    "state",
    "next_watermark",
    "error",
    "micro-batches",
    "watermark after the step",
    "columns",
    "steps",
    "status",
]
"""What differs: a field of a micro-batch, then of a step, then of the whole answer, in the order of comparison."""
BehaviourValue: TypeAlias = int | str | tuple[int, ...] | tuple[str, ...] | None
Schemas: TypeAlias = tuple[OutputSchema, OutputSchema]

_OF_A_BATCH: tuple[Aspect, ...] = ("id", "kind", "watermark", "dropped", "rows", "state", "next_watermark")
"""Every field of ``BatchBehaviour``, causes before effects."""
_ROWS_SHOWN = 5


@dataclass(frozen=True)
class Divergence:
    step: int | None
    """None if one of the two has no answer (``status``)."""
    batch: int | None
    """None if the whole step differs."""
    what: Aspect
    a: BehaviourValue
    """For ``rows``, the rows that only this answer has."""
    b: BehaviourValue

    @property
    def place(self) -> str:
        """``step 1, micro-batch 2``; empty without a step."""
        step = "" if self.step is None else f"step {self.step}"
        return step if self.batch is None else f"{step}, micro-batch {self.batch}"

    @property
    def values(self) -> tuple[str, str]:
        return self._text(self.a), self._text(self.b)

    def __str__(self) -> str:
        a, b = self.values
        return f"{self.place}: {self.what} {a} | {b}" if self.place else f"{self.what} {a} | {b}"

    def _text(self, value: BehaviourValue) -> str:
        if self.what == "rows" and isinstance(value, tuple):
            shown = ", ".join(json.dumps(json.loads(str(row)), ensure_ascii=False) for row in value[:_ROWS_SHOWN])
            more = f" and {len(value) - _ROWS_SHOWN} more" if len(value) > _ROWS_SHOWN else ""
            return f"only here: {shown}{more}" if value else "nothing else"
        if "watermark" in self.what and isinstance(value, int):
            return show(value * 1000)
        return value if isinstance(value, str) else json.dumps(value)


def divergence(
    a: Observation, b: Observation, *, upto: int | None = None, instants: bool = True, error_classes: bool = True
) -> Divergence | None:
    """The first place where two answers differ, None if they are the same; see `divergences`."""
    return next(divergences(a, b, upto=upto, instants=instants, error_classes=error_classes), None)


def divergences(
    a: Observation, b: Observation, *, upto: int | None = None, instants: bool = True, error_classes: bool = True
) -> Iterator[Divergence]:
    """Yield every place where two answers to one case differ.

    Args:
        upto: the last step to compare; None for all.
        instants: whether watermarks are compared.
        error_classes: whether errors are compared by their class too.
    """
    steps = [[step for step in answer.steps if upto is None or step.number <= upto] for answer in (a, b)]
    for step, other in zip(*steps, strict=False):
        one, two = (seen.behaviour if instants else seen.behaviour.without_instants() for seen in (step, other))
        exact = OutputSchema.of(a.columns_of(step), exact=error_classes)
        schemas = exact, OutputSchema.of(b.columns_of(other), exact=error_classes)
        yield from _of_steps(step.number, one, two, schemas, error_classes=error_classes)
    if len(steps[0]) != len(steps[1]):
        yield Divergence(min(map(len, steps)) + 1, None, "steps", len(steps[0]), len(steps[1]))


def batches_equivalent(a: BatchSeen, b: BatchSeen, schemas: Schemas) -> bool:
    return next(_of_batches(0, a.behaviour, b.behaviour, schemas), None) is None


def steps_equivalent(a: StepSeen, b: StepSeen, schemas: Schemas) -> bool:
    """Whether two steps are the same, if only the stage of an error counts."""
    return next(_of_steps(a.number, a.behaviour, b.behaviour, schemas, error_classes=False), None) is None


def different_rows(a: Iterable[str], b: Iterable[str], schemas: Schemas) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rows that only one of two multisets has, sorted; rows are JSON, as in ``BatchBehaviour``."""
    left, right = Counter(a), Counter(b)
    only_a, only_b = left - right, right - left
    if only_a and only_b:  # perhaps the same values, written in two ways
        values = [
            Counter(_value(row, schema) for row in rows.elements())
            for rows, schema in zip((only_a, only_b), schemas, strict=True)
        ]
        common = values[0] & values[1]
        only_a, only_b = _without(only_a, common, schemas[0]), _without(only_b, common, schemas[1])
    return tuple(sorted(only_a.elements())), tuple(sorted(only_b.elements()))


def _value(row: str, schema: OutputSchema) -> str:
    return _text(schema.comparable(tuple(json.loads(row))))


def _text(value: Hashable) -> str:
    """Return a value as text, the same for equal maps, so that NaN is NaN and 1 is not true."""
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    return f"({', '.join(map(_text, value))})" if isinstance(value, tuple) else repr(value)


def _without(rows: Counter[str], common: Counter[str], schema: OutputSchema) -> Counter[str]:
    left, kept = Counter(common), Counter[str]()
    for row in sorted(rows.elements()):
        value = _value(row, schema)
        kept[row] += not left[value]
        left[value] -= left[value] > 0
    return kept


def _of_steps(
    step: int, a: StepBehaviour, b: StepBehaviour, schemas: Schemas, *, error_classes: bool
) -> Iterator[Divergence]:
    for batch, other in zip(a.batches, b.batches, strict=False):
        yield from _of_batches(step, batch, other, schemas)
    errors = [side.error if side.error is None or error_classes else side.error._replace(name="") for side in (a, b)]
    if errors[0] != errors[1]:
        yield Divergence(step, None, "error", *(str(side.error) if side.error else "none" for side in (a, b)))
    if len(a.batches) != len(b.batches):
        yield Divergence(step, None, "micro-batches", len(a.batches), len(b.batches))
    if a.watermark != b.watermark and a.error is None and b.error is None:
        yield Divergence(step, None, "watermark after the step", a.watermark, b.watermark)


def _of_batches(step: int, a: BatchBehaviour, b: BatchBehaviour, schemas: Schemas) -> Iterator[Divergence]:
    for field in _OF_A_BATCH:
        value, other = getattr(a, field), getattr(b, field)
        if value == other or (field == "dropped" and None in (value, other)):
            continue
        if field == "rows":
            value, other = different_rows(value, other, schemas)
            if not value and not other:
                continue
        yield Divergence(step, a.id, field, value, other)


# Answers that are judged.

Silence: TypeAlias = Literal["not applicable", "no answer"]

WITHOUT_BEHAVIOUR: Mapping[Status, Silence] = {
    "not-applicable": "not applicable",
    "broken": "no answer",
    "not-run": "no answer",
    "flaky": "no answer",
}
"""Statuses of answers whose behaviour cannot be compared."""


class DocumentedEntry(Protocol):
    """The ``differs`` entry of the case that covers the version of an answer."""

    @property
    def unsupported(self) -> str | None: ...


class Answer(Protocol):
    """What an engine answered to a case, and its verdict: of a run, or of a results file."""

    @property
    def status(self) -> Status: ...

    @property
    def behaviour(self) -> str | None:
        """The digest of what was observed: equal digests, equal behaviour."""

    @property
    def observation(self) -> Observation | None: ...

    @property
    def differs(self) -> DocumentedEntry | None: ...


def has_behaviour(answer: Answer | None) -> bool:
    return answer is not None and answer.behaviour is not None and answer.status not in WITHOUT_BEHAVIOUR


def difference(a: Answer, b: Answer) -> Divergence | None:
    """Find the first place where two answers differ; None if they show the same behaviour and emit the same columns."""
    if a.observation is None or b.observation is None:
        return None if a.behaviour == b.behaviour else difference_of_statuses(a, b)
    return next(_all_differences(a, b), None)


def difference_of_statuses(a: Answer, b: Answer) -> Divergence:
    return Divergence(None, None, "status", a.status, b.status)


def _all_differences(a: Answer, b: Answer) -> Iterator[Divergence]:
    """Yield every place where two answers differ, in order; none if one of them has no observation."""
    if a.observation is not None and b.observation is not None:
        if a.behaviour != b.behaviour:
            yield from divergences(a.observation, b.observation, instants=_instants_count(a, b))
        yield from _of_columns(a.observation, b.observation)


def _of_columns(a: Observation, b: Observation) -> Iterator[Divergence]:
    for step, other in zip(a.steps, b.steps, strict=False):
        columns = a.columns_of(step), b.columns_of(other)
        if all(columns) and columns[0] != columns[1]:
            sides = (", ".join(f"{column.name} {column.type}" for column in side) for side in columns)
            yield Divergence(step.number, None, "columns", *sides)


def _instants_count(a: Answer, b: Answer) -> bool:
    """Whether watermarks are compared. An answer does not say that its case reads the clock, but its digest does."""
    return not any(
        answer.observation is not None and digest_omits_instants(answer.behaviour, answer.observation)
        for answer in (a, b)
    )


def code_of_comparison(*, different: bool, asked: int, compared: int) -> int:
    """The exit code of a comparison: 1 if something differs, which is certain whatever else was not compared, 3 if nothing was compared
    or less than was asked for, else 0."""
    return 1 if different else 0 if 0 < compared >= asked else 3


# What a difference means for an upgrade.

Meaning: TypeAlias = Literal["rows", "refused", "timing", "accepted", "metric"]


@dataclass(frozen=True)
class MeaningText:
    glyph: str
    title: str
    explained: str


MEANINGS: Mapping[Meaning, MeaningText] = {
    "rows": MeaningText("✗", "Rows lost, added or with different values", "The same input gives a different result."),
    "refused": MeaningText("⊘", "Refused, or fails", "The query, or its checkpoint, no longer runs."),
    "timing": MeaningText("◷", "Rows emitted later or earlier", "The same rows, in a different micro-batch."),
    "accepted": MeaningText(
        "+", "Newly accepted", "A query that was refused, or a feature that did not exist, now runs."
    ),
    "metric": MeaningText(
        "∘", "Only a metric or an error", "The rows are the same; the watermark, state or counts differ."
    ),
}
"""Every kind of change, worst first."""

OF_ROWS: frozenset[Meaning] = frozenset({"rows", "refused", "timing"})
"""What the rows of a running query can meet; the other kinds change only what Spark accepts or reports."""

MOVES_ROWS: frozenset[Meaning] = frozenset({"rows", "timing"})
"""The rows themselves differ, or their micro-batches."""

_EFFECTS = ("no longer emitted", "more row", "different", "later", "earlier", "output columns")
"""In the words of `_meaning`."""


@dataclass(frozen=True)
class BehaviourChange:
    """What changes from an answer to one that does not show the same behaviour."""

    meaning: Meaning
    what: str
    """A sentence about the later version."""
    where: Divergence
    met_by_running_queries: bool
    """False if the earlier version never ran the query, or failed on it and the later one only fails otherwise."""
    step: int | None
    """The step that first shows the change: a metric may differ before the rows do. None if no observation was recorded."""

    @property
    def effect(self) -> str:
        """What becomes of rows, however many they are: ``later``; empty if only digests tell. Of other kinds, all of ``what``."""
        if self.meaning not in MOVES_ROWS:
            return self.what
        return next((effect for effect in _EFFECTS if effect in self.what), "")


def behaviour_change(before: Answer, after: Answer, where: Divergence) -> BehaviourChange:
    """Classify what changes between two answers; ``where``: their first difference."""
    meaning, what = _meaning(before, after)
    shown_by = "rows" if meaning in MOVES_ROWS else "error"
    shown = next((place for place in _all_differences(before, after) if place.what == shown_by), where)
    return BehaviourChange(meaning, what, where, _is_met_by_running_queries(before, after, meaning), shown.step)


def _is_met_by_running_queries(before: Answer, after: Answer, meaning: Meaning) -> bool:
    if meaning == "accepted":
        return False
    seen = before.observation
    if seen is None or seen.error is None:
        return True
    return _ran(seen) and any(place.what != "error" for place in _all_differences(before, after))


def _meaning(before: Answer, after: Answer) -> tuple[Meaning, str]:
    a, b = before.observation, after.observation
    if a is None or b is None:
        return "metric", "no observation was recorded"
    old, new = a.error, b.error
    # If only one of two failing versions ran, it alone has a feature: no rows are lost or added by that.
    if new is not None and (old is None or (_ran(a) and not _ran(b))):
        return "refused", _refusal(new)
    if old is not None and new is None:
        return "accepted", f"runs; {_before(before, old)}"
    if old is not None and new is not None and _ran(b) and not _ran(a):
        return "accepted", f"starts, then {_refusal(new)}; {_before(before, old)}"
    lost, added = _different_rows(a, b)
    if lost or added:
        return _other_rows(a, b, lost, added)
    if old is not None and new is not None:
        if _is_absent(before) and not _is_absent(after):
            return "metric", f"{_refusal(new)}; {_before(before, old)}"
        if old.stage != new.stage:
            return "metric", f"fails at {new.stage} instead of {old.stage}"
        if old.name != new.name:
            return "metric", f"fails with {new.title} instead of {old.title}"
    if columns := next(_of_columns(a, b), None):
        return "rows", f"output columns {columns.b} instead of {columns.a}"
    if moved := _moved(a, b):
        return "timing", moved
    return "metric", _metrics(before, after)


def contrast(own: Answer, other: Answer, name: str) -> str:
    """Say what a version does and what another does with the same case, whichever is older; ``name``: the other version."""
    a, b = own.observation, other.observation
    if a is None or b is None:
        return "no observation was recorded"
    mine, theirs = a.error, b.error
    outcomes = f"here the query {_outcome(a, own)}; on {name} it {_outcome(b, other)}"
    if (mine is None) != (theirs is None) or (mine is not None and _ran(a) != _ran(b)):
        return outcomes
    only_here, only_there = _different_rows(a, b)
    if only_here or only_there:
        return _rows_apart(a, b, only_here, only_there, name)
    if mine is not None and theirs is not None and (mine.stage, mine.name) != (theirs.stage, theirs.name):
        return outcomes
    if columns := next(_of_columns(a, b), None):
        return f"output columns {columns.a} here, {columns.b} on {name}"
    if moved := _moved(b, a):
        return f"{moved}, compared with {name}"
    return _metrics(own, other)


def _outcome(observation: Observation, answer: Answer) -> str:
    if (error := observation.error) is None:
        return "runs"
    if _is_absent(answer):
        return f"uses a feature that is not available ({error.title})"
    return f"starts, then {_refusal(error)}" if _ran(observation) else _refusal(error)


def _rows_apart(a: Observation, b: Observation, only_here: int, only_there: int, name: str) -> str:
    if only_here == only_there:
        return f"{counted(only_here, 'row')} {'has' if only_here == 1 else 'have'} other values here than on {name}"
    parts = [f"{counted(only_here, 'row')} emitted only here"] if only_here else []
    parts += [f"{counted(only_there, 'row')} emitted only on {name}"] if only_there else []
    if more := _dropped(a) - _dropped(b):
        parts.append(f"{abs(more)} more dropped as late {'here' if more > 0 else f'on {name}'}")
    elif _held(a) != _held(b):
        parts.append(f"state at the end: {counted(_held(a), 'row')} here, {_held(b)} on {name}")
    return ", ".join(parts)


def _is_absent(answer: Answer) -> bool:
    return answer.differs is not None and answer.differs.unsupported is not None


def _ran(observation: Observation) -> bool:
    return any(step.batches for step in observation.steps)


def _refusal(error: ErrorSeen) -> str:
    if error.own_code is not None:
        return error.title
    verb = "fails while it runs" if error.stage == "run" else f"is refused at {error.stage}"
    return f"{verb}: {error.title}"


def _before(answer: Answer, error: ErrorSeen) -> str:
    if _is_absent(answer):
        return f"not available before ({error.title})"
    verb = "failed while it ran" if error.stage == "run" else f"was refused at {error.stage}"
    return f"it {verb} ({error.title}) before"


def _rows(observation: Observation) -> list[str]:
    return [row for step in observation.steps for batch in step.batches for row in batch.behaviour.rows]


def _different_rows(a: Observation, b: Observation) -> tuple[int, int]:
    only_a, only_b = different_rows(
        _rows(a), _rows(b), (OutputSchema.of(a.columns, exact=True), OutputSchema.of(b.columns, exact=True))
    )
    return len(only_a), len(only_b)


def _other_rows(a: Observation, b: Observation, lost: int, added: int) -> tuple[Meaning, str]:
    """Tell of rows that only one version emitted: they are lost, or late if they are still in state when the case ends."""
    held, dropped = _held(b) - _held(a), _dropped(b) - _dropped(a)
    if lost and not added and held >= lost and dropped <= 0:
        return "timing", f"{counted(lost, 'row')} later: still in state when the case ends"
    if added and not lost and -held >= added and dropped >= 0:
        return "timing", f"{counted(added, 'row')} earlier: previously still in state when the case ends"
    if lost and added:
        same = f"{counted(lost, 'row')} {'has' if lost == 1 else 'have'} different values"
        return "rows", same if added == lost else f"{counted(added, 'different row')} instead of {lost}"
    if lost:
        late = f", {dropped} more dropped as late" if dropped > 0 else ""
        verb = "is" if lost == 1 else "are"
        return "rows", f"{lost} of {counted(len(_rows(a)), 'row')} {verb} no longer emitted{late}"
    fewer = f", {-dropped} fewer dropped as late" if dropped < 0 else ""
    return "rows", f"{counted(added, 'more row')} than before{fewer}"


def _held(observation: Observation) -> int:
    last = [sum(batch.state) for step in observation.steps for batch in step.batches]
    return last[-1] if last else 0


def _dropped(observation: Observation) -> int:
    return sum(batch.dropped or 0 for step in observation.steps for batch in step.batches)


def only_keeps_less_state(a: Observation | None, b: Observation | None) -> bool:
    """Return whether all that differs is that the second answer has fewer rows in the state of some operator, and more in none."""
    if a is None or b is None or any(place.what != "state" for place in divergences(a, b)):
        return False
    states = [(one.state, other.state) for one, other in zip(a.batches, b.batches, strict=True)]
    return all(len(earlier) == len(kept) and all(map(ge, earlier, kept)) for earlier, kept in states)


def only_moved(a: Observation, b: Observation) -> str | None:
    """Tell which rows come later or earlier in the second of two answers with the same rows; None if rows differ, or none moves."""
    return _moved(a, b) if _different_rows(a, b) == (0, 0) else None


def _moved(a: Observation, b: Observation) -> str | None:
    """Tell whether rows that both emitted come later or earlier; None if all come in the same place."""
    old_places, new_places = _places(a), _places(b)
    if old_places == new_places:
        return None
    pairs = [pair for row, old in old_places.items() for pair in zip(old, new_places.get(row, old), strict=False)]
    later, earlier = sum(new > old for old, new in pairs), sum(new < old for old, new in pairs)
    parts = [f"{counted(later, 'row')} later"] if later else []
    parts += [f"{counted(earlier, 'row')} earlier"] if earlier else []
    within = ", within the same step" if all(old[0] == new[0] for old, new in pairs) else ""
    return " and ".join(parts) + within


def _places(observation: Observation) -> dict[str, list[tuple[int, int]]]:
    places: dict[str, list[tuple[int, int]]] = {}
    for step in observation.steps:
        for at, batch in enumerate(step.batches):
            for row in batch.behaviour.rows:
                places.setdefault(row, []).append((step.number, at))
    return places


_METRICS: Mapping[Aspect, str] = {
    "micro-batches": "number of micro-batches",
    "watermark": "watermark",
    "next_watermark": "watermark",
    "watermark after the step": "watermark",
    "dropped": "rows dropped as late",
    "state": "rows in state",
    "kind": "kind of a micro-batch",
    "id": "micro-batch ids",
}


def _metrics(a: Answer, b: Answer) -> str:
    names = dict.fromkeys(_METRICS[place.what] for place in _all_differences(a, b) if place.what in _METRICS)
    return f"same rows; differs in {', '.join(names)}" if names else "same rows"
