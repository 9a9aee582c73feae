"""Rows that a case takes from files beside it."""

import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from conformance.core.case import Add, Backlog, Case, Restart
from conformance.language import InvalidCase, read_case
from conformance.language.reader import case_from

STREAM = "order_time TIMESTAMP, who STRING, amount INT, price DECIMAL(9,2), paid BOOLEAN"
JSONL = '{"order_time": "12:01", "who": "ada", "amount": 1, "price": 1.50, "paid": true}\n\n{"order_time": "12:02", "amount": 2}\n'
CSV = "order_time,who,amount,price,paid\n12:01,ada,1,1.50,true\n12:02,,2,,\n"
ROWS = [
    {"order_time": "12:01", "who": "ada", "amount": 1, "price": 1.5, "paid": True},
    {"order_time": "12:02", "who": None, "amount": 2, "price": None, "paid": None},
]


def read(folder: Path, step: str = "add: {orders: {file: day1.jsonl}}", stream: str = STREAM) -> Case:
    (folder / "cases").mkdir(exist_ok=True)
    path = folder / "cases" / "x.yaml"
    path.write_text(f'title: x\nstreams: {{orders: "{stream}"}}\nquery: [{{from: orders}}]\nsteps:\n  - {step}\n')
    return read_case(path, "x")


def write(folder: Path, name: str, text: str) -> None:
    path = folder / "cases" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(("name", "text"), [("day1.jsonl", JSONL), ("days/1.csv", CSV)])
def test_rows_are_those_of_the_file(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, name, text)
    action = read(tmp_path, f"add: {{orders: {{file: {name}}}}}").steps[0].action
    assert isinstance(action, Add)
    assert [dict(row) for row in action.streams["orders"].partitions[0]] == ROWS


def test_parquet_is_read_with_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"order_time": datetime(1970, 1, 1, 12, 1, tzinfo=UTC), "price": Decimal("1.50"), "amount": 1}]
    fake, parquet = ModuleType("pyarrow"), ModuleType("pyarrow.parquet")
    vars(fake)["ArrowException"] = type("ArrowException", (Exception,), {})
    batches = [SimpleNamespace(to_pylist=lambda: rows)]
    vars(parquet)["ParquetFile"] = lambda _: SimpleNamespace(iter_batches=lambda: batches)
    monkeypatch.setitem(sys.modules, "pyarrow", fake)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)
    write(tmp_path, "day1.parquet", "")
    action = read(tmp_path, "add: {orders: {file: day1.parquet}}").steps[0].action
    assert isinstance(action, Add)
    (row,) = action.streams["orders"].partitions[0]
    of_the_file = {"order_time": "1970-01-01T12:01:00+00:00", "amount": 1, "price": Decimal("1.50")}
    assert row == {**of_the_file, "who": None, "paid": None}


def test_without_pyarrow_parquet_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write(tmp_path, "day1.parquet", "")
    assert "reading Parquet needs pyarrow" in problem(tmp_path, "day1.parquet")


def test_a_backlog_and_a_kill_take_them_too(tmp_path: Path) -> None:
    write(tmp_path, "day1.jsonl", JSONL)
    backlog = read(tmp_path, "backlog: [{orders: {file: day1.jsonl}}]").steps[0].action
    assert isinstance(backlog, Backlog)
    assert len(backlog.entries[0]["orders"].partitions[0]) == 2
    kill = read(tmp_path, "restart: {how: kill, at: running, add: {orders: {file: day1.jsonl}}}").steps[0].action
    assert isinstance(kill, Restart)
    assert len(kill.add["orders"].partitions[0]) == 2


def test_another_content_is_another_case(tmp_path: Path) -> None:
    write(tmp_path, "day1.jsonl", JSONL)
    before = read(tmp_path).digest
    write(tmp_path, "day1.jsonl", JSONL.replace("ada", "bob"))
    assert read(tmp_path).digest != before


def problem(folder: Path, file: str = "day1.jsonl") -> str:
    with pytest.raises(InvalidCase) as caught:
        read(folder, f"add: {{orders: {{file: {file}}}}}")
    (found,) = caught.value.problems
    assert found.line == 5
    return found.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "day1.jsonl: line 1: not JSON"),
        ("\n[1]\n", "day1.jsonl: line 2: not an object from column to value"),
        (
            '{"amuont": 1}',
            "day1.jsonl: line 1: the stream has no column 'amuont', only order_time, who, amount, price, paid",
        ),
        ('{"amount": "x"}', "day1.jsonl: line 1: column 'amount': "),
    ],
    ids=range(4),
)
def test_what_is_wrong_in_a_file_names_its_line(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, "day1.jsonl", text)
    assert problem(tmp_path).startswith(message)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_csv_file_with_another_separator_is_refused(tmp_path: Path, mark: str) -> None:
    write(tmp_path, "day1.csv", CSV.replace(",", mark))
    assert f"day1.csv: line 1: {mark!r} divides the names of the columns" in problem(tmp_path, "day1.csv")


def test_a_csv_file_with_a_missing_field_names_its_line(tmp_path: Path) -> None:
    write(tmp_path, "day1.csv", "order_time,amount\n12:00\n")
    assert problem(tmp_path, "day1.csv") == "day1.csv: line 2: not as many fields as the first line"


def test_a_file_that_is_not_there_or_of_another_kind(tmp_path: Path) -> None:
    assert problem(tmp_path) == "there is no file 'day1.jsonl' in the folder of the case"
    assert "expected a file ending in .jsonl, .json, .csv, .parquet" in problem(tmp_path, "rows.txt")


@pytest.mark.parametrize("name", ["../secret.jsonl", "/etc/passwd.jsonl", "link.jsonl", "folder/secret.jsonl"])
def test_no_file_of_elsewhere_is_read(tmp_path: Path, name: str) -> None:
    """A case of a stranger, or a link in their folder, would show it in a log."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "secret.jsonl").write_text("hush")
    (tmp_path / "cases" / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (tmp_path / "cases" / "folder").symlink_to(tmp_path)
    assert problem(tmp_path, name) == f"{name!r} is not a file in the folder of the case or below it"


def test_a_case_that_is_no_file_has_none() -> None:
    steps = [{"add": {"a": {"file": "x.jsonl"}}}]
    with pytest.raises(InvalidCase, match="rows from a file stand alone"):
        case_from({"title": "x", "streams": {"a": "n INT"}, "query": [{"from": "a"}], "steps": steps}, "x")
