"""Every file in ``invalid`` has exactly the problems that the text beside it lists, and no others."""

from pathlib import Path

import pytest

from conformance.language import InvalidCase, read_any
from conformance.suite.discovery import load

HERE = Path(__file__).parent
FILES = sorted((HERE / "invalid").glob("*.yaml"))


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= 45


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_exactly_these_problems(path: Path) -> None:
    """In the order of the file, each once, at a place in it."""
    with pytest.raises(InvalidCase) as caught:
        read_any(path, path.stem)
    problems = caught.value.problems
    found = [f"{problem.line}:{problem.column}: {problem.message}" for problem in problems]
    assert found == path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    assert len({*problems}) == len(problems)
    places = [(problem.line, problem.column) for problem in problems]
    assert places == sorted(places)
    lines = path.read_bytes().decode("utf-8", errors="replace").splitlines() or [""]
    for line, column in places:
        assert 1 <= line <= len(lines) + 1
        assert 1 <= column <= len([*lines, ""][line - 1]) + 1


def test_a_suite_asks_for_more() -> None:
    root = HERE / "invalid-suite"
    suite = load([root])
    found = [problem.render(relative_to=root) for problem in suite.problems]
    assert found == (root / "problems.txt").read_text(encoding="utf-8").splitlines()
    assert [case.id for case in suite.cases] == ["late-drops/observed"]
    assert suite.invalid == 6
