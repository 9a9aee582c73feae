"""Every file in ``invalid`` has exactly the problems that the text beside it lists, and no others."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from conformance.language import InvalidCase, Problem, read_any
from conformance.suite.discovery import load

HERE = Path(__file__).parent
FILES = sorted((HERE / "invalid").glob("*.yaml"))


@cache
def problems_of(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(InvalidCase) as caught:
        read_any(path, path.stem)
    return caught.value.problems


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= 45


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_exactly_these_problems(path: Path) -> None:
    found = [f"{problem.line}:{problem.column}: {problem.message}" for problem in problems_of(path)]
    assert found == path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_problems_are_in_the_order_of_the_file(path: Path) -> None:
    places = [(problem.line, problem.column) for problem in problems_of(path)]
    assert places == sorted(places)
    assert len(set(problems_of(path))) == len(problems_of(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_positions_lie_in_the_file(path: Path) -> None:
    lines = path.read_bytes().decode("utf-8", errors="replace").splitlines() or [""]
    for problem in problems_of(path):
        assert 1 <= problem.line <= len(lines) + 1
        assert 1 <= problem.column <= len([*lines, ""][problem.line - 1]) + 1


def test_a_suite_asks_for_more() -> None:
    root = HERE / "invalid-suite"
    suite = load([root])
    found = [problem.render(relative_to=root) for problem in suite.problems]
    assert found == (root / "problems.txt").read_text(encoding="utf-8").splitlines()
    assert [case.id for case in suite.cases] == ["late-drops/observed"]
    assert suite.invalid == 6
