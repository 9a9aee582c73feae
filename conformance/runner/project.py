"""The user's project: the folder of its ``pyproject.toml``."""

from __future__ import annotations

from pathlib import Path

PYPROJECT = "pyproject.toml"


def project_root(folder: Path) -> Path:
    """The folder, or its nearest parent, that has a ``pyproject.toml``; the folder itself if none has."""
    return next((above for above in (folder, *folder.parents) if (above / PYPROJECT).is_file()), folder)
