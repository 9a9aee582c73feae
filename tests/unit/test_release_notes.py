"""The notes of a release come from the changelog, and tag, version and changelog agree."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHANGELOG = """# Changelog

## [Unreleased]

### Added
- Not released yet.

## [0.2.0] - 2026-12-01

### Added
- A case.

### Fixed
- A message.

## [0.1.0] - 2026-11-01
- The first one.

[0.2.0]: https://example.org/0.2.0
"""


def notes(folder, tag, version, changelog=CHANGELOG):
    (folder / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
    (folder / "CHANGELOG.md").write_text(changelog)
    program = [sys.executable, str(ROOT / ".github" / "release_notes.py"), tag]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("version", "printed"),
    [
        ("0.2.0", "### Added\n- A case.\n\n### Fixed\n- A message.\n"),
        ("0.1.0", "- The first one.\n"),
    ],
)
def test_the_section_of_the_version(tmp_path, version, printed):
    done = notes(tmp_path, f"v{version}", version)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


@pytest.mark.parametrize(
    ("tag", "version", "why"),
    [
        ("v0.2.1", "0.2.0", "The tag is v0.2.1, but pyproject.toml has version 0.2.0."),
        ("0.2.0", "0.2.0", "The tag is 0.2.0, but pyproject.toml has version 0.2.0."),
        ("v0.3.0", "0.3.0", "CHANGELOG.md has no notes about 0.3.0"),
        ("v0x2.0", "0x2.0", "CHANGELOG.md has no notes about 0x2.0"),
    ],
)
def test_nothing_is_released_that_does_not_agree(tmp_path, tag, version, why):
    done = notes(tmp_path, tag, version)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(why)


def test_an_empty_section_is_an_error(tmp_path):
    done = notes(tmp_path, "v0.2.0", "0.2.0", "## [0.2.0]\n\n## [0.1.0]\n- The first one.\n")
    assert done.returncode == 1
    assert "no notes about 0.2.0" in done.stderr


@pytest.mark.parametrize("name", ["12.fixed.md", "+short.added.md"])
def test_changes_that_nobody_has_collected_are_an_error(tmp_path, name):
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "README.md").write_text("How to write one.")
    assert notes(tmp_path, "v0.2.0", "0.2.0").returncode == 0
    (tmp_path / "changelog.d" / name).write_text("A change.")
    done = notes(tmp_path, "v0.2.0", "0.2.0")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"changelog.d/{name} is not in CHANGELOG.md yet: run `towncrier build`" in done.stderr


def test_a_release_has_a_date(tmp_path):
    done = notes(tmp_path, "v0.2.0", "0.2.0", CHANGELOG.replace("2026-12-01", "unreleased"))
    assert done.returncode == 1
    assert "CHANGELOG.md gives no date to 0.2.0" in done.stderr


def test_the_changelog_has_a_section_for_the_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\n## [{version}] - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
