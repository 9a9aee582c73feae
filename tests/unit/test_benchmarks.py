"""Benchmarks are run by hand: what they import must exist, also in the programs that they keep as text."""

import ast
import importlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmarks.__main__ import figure_rows

ROOT = Path(__file__).parents[2]
OURS = ("conformance", "harness", "reports", "tools")


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_imports_exists(path: Path) -> None:
    missing = [
        f"{module}.{name}"
        for module, name in _imports(ast.parse(path.read_text(encoding="utf-8")))
        if module.partition(".")[0] in OURS and not _exists(module, name)
    ]
    assert not missing


def test_an_import_in_the_text_of_a_program_is_found() -> None:
    tree = ast.parse('PROGRAM = """\nfrom harness.progress import no_such_name\n"""')
    assert [*_imports(tree)] == [("harness.progress", "no_such_name")]
    assert not _exists("harness.progress", "no_such_name")


@pytest.mark.parametrize(
    ("release", "marked"), [(version("watermark-conformance"), False), ("0.9.0", True), (None, True)], ids=str
)
def test_a_figure_from_before_this_release_is_marked(release: str | None, marked: bool) -> None:
    figure: dict[str, object] = {"what": "a gate", "measured": "1 s", "command": "conformance gate"}
    if release is not None:
        figure["at"] = {"release": release, "revision": "2d12cd16", "date": "2026-11-29", "machine": "2 × a processor"}
    *_, row = figure_rows([figure])
    assert ("**before this release**" in row) == marked
    assert ("2d12cd16, 2026-11-29, 2 × a processor" in row) == (release is not None)


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\nfrom " in node.value:
            try:
                program = ast.parse(node.value)
            except SyntaxError:  # prose
                continue
            yield from _imports(program)


def _exists(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True
