"""Results files are read and written; what is printed of them is in `reports.terminal` and in the commands."""

import ast
from collections.abc import Iterator
from pathlib import Path

import reports.results


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_no_module_imports_rich() -> None:
    modules = [*Path(reports.results.__file__).parent.glob("*.py")]
    assert len(modules) > 5
    assert [module.name for module in modules if "rich" in {name.partition(".")[0] for name in imported(module)}] == []
