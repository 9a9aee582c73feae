"""YAML as the 1.2 core schema reads it, by either parser."""

import math
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from conformance.language.source import MAX_BYTES, Entries, Items, Node, ProblemReport, Scalar, read_yaml, resolve

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((null, None) for null in ("", "~", "null", "Null")),
        ("nUll", "nUll"),
        ("true", True),
        ("FALSE", False),
        *((text, text) for text in ("yes", "on", "No", "12:00", "1:30:00", "2024-03-01", "1_000", "0b1")),
        ("10", 10),
        ("-7", -7),
        ("+7", 7),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("30.0009", 30.0009),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("123456789012345678.123", Decimal("123456789012345678.123")),
        ("1e400", Decimal("1e400")),
        *((text, text) for text in ("inf", "NaN", "1e999999999", "9" * 5000, "<3.4", "1.2.3")),
    ],
)
def test_core_schema(text: str, value: object) -> None:
    found = resolve(text)
    assert found == value
    assert type(found) is type(value)


def test_not_a_number_is_one() -> None:
    found = resolve(".nan")
    assert isinstance(found, float)
    assert math.isnan(found)


def read(path: Path) -> tuple[Node | None, list[str]]:
    report = ProblemReport(path)
    node = read_yaml(path, report)
    return node, [f"{problem.line}:{problem.column}: {problem.message}" for problem in report.problems]


def shape(node: Node | None) -> object:
    """Everything that is known of a node."""
    if isinstance(node, Entries):
        return node.line, node.column, [(shape(entry.key), shape(entry.value)) for entry in node.entries]
    if isinstance(node, Items):
        return node.line, node.column, [shape(item) for item in node.items]
    return node and (node.line, node.column, repr(node.value), node.indent)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.yaml"


def test_both_parsers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sorted(HERE.glob("*valid/*.yaml"))
    assert len(paths) > 100
    fast = [read(path) for path in paths]
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    for path, (node, problems) in zip(paths, fast, strict=True):
        slow, also = read(path)
        assert (shape(node), problems) == (shape(slow), also), path.stem


def test_quoted_text_is_text(path: Path) -> None:
    path.write_text("['12', \"true\", 'it''s', |\n  12\n]".replace("|\n  12\n", '"~"'))
    node, problems = read(path)
    assert problems == []
    assert node.plain() == ["12", "true", "it's", "~"]


def test_places_inside_of_text(path: Path) -> None:
    path.write_text("a: plain text\nb: 'quoted text'\nc: \"with \\t escape\"\nd: >-\n  folded\n  text\n")
    node, _ = read(path)
    assert isinstance(node, Entries)
    places = {}
    for entry in node.entries:
        assert isinstance(entry.value, Scalar)
        place = entry.value.at(2)
        places[entry.key.value] = (place.line, place.column)
    assert places == {"a": (1, 6), "b": (2, 7), "c": (3, 4), "d": (4, 4)}


def test_a_huge_file_is_not_read(path: Path) -> None:
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    assert read(path) == (None, [f"1:1: the file has more than {MAX_BYTES} bytes, the limit"])


@pytest.mark.parametrize("text", ["[" * 20_000, "{a: " * 5_000, "- " * 5_000, "? " * 5_000])
def test_depth_is_bounded(path: Path, text: str) -> None:
    path.write_text(text)
    node, problems = read(path)
    assert node is None
    assert len(problems) == 1
