"""The tree is the one that docs/design.md shows: anybody finds a line from there."""

import pkgutil
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOTS = ("conformance", "harness", "reports")
MOST_LOOSE = 12
"""Modules directly in one of the three roots."""


def packages():
    """Dotted names of all packages below the three roots."""
    folders = {path.parent for root in ROOTS for path in (ROOT / root).rglob("*.py")}
    return {".".join(folder.relative_to(ROOT).parts) for folder in folders} - set(ROOTS)


def drawn():
    """The packages of the tree in the design: two spaces of indentation a level."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    tree = re.search(r"## Where things are\n.*?```\n(.*?)```", text, re.DOTALL)[1]
    above, found = [], set()
    for indent, name in re.findall(r"^( *)(\w+)/", tree, re.MULTILINE):
        above = [*above[: len(indent) // 2], name]
        found.add(".".join(above))
    return {name for name in found if name.partition(".")[0] in ROOTS} - set(ROOTS)


def test_the_design_shows_every_package():
    assert drawn() == packages()


def interfaces():
    """The dotted names of the Protocols that docs/design/interfaces.md lists."""
    text = (ROOT / "docs" / "design" / "interfaces.md").read_text(encoding="utf-8")
    return re.findall(r"^\| [^|]+ \| `([\w.]+)` \| [^|]+ \|$", text, re.MULTILINE)


def test_a_seam_is_a_protocol():
    assert len(interfaces()) > 5
    for name in interfaces():
        module, _, protocol = name.rpartition(".")
        text = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        # Its text tells, because at run time the driver's are plain classes: CPython 3.7 has no `Protocol`.
        assert re.search(rf"^class {protocol}\(Protocol\b", text, re.MULTILINE), name


def test_few_modules_lie_loose_in_a_root():
    for root in ROOTS:
        loose = [path for path in (ROOT / root).glob("*.py") if path.name != "__init__.py"]
        assert len(loose) <= MOST_LOOSE, root


def test_tests_stand_where_their_code_stands():
    """tests/unit/harness/engine/ holds tests of harness/engine/."""
    folders = {path.parent for path in (ROOT / "tests" / "unit").rglob("test_*.py")}
    tested = {".".join(folder.relative_to(ROOT / "tests" / "unit").parts) for folder in folders} - {""}
    tools = {f"tools.{path.name}" for path in (ROOT / "tools").iterdir()}
    assert tested - {*packages(), *ROOTS, "tools", *tools} == set()


def test_the_design_shows_every_folder_of_code():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    shown = set(
        re.findall(r"^(\w+)/", re.search(r"## Where things are\n.*?```\n(.*?)```", text, re.DOTALL)[1], re.MULTILINE)
    )
    code = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "." and any(path.glob("*.py"))}
    assert code <= shown


def decided():
    """The dotted names in the table of docs/design/where-it-is-decided.md."""
    text = (ROOT / "docs" / "design" / "where-it-is-decided.md").read_text(encoding="utf-8")
    return re.findall(r"`((?:conformance|harness|reports|tools)\.[\w.]+)`", text)


def test_a_question_is_answered_where_the_design_says():
    assert len(decided()) > 20
    for name in decided():
        assert pkgutil.resolve_name(name) is not None, name
