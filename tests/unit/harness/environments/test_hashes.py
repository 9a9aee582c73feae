"""A pyspark is installed only if its file is the one of PyPI: by the real uv, from a folder."""

import hashlib
import re
import sys
from pathlib import Path

import pytest

from conformance.core.versions import releases
from harness.environments import installer as hashes
from harness.environments import provision
from harness.environments.environment import interpreter
from harness.environments.installer import InstallFailed, Uv
from harness.progress import ignore_progress
from harness.targets.targets import Targets
from tests.support import environments as fakes
from tests.support.hostile_checkout import pyspark_wheel


def test_each_release_and_one_uv_have_a_hash() -> None:
    wanted = {f"pyspark=={release}" for release in releases()} | {hashes.uv()}
    assert hashes.known().keys() == wanted
    assert wanted >= {target.requirement for target in Targets.load().entries}
    line = re.compile(r"(pyspark|uv)==[\d.]+( --hash=sha256:[0-9a-f]{64})+")
    assert [text for text in hashes.known().values() if not line.fullmatch(text)] == []
    # Two versions with one hash would be a mistake.
    digests = re.findall(r"sha256:(\w+)", " ".join(hashes.known().values()))
    assert len(set(digests)) == len(digests)


def _install(tmp_path: Path, version: str, **environ: str) -> Path:
    """Install the pyspark of ``tmp_path / "mirror"``; returns where its module would be."""
    uv = pytest.importorskip("uv")
    (tmp_path / "empty").mkdir()
    installer = Uv(
        uv.find_uv_bin(),
        {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PIP_CONFIG_FILE": "/dev/null",
            "UV_DEFAULT_INDEX": f"file://{tmp_path / 'empty'}",
            "UV_FIND_LINKS": str(tmp_path / "mirror"),
            **environ,
        },
    )
    installer.venv(tmp_path / "made", Path(sys.executable), on_progress=ignore_progress)
    python = interpreter(tmp_path / "made")
    installer.install(python, [f"pyspark=={version}"], on_progress=ignore_progress)
    return next((tmp_path / "made").rglob("pyspark"))


@pytest.mark.parametrize("environ", [{}, {"UV_NO_VERIFY_HASHES": "1"}], ids=["plain", "a variable of the user"])
def test_another_file_than_that_of_pypi_is_not_installed(tmp_path: Path, environ: dict[str, str]) -> None:
    pyspark_wheel(tmp_path / "mirror", "3.5.9")
    with pytest.raises(InstallFailed, match="another file of this name than PyPI has") as caught:
        _install(tmp_path, "3.5.9", **environ)
    assert caught.value.exit_code == 3
    assert [*(tmp_path / "made").rglob("pyspark*")] == []


def test_the_file_with_the_known_hash_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark_wheel(tmp_path / "mirror", "3.5.9")
    digest = hashlib.sha256(next((tmp_path / "mirror").iterdir()).read_bytes()).hexdigest()
    monkeypatch.setattr(hashes, "known", lambda: {"pyspark==3.5.9": f"pyspark==3.5.9 --hash=sha256:{digest}"})
    assert _install(tmp_path, "3.5.9").exists()


def test_a_version_without_a_known_hash_is_installed(tmp_path: Path) -> None:
    pyspark_wheel(tmp_path / "mirror", "3.5.99")
    assert _install(tmp_path, "3.5.99").exists()


@pytest.mark.parametrize(("requirements", "count"), [({}, 1), ({fakes.TARGET.requirement: ""}, 0)])
def test_a_run_says_that_it_knows_no_hash(
    requirements: dict[str, str], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashes, "known", lambda: requirements)
    said: list[str] = []
    environ = {"CONFORMANCE_CACHE": str(tmp_path), "PATH": ""}
    provision.prepare(fakes.TARGET, on_progress=said.append, environ=environ, installer=fakes.FakeInstaller())
    line = "no sha256 of pyspark==3.5.9 is known to this suite: it is installed as the index sends it"
    assert said.count(line) == count
