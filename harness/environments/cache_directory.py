"""Directories for environments and cached answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_cache_path


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The absolute cache directory: ``CONFORMANCE_CACHE`` or the user's. It may not exist yet."""
    if chosen := environ.get("CONFORMANCE_CACHE"):
        return Path(chosen).expanduser().resolve()
    return user_cache_path("watermark-conformance", appauthor=False)


def answers_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The file with cached answers of engines: ``CONFORMANCE_ANSWERS`` or ``answers.sqlite`` in the cache directory."""
    if chosen := environ.get("CONFORMANCE_ANSWERS"):
        return Path(chosen).expanduser().resolve()
    return cache_dir(environ) / "answers.sqlite"
