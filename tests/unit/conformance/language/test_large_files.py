"""A file that holds as much as it may is read in time: nothing in it is looked at again for each other thing in it."""

import time
from pathlib import Path

import pytest

from conformance.language import InvalidCase, read_any

MAX_PROBLEMS = 1_000
QUERY = "title: t\nstreams: {s: event_time TIMESTAMP}\nquery: [{from: s}]\n"
STEP = 'steps: [{add: {s: [["12:00"]]}}]\n'


def each(count: int, text: str, between: str = "") -> str:
    return between.join(text.replace("#", str(number)) for number in range(count))


LARGE: dict[str, str] = {
    "tags": QUERY + STEP + f"tags: [{each(40_000, 'a#', ', ')}]\n",
    "names of steps": QUERY
    + "steps:\n"
    + each(4_000, '- {name: n#, add: {s: [["12:00"]]}}\n')
    + "differs:\n- spark: '>=3.5'\n  because: x\n  steps:\n"
    + each(4_000, "    n#: {state: 1}\n"),
    "unknown streams": "title: t\nstreams:\n"
    + each(6_000, "  s#: event_time TIMESTAMP\n")
    + "query: [{from: s0}]\nsteps:\n- add:\n"
    + each(6_000, '    x#: [["12:00"]]\n'),
    "unknown columns": "title: t\nstreams:\n  s: "
    + each(900, "c# INT", ", ")
    + "\nquery:\n- from: s\n- select: ["
    + each(9_000, "y#", ", ")
    + "]\nsteps: [{idle: {}}]\n",
    "operations": QUERY.replace("[{from: s}]", "\n- from: s\n" + each(9_000, "- withColumn: [c#, event_time]\n"))
    + STEP,
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_file_is_read_in_time(name: str, tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(LARGE[name], encoding="utf-8")
    before = time.process_time()
    problems = 0
    try:
        read_any(path, "case")
    except InvalidCase as invalid:
        problems = len(invalid.problems)
    assert problems <= MAX_PROBLEMS + 1
    assert time.process_time() - before < 6


def test_the_last_problem_says_that_there_are_more(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(QUERY + STEP + each(2_000, "key#: 1\n"), encoding="utf-8")
    with pytest.raises(InvalidCase) as invalid:
        read_any(path, "case")
    assert len(invalid.value.problems) == MAX_PROBLEMS + 1
    assert "case.yaml: more than 1000 problems; the rest is not looked for" in str(invalid.value)
