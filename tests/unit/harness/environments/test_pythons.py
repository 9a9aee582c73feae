"""Which interpreters are found, and which one is chosen."""

import os
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.environments import installer
from harness.environments.installer import Python, Uv, newest, search_path, specifier
from tests.support import environments as fakes

HERE = Version(".".join(map(str, sys.version_info[:3])))
REAL = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")


def _python(version: str, folder: str = "/usr/bin") -> Python:
    return Python(Path(folder, "python3"), Version(version))


def test_the_newest_in_the_range() -> None:
    found = [_python(version) for version in ("3.8.18", "3.11.7", "3.9.18", "3.10.13", "3.12.1")]
    assert newest(found, SpecifierSet(">=3.8,<3.12")) == _python("3.11.7")
    assert newest(found, SpecifierSet(">=3.8,<3.11")) == _python("3.10.13")
    assert newest(found, SpecifierSet(">=3.13,<3.14")) is None
    assert newest([_python("3.9.18", "/a"), _python("3.9.18", "/b")], SpecifierSet(">=3.8")) == _python("3.9.18", "/a")


def test_the_search_path_has_this_python_then_path_then_pyenv(tmp_path: Path) -> None:
    in_home = tmp_path / "home" / ".pyenv" / "versions" / "3.8.18" / "bin"
    in_root = tmp_path / "root" / "versions" / "3.9.18" / "bin"
    for folder in (in_home, in_root):
        folder.mkdir(parents=True)
    environ = {"PATH": "/usr/bin:/opt/bin", "HOME": str(tmp_path / "home"), "PYENV_ROOT": str(tmp_path / "root")}
    own, *others = search_path(environ).split(os.pathsep)
    assert own == str(REAL.parent)
    assert [folder for folder in others if folder != own] == [
        folder for folder in ("/usr/bin", "/opt/bin", str(in_root), str(in_home)) if folder != own
    ]


def test_shims_are_not_searched(tmp_path: Path) -> None:
    """pyenv's fail unless the current project has chosen that version."""
    shims = tmp_path / "pyenv" / "shims"
    assert str(shims) not in search_path({"PATH": f"{shims}{os.pathsep}/usr/bin"})


def test_a_real_uv_finds_those_of_pyenv_and_no_broken_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "none"))
    fakes.script(tmp_path / "path" / "python3.9", "echo No module named _ssl >&2; exit 1")
    (tmp_path / "path" / "python3.14").write_text("not a program")
    (tmp_path / "path" / "python3.14").chmod(0o755)
    version = tmp_path / "home" / ".pyenv" / "versions" / "3.x" / "bin"
    fakes.script(version / REAL.name, f'exec {REAL} "$@"')
    environ = {"PATH": str(tmp_path / "path"), "HOME": str(tmp_path / "home"), "UV_CACHE_DIR": str(tmp_path / "cache")}
    found = Uv(installer.find_uv() or "", environ).pythons()
    assert HERE in {python.version for python in found}
    assert not any(python.executable.is_relative_to(tmp_path / "path") for python in found)


def test_the_lower_end_of_a_range_comes_first() -> None:
    assert specifier(SpecifierSet("<3.12,>=3.8")) == ">=3.8,<3.12"
