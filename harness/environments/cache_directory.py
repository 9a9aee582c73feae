"""Where what is expensive to make is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_cache_path


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """The user's cache directory, absolute; ``CONFORMANCE_CACHE`` chooses another. It may not exist yet."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("CONFORMANCE_CACHE"):
        return Path(chosen).expanduser().resolve()
    return user_cache_path("watermark-conformance", appauthor=False)


def answers_file(environ: Mapping[str, str] | None = None) -> Path:
    """Where the answers of engines are kept: ``answers.sqlite`` in the cache; ``CONFORMANCE_ANSWERS`` chooses another file."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("CONFORMANCE_ANSWERS"):
        return Path(chosen).expanduser().resolve()
    return cache_dir(environ) / "answers.sqlite"
