from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def _collects_only_its_own_garbage() -> Iterator[None]:
    """At the end of a program its garbage is collected, for which all that other tests keep would be searched each time."""
    gc.freeze()
    yield
    gc.unfreeze()
