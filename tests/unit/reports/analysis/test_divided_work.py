"""Work divided over processes: every item is done, and what goes wrong is raised here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from reports.analysis import divided_work
from reports.analysis.divided_work import divide


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided_work, "_processors", lambda: 2)


def test_every_item_is_done_by_one_of_several_processes() -> None:
    def work(items: Sequence[int]) -> tuple[int, list[int]]:
        return os.getpid(), [*items]

    assert dict(divide(range(10), work, few=5)).keys() > {os.getpid()}
    assert [done for _, done in divide(range(10), work, few=5)] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_few_items_are_done_here(tmp_path: Path) -> None:
    done: list[int] = []
    divide(range(5), done.extend, few=5)
    assert done == [0, 1, 2, 3, 4]


def test_what_goes_wrong_elsewhere_is_raised_here(capfd: pytest.CaptureFixture[str]) -> None:
    def work(items: Sequence[int]) -> None:
        if 1 in items:
            raise PermissionError("no room for 1")

    with pytest.raises(PermissionError, match="no room for 1"):
        divide(range(10), work, few=5)
    assert "Traceback" not in capfd.readouterr().err


def test_the_part_of_a_process_that_dies_is_done_here() -> None:
    here = os.getpid()

    def work(items: Sequence[int]) -> list[int]:
        if os.getpid() != here:
            os._exit(0)
        return [*items]

    assert divide(range(10), work, few=5) == ([0, 2, 4, 6, 8], [1, 3, 5, 7, 9])
