"""Making environments in a checkout that a stranger has filled: nothing of it runs, and the user's own settings still count."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.environments import installer as hashes
from harness.environments.class_archive import compile_imported
from harness.environments.environment import interpreter
from harness.environments.installer import InstallFailed, Uv
from harness.errors import HarnessError
from harness.progress import ignore_progress
from tests.support.hostile_checkout import hostile_checkout, offline, pyspark_wheel


@pytest.fixture(autouse=True)
def no_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With them nothing below would be installed, wherever it came from."""
    monkeypatch.setattr(hashes, "known", lambda: {"uv==99.0": "uv==99.0"})


@pytest.fixture
def checkout(tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(root := hostile_checkout(tmp_path / "checkout", canary))
    return root


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A machine whose package index cannot be reached."""
    return offline(tmp_path) | {"UV_OFFLINE": "0"}


def _install(tmp_path: Path, environ: dict[str, str]) -> Path:
    uv = pytest.importorskip("uv")
    installer = Uv(uv.find_uv_bin(), environ)
    installer.venv(tmp_path / "made", Path(sys.executable), on_progress=ignore_progress)
    python = interpreter(tmp_path / "made")
    installer.install(python, ["pyspark==3.5.9"], on_progress=ignore_progress)
    compile_imported(python)
    return python


@pytest.mark.parametrize("settings", ["uv.toml", "pyproject.toml"])
def test_uv_does_not_obey_the_checkout(
    settings: str, checkout: Path, canary: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    """Its settings name a folder of the checkout as the only index, with a pyspark that runs code at each start."""
    (checkout / ({"uv.toml", "pyproject.toml"} - {settings}).pop()).unlink()
    with pytest.raises(InstallFailed):
        _install(tmp_path, environ)
    assert not canary.exists()


def test_uv_obeys_the_file_of_the_user(checkout: Path, canary: Path, environ: dict[str, str], tmp_path: Path) -> None:
    pyspark_wheel(tmp_path / "mirror", "3.5.9")
    config = Path(environ["HOME"]) / ".config" / "uv" / "uv.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'find-links = ["{tmp_path / "mirror"}"]\nno-index = true\n', encoding="utf-8")
    python = _install(tmp_path, {name: value for name, value in environ.items() if name != "UV_DEFAULT_INDEX"})
    program = [str(python), "-I", "-c", "import pyspark; print(pyspark.__version__)"]
    assert subprocess.check_output(program, cwd=tmp_path, text=True) == "3.5.9\n"
    assert not canary.exists()


@pytest.mark.parametrize("variable", ["UV_FIND_LINKS", "PIP_FIND_LINKS"])
def test_a_folder_that_the_user_names_from_here_is_found(
    variable: str, checkout: Path, canary: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    """Programs run elsewhere, and the user's variables mean what they mean where the user is."""
    pyspark_wheel(tmp_path / "mirror", "3.5.9")
    (tmp_path / "empty").mkdir()
    index = f"file://{tmp_path / 'empty'}"
    _install(tmp_path, {**environ, "UV_DEFAULT_INDEX": index, variable: "../mirror"})
    assert not canary.exists()


def test_pip_is_not_that_of_the_checkout(
    checkout: Path, canary: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a plain ``pip install watermark-conformance`` there is no uv, and pip fetches it."""
    monkeypatch.setitem(sys.modules, "uv", None)
    with pytest.raises(HarnessError, match="uv, which makes the environments, is not installed"):
        hashes.obtain_uv({**environ, "PATH": "", "PIP_NO_INDEX": "1"}, ignore_progress)
    assert not canary.exists()


@pytest.mark.parametrize("path", [".", "", "/nowhere:", "../bin"])
def test_no_program_of_the_checkout_is_found(
    path: str, checkout: Path, canary: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty entry of PATH, as ``PATH=$PATH:`` leaves one, is the working directory."""
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.chdir(checkout / "bin")
    assert hashes.find_uv({**environ, "PATH": path}) is None
