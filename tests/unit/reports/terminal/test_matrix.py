"""The matrix: totals, the sentence, the exit code, and how it is drawn."""

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from rich.console import Console

from conformance.judging.verdict import Status
from reports.analysis.matrix import Matrix, summary
from reports.results.reading import Results
from reports.results.records import Footer
from reports.results.status import DOES_NOT_CONFORM, GREEN, MARKS, NO_RESULT
from reports.terminal.matrix import lines
from tests.support.runs import FINISHED, header, written

OLD, NEW = "spark-3.5.9", "spark-4.3.0"


def results(
    tmp_path: Path,
    statuses: Mapping[tuple[str, str], Status] | None = None,
    cases: tuple[str, ...] = ("late/a", "late/b", "joins/c"),
    targets: tuple[str, ...] = (OLD, NEW),
) -> Results:
    return Results.read(written(tmp_path / "results.jsonl", cases, targets, statuses))


def drawn(of: Results, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(*lines(of, width, verbose=True), sep="\n", soft_wrap=True, highlight=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_every_status_has_a_look_and_a_meaning_of_its_own() -> None:
    assert set(MARKS) == set(get_args(Status)) == GREEN | DOES_NOT_CONFORM | NO_RESULT
    assert len({mark.glyph for mark in MARKS.values()}) == len({mark.word for mark in MARKS.values()}) == len(MARKS)
    assert all(len(mark.glyph) == 1 for mark in MARKS.values())


@pytest.mark.parametrize(
    ("statuses", "code", "sentence"),
    [
        ((), 0, "3 cases × 2 versions: 6 conform; 0 violate"),
        (("differs", "unsupported"), 0, "4 conform, 1 differs as documented, 1 unsupported; 0 violate"),
        (("bug", "bug"), 0, "4 conform, 2 known bugs; 0 violate"),
        (("not-applicable",), 0, "5 conform, 1 not applicable; 0 violate"),
        (("violates",), 1, "5 conform; 1 violates"),
        (("flaky", "broken"), 1, "4 conform; 0 violate, 1 flaky, 1 broken"),
        (("violates", "not-run"), 1, "4 conform; 1 violates, 1 not run"),
        (("broken",), 3, "5 conform; 0 violate, 1 broken"),
        (("not-run",) * 2, 3, "4 conform; 0 violate, 2 not run"),
        (
            ("not-applicable",) * 6,
            3,
            "3 cases × 2 versions: no case applies to these versions",
        ),
    ],
)
def test_exit_code_and_sentence(tmp_path: Path, statuses: tuple[Status, ...], code: int, sentence: str) -> None:
    places = [(case, target) for case in ("late/a", "late/b", "joins/c") for target in (OLD, NEW)]
    of = results(tmp_path, dict(zip(places, statuses, strict=False)))
    assert Matrix.of(of).exit_code == code
    assert summary(Matrix.of(of)).endswith(sentence)
    assert sentence in " ".join(drawn(of).split()).partition(" 3.5.9 4.3.0 ")[0]


@pytest.mark.parametrize(
    ("cases", "targets", "sentence"),
    [
        ((), (OLD,), "0 cases × 1 version: nothing ran"),
        (("late/a",), (), "1 case × 0 versions: nothing ran"),
    ],
)
def test_an_empty_matrix_is_never_green(cases: tuple[str, ...], targets: tuple[str, ...], sentence: str) -> None:
    empty = Results(header(cases, targets), (), Footer(counts={}, finished=FINISHED))
    assert Matrix.of(empty).exit_code == 3
    assert drawn(empty).strip() == sentence


def test_a_cell_without_a_record_is_not_run(tmp_path: Path) -> None:
    full = results(tmp_path)
    holed = Results(full.header, full.cells[1:], full.footer)
    assert Matrix.of(holed).status("late/a", OLD) == "not-run"
    assert Matrix.of(holed).exit_code == 3


def test_totals(tmp_path: Path) -> None:
    matrix = Matrix.of(results(tmp_path, {("late/a", OLD): "violates", ("joins/c", NEW): "differs"}))
    assert matrix.totals == {"conforms": 4, "violates": 1, "differs": 1}
    assert matrix.count(matrix.cases, [OLD]) == {"conforms": 2, "violates": 1}
    assert matrix.families == {"joins": ("joins/c",), "late": ("late/a", "late/b")}
    assert [(case, target.name, status) for case, target, status in matrix.not_green()] == [("late/a", OLD, "violates")]


def test_it_is_drawn(tmp_path: Path) -> None:
    of = results(
        tmp_path,
        {
            ("late/a", OLD): "violates",
            ("late/b", OLD): "unsupported",
            ("joins/c", OLD): "not-applicable",
            ("late/b", NEW): "broken",
        },
    )
    assert drawn(of) == (
        "3 cases × 2 versions: 2 conform, 1 unsupported, 1 not applicable; 1 violates,\n"
        "  1 broken\n"
        "\n"
        "✗ late/a on spark-3.5.9: violates\n"
        "  step 1 (late/a.yaml:16), micro-batch 0\n"
        "    rows\n"
        "        start | end   | total\n"
        "      - 12:00 | 12:10 |     1   expected, not emitted\n"
        "      + 12:00 | 12:10 |     2   emitted, not expected\n"
        "\n"
        "! late/b on spark-4.3.0: broken\n"
        "  note: the engine did not answer within 60 s\n"
        "\n"
        "             3.5.9  4.3.0\n"
        "joins                      1/1\n"
        "  c              ·      ●\n"
        "late                       2/4\n"
        "  a              ✗      ●\n"
        "  b              –      !\n"
        "as expected    1/2    2/3  3/5\n"
        "\n"
        "● conforms 2   – unsupported as documented 1   ✗ violates 1\n"
        "! broken: the harness or your code failed 1   · not applicable 1\n"
    )


def test_the_log_of_an_engine_keeps_its_lines(tmp_path: Path) -> None:
    of = results(tmp_path, {("late/b", NEW): "broken"})
    note = "the engine's process ended with signal SIGKILL\nThe last lines of its log:\nWARN NativeCodeLoader"
    told = [cell.model_copy(update={"notes": (note,)}) if cell.status == "broken" else cell for cell in of.cells]
    shown = drawn(replace(of, cells=tuple(told)), width=100)
    assert (
        "  note: the engine's process ended with signal SIGKILL\n    The last lines of its log:\n    WARN Nat" in shown
    )


def test_a_narrow_terminal_abbreviates_the_versions(tmp_path: Path) -> None:
    targets = ("spark-3.4.4", "spark-3.5.3", "spark-3.5.9", "spark-4.3.0")
    of = results(tmp_path, {("late/a", "spark-4.3.0"): "violates"}, targets=targets)
    assert drawn(of, 44).splitlines()[-9:-2] == [
        "                3.4 3.5.3 3.5.9 4.3",
        "joins                                4/4",
        "  c               ●     ●     ●   ●",
        "late                                 7/8",
        "  a               ●     ●     ●   ✗",
        "  b               ●     ●     ●   ●",
        "not as expected   0     0     0   1  1",
    ]


@pytest.mark.parametrize("width", [20, 30, 40, 50, 60, 80, 100, 132])
def test_the_table_never_wraps(tmp_path: Path, width: int) -> None:
    targets = tuple(f"spark-3.{minor}.{patch}" for minor in range(6) for patch in range(3))
    cases = ("late/a-row-behind-the-watermark-still-counts-while-its-window-is-open", "outer-joins/b")
    text = drawn(results(tmp_path, cases=cases, targets=targets), width)
    table = text[text.index("\n\n") : text.index("● conforms")].splitlines()
    assert max(map(len, table)) <= max(width, 32)
    assert sum(line.count("●") for line in table) == len(targets) * len(cases)


def test_without_a_terminal_it_is_plain(tmp_path: Path) -> None:
    assert "\x1b" not in drawn(results(tmp_path, {("late/a", OLD): "violates"}))
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    console.print(*lines(results(tmp_path), 80), sep="\n")
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[32m●" in console.file.getvalue()


def test_text_that_looks_like_markup_stays_text(tmp_path: Path) -> None:
    of = results(tmp_path, {("late/[red]a", OLD): "violates"}, cases=("late/[red]a",))
    assert "[red]a" in drawn(of)
