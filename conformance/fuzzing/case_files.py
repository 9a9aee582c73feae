"""Writes a discrepancy as a case: it expects the answer of one oracle, has the other's under ``differs``, and says how to reproduce it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from conformance.core.case import Case
from conformance.core.data import Json
from conformance.core.observation import StepSeen
from conformance.core.output_file import FileKind, any_content, write_file
from conformance.fuzzing.comparison import AnswerDifference, Discrepancy, NamedAnswer, RuleNames
from conformance.judging.step_comparison import OutputSchema
from conformance.language import case_from
from conformance.language.printing import inline, printed
from conformance.language.source import InvalidCase
from conformance.suite.record_expectations import observed_expectation

_TICKET = re.compile(r"SPARK-\d+|https?://\S+")


def written_into(folder: Path, discrepancy: Discrepancy, command: str) -> Path:
    """Write a discrepancy to a new file named after it, in a folder made if missing; ``command`` finds it again.

    Raises CannotWriteFile, BeingWritten: the file cannot be written.
    """
    number, file = 1, folder / f"{discrepancy.name}.yaml"
    while file.exists():
        number += 1
        file = folder / f"{discrepancy.name}-{number}.yaml"
    write_file(file, text_of(discrepancy, command, file), FileKind("a discrepancy", any_content))
    return file


def text_of(discrepancy: Discrepancy, command: str, file: Path) -> str:
    head = "".join(f"# {line}\n" for line in _head(discrepancy, command, file))
    return head + printed(as_case(discrepancy))


def as_case(discrepancy: Discrepancy) -> dict[str, Json]:
    """The discrepancy as a case: it expects the answer of the newer version; the other answer is under ``differs`` if possible."""
    difference = discrepancy.difference
    expected_answer, other_answer = sorted(
        (difference.one, difference.other),
        key=lambda answer: (len(answer.observation.steps), answer.version, not answer.oracle.startswith("model-")),
        reverse=True,
    )
    case = case_from(discrepancy.written, discrepancy.name)
    base = {
        "title": f"{difference.what.capitalize()}: {difference.one.oracle} and {difference.other.oracle} differ",
        "strength": "observed",
        **{key: value for key, value in discrepancy.written.items() if key not in ("title", "steps")},
    }
    bare = {**base, "steps": list(discrepancy.written["steps"])}
    seen = {step.number: _expectation(step, case, expected_answer) for step in expected_answer.observation.steps}
    steps = (
        step | ({"expect": seen[number]} if number in seen else {}) for number, step in enumerate(bare["steps"], 1)
    )
    expected = {**base, "steps": [*steps]}
    entry = _entry(case, expected_answer, other_answer, difference.rules)
    for candidate in ([{**expected, "differs": [entry]}] if entry else []) + [expected]:
        # An error of one oracle alone cannot always be expressed: a case ends at the first error.
        with suppress(InvalidCase):
            case_from(candidate, discrepancy.name)
            return candidate
    return bare


def _expectation(step: StepSeen, case: Case, answer: NamedAnswer) -> dict[str, Json]:
    return observed_expectation(step, OutputSchema.of(answer.observation.columns_of(step)), case)


def _entry(case: Case, expected: NamedAnswer, other: NamedAnswer, rules: RuleNames) -> dict[str, Json] | None:
    """The ``differs`` entry of the other answer; None if both are of one version, which a case cannot distinguish."""
    if expected.version == other.version:
        return None
    steps: dict[int, Json] = {}
    for mine, theirs in zip(expected.observation.steps, other.observation.steps, strict=False):
        if change := _changed(_expectation(mine, case, expected), _expectation(theirs, case, other)):
            steps[mine.number] = change
    if not steps:
        return None
    because = "not explained by any rule of the reference model"
    if rules:
        because = f"explained by the rules of the reference model: {' and '.join(name for name, _ in rules)}"
    links = [source for _, source in rules if _TICKET.fullmatch(source)]
    return {"spark": f"=={other.version}", "because": because, **({"link": links[0]} if links else {}), "steps": steps}


def _changed(expected: dict[str, Json], other: dict[str, Json]) -> dict[str, Json]:
    change = {key: value for key, value in other.items() if expected.get(key, ...) != value}
    if "error" in expected and "error" not in other:
        return {"error": None, **change}
    missing = [key for key in expected if key not in other and key not in ("rows", "error")]
    return {**change, "unchecked": missing} if missing and "error" not in other else change


def _head(discrepancy: Discrepancy, command: str, file: Path) -> Iterator[str]:
    difference = discrepancy.difference
    if not discrepancy.fully_shrunk:
        yield "Shrinking was interrupted; a smaller case may exist."
    for answer in (difference.one, difference.other):
        yield f"{answer.oracle}:"
        case = case_from(discrepancy.written, discrepancy.name)
        for step in answer.observation.steps:
            yield f"  step {step.number}: {inline(_expectation(step, case, answer))}"
    for name, source in difference.rules:
        yield f"Explained by the rule {name} ({source})"
    if not difference.rules:
        yield "No single rule of the reference model explains the difference."
    for line in _replays(difference, file):
        yield f"Reproduce:  {line}"
    yield f"Find again: {command}"


def _replays(difference: AnswerDifference, file: Path) -> Iterator[str]:
    by_kind: dict[bool, list[str]] = {True: [], False: []}
    for answer in (difference.one, difference.other):
        by_kind[answer.oracle.startswith("model-")].append(f"--spark {answer.version}")
    if specs := dict.fromkeys(by_kind[False]):
        store = " --state-store rocksdb" if "rocksdb" in f"{difference.one.oracle}{difference.other.oracle}" else ""
        yield f"conformance run {file} {' '.join(specs)}{store}"
    yield from (f"conformance explain {file} {spec}" for spec in by_kind[True])
