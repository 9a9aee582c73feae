"""Work divided over processes: every item is done, and what goes wrong is raised here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from reports.html import divided_work
from reports.html.divided_work import divide


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided_work, "_processors", lambda: 2)


def test_every_item_is_done_by_one_of_several_processes(tmp_path: Path) -> None:
    def work(items: Sequence[int]) -> None:
        for item in items:
            (tmp_path / str(item)).write_text(str(os.getpid()))

    divide(range(10), work, few=5)
    assert {int(path.name) for path in tmp_path.iterdir()} == set(range(10))
    assert len({path.read_text() for path in tmp_path.iterdir()}) == 2


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
