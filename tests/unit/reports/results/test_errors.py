"""Damaged files: each kind of damage has its own error, which says what to do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.results.errors import NotARecord, UnusableResults, counts_do_not_match, missing_cells, missing_shards
from reports.results.reading import Results
from tests.support.runs import written

Damage = Callable[[list[str]], list[str]]


def edited(line: int, **changes: Any) -> Damage:
    def damage(lines: list[str]) -> list[str]:
        lines[line] = json.dumps({**json.loads(lines[line]), **changes}) + "\n"
        return lines

    return damage


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda _: [], "the file is empty; the run never started"),
        (lambda _: ["\n", " \n"], "the file is empty"),
        (
            lambda lines: lines[:-1],
            "interrupted after 4 of 4 cells: the footer is missing; run it again",
        ),
        (lambda lines: lines[:3], "interrupted after 2 of 4 cells"),
        (lambda lines: lines[:1], "interrupted after 0 of 4 cells"),
        (lambda lines: [*lines[:3], lines[3][:50]], "interrupted after 2 of 4 cells"),
        (lambda lines: [*lines[:5], lines[5][:-9]], "interrupted after 4 of 4 cells"),
        (lambda lines: [*lines[:2], "{oops\n", *lines[2:]], "line 3 is not JSON"),
        (lambda _: ["<html>"], "not a results file: line 1 is not JSON"),
        (lambda lines: ["[1]\n", *lines], "not a results file: line 1 is not a JSON object"),
        (lambda lines: lines[1:], "not a results file: line 1 is not a header"),
        (lambda lines: ['{"record": "target"}\n', *lines], "line 1 is not a header"),
        (lambda lines: ["{}\n", *lines], "line 1 is not a header"),
        (lambda lines: [lines[0], *lines], "line 2 is not a valid record: a second header"),
        (lambda lines: [*lines, lines[1]], "line 7 is not a valid record: the footer is the last line"),
        (edited(1, status="fine"), "line 2 is not a valid record: cell.status"),
        (edited(1, record="row"), "line 2 is not a valid record: Input tag 'row'"),
        (edited(0, format=6), "the file has format 6, but this program reads format 5; upgrade"),
        (
            edited(0, format=2),
            "has format 2, but this program reads format 5; it is of an earlier release: run again",
        ),
        (edited(0, format=0), "format 0"),
        (edited(0, format=6, record="header", surprise=1), "format 6"),
        (lambda lines: [*lines[:2], *lines[3:]], r"1 cell \(late/a on spark-4.3.0\)"),
        (edited(0, cases=["late/a", "late/b", "late/c"]), r"2 cells \(late/c on spark-3.5.9, late/c on"),
        (lambda lines: [*lines[:2], *lines[1:]], "line 3 is the second result of late/a on spark-3.5.9"),
        (edited(1, case="late/x"), "line 2 is about late/x on spark-3.5.9, which is not in the header"),
        (edited(5, counts={"conforms": 3}), "the footer counts 3 conforms instead of 4"),
        (
            edited(1, status="violates"),
            "the footer counts 4 conforms instead of 3, 0 violates instead of 1",
        ),
    ],
)
def test_each_damage_is_named(tmp_path: Path, damage: Damage, text: str) -> None:
    path = written(tmp_path / "results.jsonl")
    path.write_text("".join(damage(path.read_text().splitlines(keepends=True))))
    with pytest.raises(UnusableResults, match=text) as caught:
        Results.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.path == path


def test_the_footer_may_count_zeros(tmp_path: Path) -> None:
    path = written(tmp_path / "results.jsonl")
    lines = edited(5, counts={"conforms": 4, "violates": 0})(path.read_text().splitlines(keepends=True))
    path.write_text("".join(lines))
    assert len(Results.read(path).cells) == 4


def test_a_file_cut_inside_a_character_is_reported(tmp_path: Path) -> None:
    path = written(tmp_path / "results.jsonl")
    whole = path.read_bytes().replace(b"conformance run", "conformance run é".encode())
    path.write_bytes(whole[: whole.index("é".encode()) + 1])
    with pytest.raises(UnusableResults, match="line 1"):
        Results.read(path)


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (1, "1 cell (f/0 on spark-3.5.9)"),
        (3, "3 cells (f/0 on spark-3.5.9, f/1 on spark-3.5.9, f/2 on spark-3.5.9)"),
        (4, "4 cells (f/0 on spark-3.5.9, f/1 on spark-3.5.9, f/2 on spark-3.5.9 and 1 more)"),
    ],
)
def test_three_of_the_missing_cells_are_named(count: int, told: str) -> None:
    missing = missing_cells(None, [(f"f/{number}", "spark-3.5.9") for number in reversed(range(count))])
    assert f"{told} of the header without a result" in str(missing)


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        ({"conforms": 2}, {"conforms": 1, "violates": 1}, "2 conforms instead of 1, 0 violates instead of 1"),
        ({"broken": 1, "conforms": 1}, {"broken": 1}, "1 conforms instead of 0"),
        ({"broken": 0, "conforms": 1}, {"bug": 0}, "1 conforms instead of 0"),
    ],
)
def test_counts_that_differ_are_named(expected: dict[str, int], found: dict[str, int], told: str) -> None:
    error = counts_do_not_match(Path("r"), expected, found)
    assert error.problem == f"the footer counts {told}"


@pytest.mark.parametrize(
    ("absent", "told"),
    [
        (range(1, 2), "1/30"),
        (range(1, 11), "1/30, 2/30, 3/30, 4/30, 5/30, 6/30, 7/30, 8/30, 9/30, 10/30"),
        (range(1, 12), "1/30, 2/30, 3/30, 4/30, 5/30, 6/30, 7/30, 8/30, 9/30, 10/30 and 1 more"),
    ],
)
def test_ten_of_the_missing_shards_are_named(absent: range, told: str) -> None:
    error = missing_shards("spark-3.5.9", 30, list(absent))
    assert str(error) == f"of the 30 shards of spark-3.5.9, these are missing: {told}; pass the results of all shards"


def test_a_text_of_the_file_begins_no_line() -> None:
    error = NotARecord(Path("results.jsonl"), 5, "tag 'a\n::error::b'")
    assert (
        str(error)
        == r"results.jsonl: line 5 is not a valid record: tag 'a\n::error::b'; if it is a results.jsonl, run again"
    )
