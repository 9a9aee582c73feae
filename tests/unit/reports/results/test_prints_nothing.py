"""Results files are read and written; what is printed of them is in `reports.terminal` and in the commands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import reports.results

MODULES = sorted(Path(reports.results.__file__).parent.glob("*.py"))


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_no_module_imports_rich(module: Path) -> None:
    assert not [name for name in imported(module) if name.partition(".")[0] == "rich"]
