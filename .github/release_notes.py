"""Release notes: ``release_notes.py TAG`` prints the section of CHANGELOG.md about a tag such as ``v0.2.0``.

Exits with an error if the tag is not the version in pyproject.toml, or if the changelog says nothing about that version.
"""

import re
import sys
import tomllib
from pathlib import Path


def release_notes(tag: str, folder: Path) -> str:
    """The notes of a release.

    Args:
        tag: ``v`` and the version.
        folder: the one with pyproject.toml and CHANGELOG.md.

    Raises:
        SystemExit: the tag, the version and the changelog do not agree.
    """
    version = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if tag != f"v{version}":
        sys.exit(f"The tag is {tag}, but pyproject.toml has version {version}.")
    changelog = (folder / "CHANGELOG.md").read_text(encoding="utf-8")
    left = sorted(path.name for path in (folder / "changelog.d").glob("*.md") if path.name != "README.md")
    if left:
        sys.exit(f"changelog.d/{left[0]} is not in CHANGELOG.md yet: run `towncrier build`.")
    section = re.search(rf"^## \[{re.escape(version)}\].*\n((?:(?!## |\[[^\]]+\]: ).*\n)*)", changelog, re.MULTILINE)
    if section is None or not section[1].strip():
        sys.exit(f"CHANGELOG.md has no notes about {version}: run `towncrier build`.")
    if re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE) is None:
        sys.exit(f"CHANGELOG.md gives no date to {version}.")
    return section[1].strip()


if __name__ == "__main__":
    print(release_notes(sys.argv[1], Path.cwd()))
