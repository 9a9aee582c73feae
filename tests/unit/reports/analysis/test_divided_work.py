"""Work divided over processes: every item is done, and what goes wrong is raised here."""

import os
import select
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import pytest

from reports.analysis import divided_work
from reports.analysis.divided_work import divide


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided_work, "_processors", lambda: 2)


def test_several_processes_work_at_the_same_time() -> None:
    work_begins = get_context("fork").Barrier(2)

    def work(items: Sequence[int]) -> tuple[int, list[int]]:
        if items[0] < 2:
            work_begins.wait(60)
        return os.getpid(), [*items]

    found = divide(range(10), work, few=5)
    assert len(dict(found)) == 2
    assert [done for _, done in found] == [[number] for number in range(10)]


def test_a_slow_item_keeps_no_other_waiting() -> None:
    others_done = get_context("fork").Event()

    def work(items: Sequence[int]) -> int:
        if items[0] == 0:
            assert others_done.wait(60)
        elif items[0] == 9:
            others_done.set()
        return os.getpid()

    done_by = divide(range(10), work, few=5)
    assert done_by.count(done_by[0]) == 1


def test_work_may_divide_its_own_work() -> None:
    def work(items: Sequence[int]) -> list[int]:
        return [one for part in divide([*items, *items], tuple, few=1) for one in part]

    assert [one for part in divide(range(10), work, few=5) for one in part] == [n for n in range(10) for _ in range(2)]


def test_processes_end_when_the_one_that_started_them_is_killed() -> None:
    reading, writing = os.pipe()
    started = get_context("fork").Event()

    def work(_: Sequence[int]) -> None:
        started.set()
        time.sleep(600)

    first = get_context("fork").Process(target=divide, args=(range(10), work), kwargs={"few": 5})
    first.start()
    os.close(writing)
    assert started.wait(60)
    first.kill()
    # At its end when no process holds the pipe open any more.
    with os.fdopen(reading, "rb") as file:
        assert select.select([file], [], [], 60)[0]
        assert file.read() == b""


def test_many_items_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided_work, "MOST_PARTS", 4)
    assert divide(range(10), tuple, few=5) == ((0, 1, 2), (3, 4, 5), (6, 7, 8), (9,))


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

    assert [one for part in divide(range(10), work, few=5) for one in part] == [*range(10)]
