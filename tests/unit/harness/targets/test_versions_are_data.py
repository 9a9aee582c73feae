"""Which Spark versions there are is said in data files; code that named one would have to change with the next release."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

_PROJECT = Path(__file__).parents[4]
_FILES = sorted(path for room in ("conformance", "harness", "reports") for path in (_PROJECT / room).rglob("*.py"))

# The whole text is a version, a line or a range: code compares with it. Sentences (help, messages, examples) have more in them.
_VERSION = re.compile(
    r"(spark-|pyspark==)?\s*([<>=!~]=?)?\s*[345]\.\d{1,2}(\.(\d{1,2}|\*))?(\s*,\s*[<>=!~]{1,2}\s*[\d.*]+)*", re.ASCII
)
_IN_A_NAME = re.compile(r"(apache/spark|pyspark|spark)[\w:=/-]*[345]\.\d{1,2}\.\d{1,2}\S*", re.ASCII)
_ANY = re.compile(r"[345]\.\d|\(\s*[345],\s*\d|SparkVersion\(\s*\d")
# Arguments, and keys of a JSON Schema, that are read and never compared with.
_FOR_PEOPLE = frozenset({"help", "examples", "metavar", "epilog", "description"})


def named(source: str) -> list[tuple[int, str]]:
    """Every Spark version the source names as data, with its line."""
    if not _ANY.search(source):
        return []  # most sources; it saves the time to parse them
    nodes = tuple(ast.walk(ast.parse(source)))
    prose = set(_docstrings(nodes)) | set(_parts_of_sentences(nodes))
    found = [
        (node.lineno, node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        if _VERSION.fullmatch(node.value.strip()) or _IN_A_NAME.fullmatch(node.value.strip())
    ]
    return sorted([*found, *_numbers(nodes)])


def _docstrings(nodes: Iterable[ast.AST]) -> Iterator[int]:
    # Also the strings that document a field: any string that is a statement of its own.
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)


def _parts_of_sentences(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield from (id(part) for part in node.values)
        elif isinstance(node, ast.keyword) and node.arg in _FOR_PEOPLE:
            yield from (id(part) for part in ast.walk(node.value))
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in _FOR_PEOPLE:
                    yield from (id(part) for part in ast.walk(value))


def _numbers(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """``SparkVersion(3, 5, 0)``, and ``version >= (3, 4)``; not ``sys.version_info >= (3, 9)``."""
    for node in nodes:
        if isinstance(node, ast.Call) and _name(node.func).endswith("SparkVersion"):
            if node.args and all(isinstance(argument, ast.Constant) for argument in node.args):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Compare):
            tuples = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Tuple)]
            for side in tuples if tuples and "version_info" not in ast.unparse(node) else ():
                if re.fullmatch(r"\([345], \d+(, \d+)?\)", ast.unparse(side)):
                    yield node.lineno, ast.unparse(node)


def _name(called: ast.expr) -> str:
    return called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""


def test_no_code_names_a_spark_version() -> None:
    assert len(_FILES) > 200
    found = {str(path.relative_to(_PROJECT)): named(path.read_text(encoding="utf-8")) for path in _FILES}
    assert {path: versions for path, versions in found.items() if versions} == {}


@pytest.mark.parametrize(
    "source",
    [
        'newest = "4.3.0"',
        'if target.line == "3.5": pass',
        'wanted = ">=3.4,<4"',
        'wanted = "==3.4.*"',
        'package = "pyspark==3.5.9"',
        'image = "apache/spark:3.5.9-scala2.12-java17-python3-ubuntu"',
        'name = "spark-3.5.9"',
        "floor = SparkVersion(3, 4, 0)",
        "if version >= (3, 4): pass",
    ],
)
def test_what_names_one_is_found(source: str) -> None:
    assert named(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""Since 3.4.0."""',
        'class A:\n    a: int\n    """3.5.9"""',
        'raise ValueError(f"{text} is not a version: write three numbers, like 3.5.9")',
        'typer.Option(help="3.5.9")',
        'schema = {"type": "string", "examples": [">=3.4,<3.4.4"]}',
        "if sys.version_info >= (3, 9): pass",
        'protocol = "1.0"',
        'image = "python:3.11-slim"',
        "timeout = 3.5",
    ],
)
def test_what_names_none_is_left_alone(source: str) -> None:
    assert named(source) == []
