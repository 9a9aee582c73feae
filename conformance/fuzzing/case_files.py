"""A find as a file: a case that expects what one voice said and knows that another said otherwise, and how to see it again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from conformance.core.case import Case
from conformance.core.observation import StepSeen
from conformance.fuzzing.comparison import Difference, Rules, Said
from conformance.fuzzing.discrepancy import Discrepancy
from conformance.judging.rows import OutputSchema
from conformance.language import case_from
from conformance.language.printing import inline, printed
from conformance.language.problem import InvalidCase
from conformance.suite.record_expectations import observed_expectation

Json: TypeAlias = Any

_TICKET = re.compile(r"SPARK-\d+|https?://\S+")


def written_into(folder: Path, find: Discrepancy, command: str) -> Path:
    """Write a find; the name of its file says what it is, and is one that is not there.

    Args:
        folder: made where it is not there.
        find: what to write.
        command: that finds it again, for the head of the file.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number, file = 1, folder / f"{find.name}.yaml"
    while file.exists():
        number += 1
        file = folder / f"{find.name}-{number}.yaml"
    file.write_text(text_of(find, command, file), encoding="utf-8")
    return file


def text_of(find: Discrepancy, command: str, file: Path) -> str:
    """The text of the file of a find: comments for people, and a valid case."""
    head = "".join(f"# {line}\n" for line in _head(find, command, file))
    return head + printed(as_case(find))


def as_case(find: Discrepancy) -> dict[str, Json]:
    """The find as a case: it expects what the newer of the two said, and knows what the other said where that can be written."""
    difference = find.difference
    said, otherwise = sorted(
        (difference.one, difference.other),
        key=lambda one: (len(one.observation.steps), one.version, not one.who.startswith("model-")),
        reverse=True,
    )
    case = case_from(find.written, find.name)
    told = {
        "title": f"{difference.what.capitalize()}: {difference.one.who} and {difference.other.who} do not do the same",
        "strength": "observed",
        **{key: value for key, value in find.written.items() if key not in ("title", "steps")},
    }
    bare = {**told, "steps": list(find.written["steps"])}
    expected = {**told, "steps": [*_expecting(find, case, said)]}
    entry = _entry(case, said, otherwise, difference.rules)
    for candidate in ([{**expected, "differs": [entry]}] if entry else []) + [expected]:
        if _is_case(candidate, find.name):
            return candidate
    return bare


def _is_case(written: Mapping[str, Json], name: str) -> bool:
    """What one voice alone failed at cannot always be said of both: a case ends at the first error."""
    try:
        case_from(written, name)
    except InvalidCase:
        return False
    return True


def _expecting(find: Discrepancy, case: Case, said: Said) -> Iterator[dict[str, Json]]:
    schema = OutputSchema.of(said.observation.columns)
    seen = {step.number: step for step in said.observation.steps}
    for number, step in enumerate(find.written["steps"], 1):
        yield {**step, "expect": observed_expectation(seen[number], schema, case)} if number in seen else dict(step)


def _entry(case: Case, said: Said, otherwise: Said, rules: Rules) -> dict[str, Json] | None:
    """What ``differs`` says of the other; None where both are of one version, which no case can tell apart."""
    if said.version == otherwise.version:
        return None
    steps: dict[int, Json] = {}
    schemas = [OutputSchema.of(one.observation.columns) for one in (said, otherwise)]
    for mine, theirs in zip(said.observation.steps, otherwise.observation.steps, strict=False):
        change = _changed(
            *(observed_expectation(step, schema, case) for step, schema in zip((mine, theirs), schemas, strict=True))
        )
        if change:
            steps[mine.number] = change
    if not steps:
        return None
    names = " and ".join(name for name, _ in rules)
    because = f"the reference model tells them apart by {names}" if names else "no rule of the reference model says why"
    links = [source for _, source in rules if _TICKET.fullmatch(source)]
    return {
        "spark": f"=={otherwise.version}",
        "because": because,
        **({"link": links[0]} if links else {}),
        "steps": steps,
    }


def _changed(said: dict[str, Json], otherwise: dict[str, Json]) -> dict[str, Json]:
    change = {key: value for key, value in otherwise.items() if said.get(key, ...) != value}
    if "error" in said and "error" not in otherwise:
        return {"error": None, **change}
    missing = [key for key in said if key not in otherwise and key not in ("rows", "error")]
    return {**change, "unchecked": missing} if missing and "error" not in otherwise else change


def _head(find: Discrepancy, command: str, file: Path) -> Iterator[str]:
    difference = find.difference
    if not find.whole:
        yield "Shrinking was interrupted: it may become smaller."
    for one in (difference.one, difference.other):
        yield f"{one.who} says:"
        case = case_from(find.written, find.name)
        schema = OutputSchema.of(one.observation.columns)
        for step in one.observation.steps:
            yield f"  step {step.number}: {_line(step, schema, case)}"
    for name, source in difference.rules:
        yield f"The rule that separates them: {name} ({source})"
    if not difference.rules:
        yield "No single rule of the reference model separates them."
    for line in _replays(difference, file):
        yield f"See it again:  {line}"
    yield f"Find it again: {command}"


def _line(step: StepSeen, schema: OutputSchema, case: Case) -> str:
    return inline(observed_expectation(step, schema, case))


def _replays(difference: Difference, file: Path) -> Iterator[str]:
    """The commands that show both answers."""
    specs = [f"--spark {one.version}" for one in (difference.one, difference.other) if not one.who.startswith("model-")]
    if specs:
        store = " --state-store rocksdb" if "rocksdb" in f"{difference.one.who}{difference.other.who}" else ""
        yield f"conformance run {file} {' '.join(dict.fromkeys(specs))}{store}"
    for one in (difference.one, difference.other):
        if one.who.startswith("model-"):
            yield f"conformance explain {file} --spark {one.version}"
