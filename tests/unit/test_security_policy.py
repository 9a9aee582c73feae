"""The promises, ports and threats in SECURITY.md, and the tests that they name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

UNIT = Path(__file__).parent
ROOT = UNIT.parents[1]
POLICY = (ROOT / ".github" / "SECURITY.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("part", "columns", "fewest"),
    [
        ("What is promised", ["promise", "test"], 25),
        ("Ports", ["port", "address", "who may talk to it", "test"], 11),
        ("Threats", ["input", "what an attacker wants", "what stops it", "test"], 70),
    ],
)
def test_every_row_names_a_test_that_exists(part: str, columns: list[str], fewest: int) -> None:
    text = POLICY.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
    head, *rows = [
        [cell.strip() for cell in row.strip("|").split(" | ")] for row in text.splitlines() if row.startswith("| ")
    ]
    assert head == columns
    assert len(rows) >= fewest
    for row in rows:
        assert len(row) == len(columns), row
        if part == "Ports" and row[-1] == "–":
            assert re.search(r"as your `--conf` says|the suite has no way|none of their own", " ".join(row)), row
        else:
            _exists(row[-1])
    for named in re.findall(r"`[\w/]+\.py::test_\w+`", text):
        _exists(named)


def _exists(named: str) -> None:
    found = re.fullmatch(r"`([a-z0-9_/]+\.py)::(test_\w+)`", named)
    assert found is not None, named
    path = ROOT / found[1] if found[1].startswith("tests/") else UNIT / found[1]
    assert re.search(rf"^ *def {found[2]}\(", path.read_text(encoding="utf-8"), re.MULTILINE), named


def _unsafe(path: Path) -> Iterator[str]:
    """What a module has that runs what it reads, or makes objects of it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case ast.Call(func=ast.Name(id="eval" | "exec" | "compile" as name)):
                yield name
                continue
            case ast.Attribute(attr="unsafe_load" | "full_load" | "Loader" | "UnsafeLoader" | "FullLoader" as name):
                yield name
                continue
            case _:
                continue
        yield from {module.partition(".")[0] for module in modules} & {"pickle", "marshal", "shelve", "dill", "javaobj"}


def test_what_reads_files_of_others_evaluates_none(tmp_path: Path) -> None:
    """Cases, results and checkpoints are read by these packages only; code of a case runs in the engine (`harness.driver`)."""
    for package in ("conformance", "reports"):
        for path in (ROOT / package).rglob("*.py"):
            assert [*_unsafe(path)] == [], path
    (tmp_path / "read.py").write_text(
        "import yaml, pickle\nfrom marshal import load\nyaml.unsafe_load(eval(load(x)))\n"
    )
    assert sorted(_unsafe(tmp_path / "read.py")) == ["eval", "marshal", "pickle", "unsafe_load"]
