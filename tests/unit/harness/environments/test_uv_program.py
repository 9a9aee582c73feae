"""Which uv is used, and how it gets into the cache where there is none: by the real pip, from a folder."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.environments import installer
from harness.environments.installer import find_uv, obtain_uv
from harness.errors import HarnessError
from harness.progress import ignore_progress
from tests.support import environments as fakes


@pytest.fixture
def no_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)


@pytest.fixture
def environ(tmp_path: Path, no_uv: None, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine without uv, and an index with the one whose hash is known."""
    index = tmp_path / "index"
    digest = fakes.uv_wheel(index, "echo uv 99.0")
    monkeypatch.setattr(installer, "known", lambda: {"uv==99.0": f"uv==99.0 --hash=sha256:{digest}"})
    return {
        "PATH": "",
        "CONFORMANCE_CACHE": str(tmp_path / "cache"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_CONFIG_FILE": "/dev/null",
    }


def test_the_one_on_the_path(tmp_path: Path, no_uv: None) -> None:
    program = fakes.script(tmp_path / "bin" / "uv", "exit 0")
    assert find_uv({"PATH": str(program.parent), "CONFORMANCE_CACHE": str(tmp_path)}) == str(program)
    assert find_uv({"PATH": "", "CONFORMANCE_CACHE": str(tmp_path)}) is None


def test_the_one_that_is_installed_comes_first(tmp_path: Path) -> None:
    uv = pytest.importorskip("uv")
    program = fakes.script(tmp_path / "bin" / "uv", "exit 0")
    assert find_uv({"PATH": str(program.parent)}) == uv.find_uv_bin()


def test_it_is_downloaded_once_whatever_the_settings_of_pip(environ: dict[str, str]) -> None:
    """Each of these settings alone would keep pip from it; the tests below are without."""
    said: list[str] = []
    program = obtain_uv({**environ, "PIP_USER": "1", "PIP_REQUIRE_VIRTUALENV": "1"}, said.append)
    assert subprocess.check_output([program], text=True) == "uv 99.0\n"
    assert said == ["downloading uv, which makes the environments"]
    assert find_uv(environ) == program
    assert obtain_uv({**environ, "PIP_FIND_LINKS": "/nowhere"}, said.append) == program
    assert len(said) == 1


def test_another_file_than_the_known_one_is_not_installed(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installer, "known", lambda: {"uv==99.0": f"uv==99.0 --hash=sha256:{'0' * 64}"})
    with pytest.raises(HarnessError, match=r"the index has another file of uv==99\.0 than PyPI has") as caught:
        obtain_uv(environ, ignore_progress)
    assert caught.value.exit_code == 3
    assert find_uv(environ) is None


def test_processes_that_need_it_at_once_share_it_and_replace_what_a_killed_one_left(environ: dict[str, str]) -> None:
    left = Path(environ["CONFORMANCE_CACHE"]) / "uv" / "lib"
    left.mkdir(parents=True)
    said: list[str] = []
    with ThreadPoolExecutor(2) as both:
        (program,) = {*both.map(lambda _: obtain_uv(environ, said.append), range(2))}
    assert said.count("downloading uv, which makes the environments") == 1
    assert (Path(program).is_file(), left.exists()) == (True, False)


def test_why_there_is_none(environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        HarnessError, match=r"^uv, which.*, is not installed, and pip could not.*\(.*\)\. Install it: pip install uv"
    ):
        obtain_uv({**environ, "PIP_FIND_LINKS": str(tmp_path)}, ignore_progress)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["uv.lock"]
    monkeypatch.setattr(installer, "find_spec", lambda name: None)
    with pytest.raises(HarnessError, match=r"and there is no pip to download it with\. Install it: pip install uv"):
        obtain_uv(environ, ignore_progress)
