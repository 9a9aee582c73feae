"""What tests share is made once for all workers of pytest-xdist, and again only if making it failed."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.once import made_once


@dataclass
class Worker:
    """What ``made_once`` asks a worker's factory for."""

    base: Path

    def getbasetemp(self) -> Path:
        self.base.mkdir(parents=True, exist_ok=True)
        return self.base


def of_two_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Worker, Worker]:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    return Worker(tmp_path / "popen-gw0"), Worker(tmp_path / "popen-gw1")


def test_two_workers_share_what_one_has_made(tmp_path, monkeypatch):
    def must_not_be_asked(folder: Path) -> None:
        raise AssertionError

    one, other = of_two_workers(tmp_path, monkeypatch)
    made = made_once(one, "wheel", lambda folder: (folder / "a.whl").write_text("built"))
    assert made_once(other, "wheel", must_not_be_asked) == made == tmp_path / "wheel"
    assert (made / "a.whl").read_text() == "built"


def test_what_could_not_be_made_is_made_from_nothing_by_the_next(tmp_path, monkeypatch):
    def half(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space left")

    one, other = of_two_workers(tmp_path, monkeypatch)
    with pytest.raises(OSError, match="no space left"):
        made_once(one, "wheel", half)
    made = made_once(other, "wheel", lambda folder: (folder / "whole").touch())
    assert [path.name for path in made.iterdir()] == ["whole"]


def test_one_process_keeps_it_with_its_own_files(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    assert made_once(Worker(tmp_path / "pytest-0"), "wheel", lambda folder: None) == tmp_path / "pytest-0" / "wheel"
