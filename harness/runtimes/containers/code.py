"""The Python modules a user's cases may call, out of the folder they work in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_NOT_ENTERED = {"__pycache__", "node_modules", "site-packages"}


def modules(folder: Path) -> Iterator[Path]:
    """Every ``.py`` below a folder, but for hidden folders and virtual environments."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _NOT_ENTERED and not Path(here, name, "pyvenv.cfg").exists()
        )
        yield from (Path(here, name) for name in sorted(files) if name.endswith(".py"))
