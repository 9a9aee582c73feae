"""Fills in the expectations of a case from what an engine did: adds an ``expect`` to each step of its text.

The text is edited in place, so comments, order and layout are preserved. The strength of the case becomes ``observed``: true
today, but not documented.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from conformance.core.case import Case
from conformance.core.data import LOADER, Json
from conformance.core.errors import WrongUsage
from conformance.core.observation import GENERIC, ErrorSeen, Observation, StepSeen
from conformance.core.values import show
from conformance.judging.step_comparison import OutputSchema
from conformance.language.printing import inline

_CHANGING = re.compile(r"[\d;]|\bfile:|(?<=\s)/")
"""Where the part of a message begins that another run may word differently."""
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
"""What means something in a regular expression."""


@dataclass(frozen=True)
class _Edit:
    begin: int
    end: int
    text: str


def fill_in_expectations(text: str, case: Case, observation: Observation, *, replace: bool = False) -> str:
    """The text of the case with expectations that this observation meets; ``replace``: also in place of existing ones. Raises `WrongUsage`
    if every step has an expectation, or the engine ran no step, or failed before the last one, where a case must end."""
    top = yaml.compose(text, Loader=LOADER)
    assert isinstance(top, yaml.MappingNode)
    steps = _value(top, "steps")
    assert isinstance(steps, yaml.SequenceNode)
    if not observation.steps:
        raise WrongUsage(f"{case.id}: the engine ran no step")
    last = observation.steps[-1]
    if last.error is not None and last.number < len(case.steps):
        name = next(iter(last.error.classes), "an error")
        raise WrongUsage(
            f"{case.id}: step {last.number} fails ({name} at {last.error.stage}), but it is not the last step: "
            "remove the later steps, or record with a version on which it succeeds"
        )
    edits: list[_Edit] = []
    for node, seen in zip(steps.value, observation.steps, strict=False):
        assert isinstance(node, yaml.MappingNode)
        schema = OutputSchema.of(observation.columns_of(seen))
        edits += _step(text, node, inline(observed_expectation(seen, schema, case)), replace=replace)
    if not edits:
        raise WrongUsage(f"{case.id}: every step already has an expectation, and replacing them was not requested")
    edits += _strength(text, top)
    for edit in sorted(edits, key=lambda edit: edit.begin, reverse=True):
        text = text[: edit.begin] + edit.text + text[edit.end :]
    return text


def observed_expectation(seen: StepSeen, schema: OutputSchema, case: Case) -> dict[str, Json]:
    """The observed step as an expectation, structured like the YAML."""
    if seen.error is not None:
        return {"error": _error(seen.error)}
    batches = seen.batches[-1:] if case.output_mode_in(seen.number) == "complete" else seen.batches
    rows = [schema.as_written(row) for batch in batches for row in batch.rows]
    expectation: dict[str, Json] = {"rows": sorted(rows, key=json.dumps), "watermark": show(seen.watermark * 1000)}
    if seen.batches:
        state = seen.batches[-1].state
        expectation["state"] = list(state) if len(state) > 1 else sum(state)
        dropped = [batch.dropped for batch in seen.batches if batch.dropped is not None]
        if len(dropped) == len(seen.batches):
            expectation["dropped"] = sum(dropped)
    return expectation


def _error(error: ErrorSeen) -> dict[str, Json]:
    """The class that says what the error is; if many errors have it, also the beginning of the message."""
    described: dict[str, Json] = {"class": error.name} if error.name else {}
    # Up to what differs from run to run: numbers, plans and paths.
    fixed = _CHANGING.split(error.first_line, maxsplit=1)[0].strip()
    if fixed and (error.name in GENERIC or not error.name):
        described["message"] = _SPECIAL.sub(r"\\\g<0>", fixed)
    return {**described, "stage": error.stage}


def _step(text: str, node: yaml.MappingNode, expectation: str, *, replace: bool) -> Iterator[_Edit]:
    if (present := _value(node, "expect")) is not None:
        if replace:
            yield _Edit(present.start_mark.index, _end(present), expectation)
        return
    if node.flow_style:
        brace = node.end_mark.index - 1
        yield _Edit(len(text[:brace].rstrip()), brace, f", expect: {expectation}")
        return
    # After the last line of the step, including a trailing comment.
    end = text.find("\n", _end(node))
    end = len(text) if end < 0 else end
    yield _Edit(end, end, f"\n{' ' * node.value[0][0].start_mark.column}expect: {expectation}")


def _strength(text: str, top: yaml.MappingNode) -> Iterator[_Edit]:
    if (present := _value(top, "strength")) is not None:
        yield _Edit(present.start_mark.index, present.end_mark.index, "observed")
        return
    title = _value(top, "title")
    assert title is not None
    end = text.find("\n", max(_end(title) - 1, 0))
    end = len(text) if end < 0 else end
    yield _Edit(end, end, "\nstrength: observed")


def _value(node: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for name, value in node.value if name.value == key), None)


def _end(node: yaml.Node) -> int:
    """The index where the text of a node ends; the end mark of a block collection includes the comments after it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)
