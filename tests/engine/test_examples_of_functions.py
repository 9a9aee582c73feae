"""Every function and operator that Spark's documentation lists: what the engine accepts, the check of SQL does not call a mistake."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.language.permission import refusals
from conformance.language.sql_expression import (
    functions,
    readable,
    references,
    split,
    syntax_mistakes,
    unknown_functions,
)
from harness.environments.provision import prepare
from harness.targets.targets import Targets
from tests.support.effort import full_run_only

PROGRAM = Path(__file__).with_name("examples_of_functions.py")
VALUE = re.compile(r"SELECT (?!.*\bFROM\s+(?:VALUES|\(|\w+\s*\())(.*)", re.DOTALL)
"""A SELECT without relations: no column exists."""


def _wrong(example: str) -> Iterator[str]:
    """Yield what the check says of an example: as a statement, and of a SELECT without relations each expression."""
    mistakes = [*syntax_mistakes(example, alias=False, statement=True), *unknown_functions(example)]
    yield from (mistake.message for mistake in mistakes if mistake.certain)
    if (selected := VALUE.fullmatch(example)) is None:
        return
    items = [item for item in split(readable(selected[1])) if item]
    aliases = {item[-1].name for item in items if len(item) > 2 and item[-2].keyword == "as"}
    for item in items:
        text = selected[1][item[0].offset : item[-1].offset + len(item[-1].text)]
        mistakes = [*syntax_mistakes(text, alias=True)]
        yield from (mistake.message for mistake in mistakes if mistake.certain)
        if not mistakes:
            yield from (f"column {column}" for column in references(text) if str(column) not in aliases)


@full_run_only
@pytest.mark.parametrize(("version", "least"), [("4.3.0", 1200), ("3.5.9", 800)])
def test_no_example_that_spark_accepts_is_called_wrong(version: str, least: int) -> None:
    (target,) = Targets.load().choose([version]).targets
    environment = prepare(target)
    done = subprocess.run(
        [str(environment.python), str(PROGRAM)], env=environment.environ(), check=True, capture_output=True, text=True
    )
    examples = json.loads(done.stdout.splitlines()[-1])
    accepted = [example for example, is_accepted in examples.items() if is_accepted and example.startswith("SELECT")]
    assert len(accepted) > least
    assert {example: wrong for example in accepted if (wrong := [*_wrong(example)])} == {}
    # A guard, which this must not weaken: it still refuses each function that does more than compute.
    calls = re.compile(rf"\b(?:{'|'.join(functions().needs_code)})\s*\(", re.IGNORECASE)
    assert [text for text in examples if calls.search(text) and not refusals(text, (), statement=True)] == []
