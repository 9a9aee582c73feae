"""Which interpreter is chosen, and what is said of the others."""

from __future__ import annotations

import sys
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.environments import pythons
from harness.environments.pythons import NoSuchPython
from tests.support import environments as fakes


def _best(wanted: str, environ: dict[str, str], *managed: Path) -> Path | None:
    found = pythons.search(SpecifierSet(wanted), environ, managed).best
    return found and found.executable


def test_the_newest_in_the_range(bare: dict[str, str], tmp_path: Path) -> None:
    for version in ("3.8.18", "3.9.18", "3.10.13", "3.12.1"):
        fakes.python(tmp_path / "path" / f"python{version.rpartition('.')[0]}", version)
    assert _best(">=3.8,<3.12", bare) == tmp_path / "path" / "python3.11"
    assert _best(">=3.8,<3.11", bare) == tmp_path / "path" / "python3.10"
    assert _best(">=3.13,<3.14", bare) is None


def test_on_path_in_pyenv_in_uv_and_this_one(bare: dict[str, str], tmp_path: Path) -> None:
    in_home = fakes.python(tmp_path / "home" / ".pyenv" / "versions" / "3.8.18" / "bin" / "python3.8", "3.8.18")
    in_root = fakes.python(tmp_path / "root" / "versions" / "3.9.18" / "bin" / "python3.9", "3.9.18")
    of_uv = fakes.python(tmp_path / "uv" / "cpython-3.10" / "bin" / "python3.10", "3.10.13")
    environ = bare | {"PYENV_ROOT": str(tmp_path / "root")}
    assert _best("==3.8.*", environ, of_uv) == in_home
    assert _best("==3.9.*", environ, of_uv) == in_root
    assert _best("==3.10.*", environ, of_uv) == of_uv
    assert _best("==3.20.*", environ, of_uv) == Path(sys.executable)


def test_shims_are_not_asked(bare: dict[str, str], tmp_path: Path) -> None:
    """pyenv's refuse where the project has not chosen that version, and choose another one elsewhere."""
    fakes.python(tmp_path / "pyenv" / "shims" / "python3.9", "3.9.18")
    assert _best("==3.9.*", bare | {"PATH": str(tmp_path / "pyenv" / "shims")}) is None


def test_what_does_not_work_is_passed_over_and_named(bare: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "path"
    fakes.script(path / "python3.9", "echo No module named _ssl >&2; exit 1")
    fakes.script(path / "python3.10", "echo hello")
    fakes.python(path / "python3.12", "3.12.1", implementation="pypy")
    fakes.python(path / "python3.13", "3.13.0", free_threaded=True)
    (path / "python3.14").write_text("not a program")
    (path / "python3.14").chmod(0o755)
    search = pythons.search(SpecifierSet(">=3.8,<3.15"), bare)
    assert search.best is not None
    assert search.best.version == Version("3.11.7")
    unfit = {where.name: why for where, why in search.unfit}
    assert unfit.pop("python3.14").startswith("does not start")
    assert unfit == {
        "python3": "is 3.20.0",
        "python3.9": "fails: No module named _ssl",
        "python3.10": "does not answer like a Python",
        "python3.12": "is pypy 3.12.1, not CPython",
        "python3.13": "is a free-threaded 3.13.0",
    }


def test_the_error_says_what_was_looked_for_what_was_found_and_what_to_do() -> None:
    error = NoSuchPython(SpecifierSet(">=3.8,<3.9"), {Path("/usr/bin/python3"): "is 3.11.2"}, "dns error")
    assert error.exit_code == 3
    for said in ("3.8", "/usr/bin/python3 is 3.11.2", "dns error", "put it on PATH"):
        assert said in str(error)


def test_the_question_is_understood_by_a_real_interpreter() -> None:
    answer = pythons.ask(Path(sys.executable))
    assert isinstance(answer, pythons.Python)
    assert answer.version.release == sys.version_info[:3]
