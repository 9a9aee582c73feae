"""Expectations filled in from what an engine did: the text of a case with an ``expect`` in each step, all else as it was.

Comments, order and layout stay, for the text is edited and not written anew. What is recorded is ``observed``: true today,
promised nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import yaml

from conformance.core.case import Case
from conformance.core.observation import ErrorSeen, Observation, StepSeen
from conformance.core.values import show
from conformance.judging.rows import OutputSchema
from conformance.language.printing import inline

Json: TypeAlias = Any

STRENGTH = "strength: observed"


class NothingToRecord(ValueError):
    """The engine showed nothing, or every step says already what is expected."""

    exit_code: ClassVar[int] = 2


class EndsEarly(ValueError):
    """The engine failed at a step that is not the last: a case ends where it expects an error."""

    exit_code: ClassVar[int] = 2

    def __init__(self, case: str, step: int, error: ErrorSeen) -> None:
        name = next(iter(error.classes), "an error")
        super().__init__(
            f"{case}: step {step} fails here ({name} at {error.stage}) and steps come after it: "
            "take them out, or record on a version that runs it"
        )
        self.step = step
        self.error = error


@dataclass(frozen=True)
class _Edit:
    begin: int
    end: int
    text: str


def fill_in_expectations(text: str, case: Case, observation: Observation, *, anew: bool = False) -> str:
    """The case's text with the expectations that this observation meets.

    Args:
        text: the content of the case's file.
        case: what was read from it.
        observation: what an engine did with it.
        anew: replace what steps expect already, too.

    Raises:
        NothingToRecord: no step is without an expectation, or nothing was seen.
        EndsEarly: it failed, and the case has steps after that.
    """
    top = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(top, yaml.MappingNode)
    steps = _value(top, "steps")
    assert isinstance(steps, yaml.SequenceNode)
    if not observation.steps:
        raise NothingToRecord(f"{case.id}: the engine showed nothing")
    last = observation.steps[-1]
    if last.error is not None and last.number < len(case.steps):
        raise EndsEarly(case.id, last.number, last.error)
    edits: list[_Edit] = []
    schema = OutputSchema.of(observation.columns)
    for node, seen in zip(steps.value, observation.steps, strict=False):
        assert isinstance(node, yaml.MappingNode)
        edits += _step(text, node, inline(shown(seen, schema, case)), anew=anew)
    if not edits:
        raise NothingToRecord(f"{case.id}: every step says already what it expects; record it anew to replace that")
    edits += _strength(text, top)
    for edit in sorted(edits, key=lambda edit: edit.begin, reverse=True):
        text = text[: edit.begin] + edit.text + text[edit.end :]
    return text


def shown(seen: StepSeen, schema: OutputSchema, case: Case) -> dict[str, Json]:
    """What a step showed, as an expectation that it meets, in the shape of the YAML."""
    if seen.error is not None:
        return {"error": _error(seen.error)}
    batches = seen.batches[-1:] if case.output_mode == "complete" else seen.batches
    rows = [schema.as_written(row) for batch in batches for row in batch.rows]
    said: dict[str, Json] = {"rows": sorted(rows, key=json.dumps), "watermark": show(seen.watermark * 1000)}
    if seen.batches:
        said["state"] = sum(seen.batches[-1].state)
        dropped = [batch.dropped for batch in seen.batches if batch.dropped is not None]
        if len(dropped) == len(seen.batches):
            said["dropped"] = sum(dropped)
    return said


def _error(error: ErrorSeen) -> dict[str, Json]:
    name = next(iter(error.classes), None)
    return {**({"class": name} if name else {}), "stage": error.stage}


def _step(text: str, node: yaml.MappingNode, expectation: str, *, anew: bool) -> Iterator[_Edit]:
    there = _value(node, "expect")
    if there is not None:
        if anew:
            yield _Edit(there.start_mark.index, _end(there), expectation)
        return
    if node.flow_style:
        brace = node.end_mark.index - 1
        yield _Edit(len(text[:brace].rstrip()), brace, f", expect: {expectation}")
        return
    # After the last line of the step, whatever comment stands behind its value.
    end = text.find("\n", _end(node))
    end = len(text) if end < 0 else end
    yield _Edit(end, end, f"\n{' ' * node.value[0][0].start_mark.column}expect: {expectation}")


def _strength(text: str, top: yaml.MappingNode) -> Iterator[_Edit]:
    there = _value(top, "strength")
    if there is not None:
        yield _Edit(there.start_mark.index, there.end_mark.index, "observed")
        return
    title = _value(top, "title")
    assert title is not None
    end = text.find("\n", max(_end(title) - 1, 0))
    end = len(text) if end < 0 else end
    yield _Edit(end, end, f"\n{STRENGTH}")


def _value(node: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for name, value in node.value if name.value == key), None)


def _end(node: yaml.Node) -> int:
    """Where the text of a node ends; a block collection's own mark lies behind the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)
