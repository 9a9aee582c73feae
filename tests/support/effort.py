"""How much the tests on real engines run: a few cases of each path by default, all of them for ``tox -e full``."""

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")

FULL = os.environ.get("CONFORMANCE_TESTS") == "full"
"""Whether ``CONFORMANCE_TESTS=full`` asks for everything. It takes about an hour on two cores."""


full_run_only = pytest.mark.skipif(
    not FULL, reason="only in a full run (tox -e full, and every week): not worth its minutes on each change"
)


def sample(items: Sequence[T], few: int) -> tuple[T, ...]:
    """All items of a full run; else ``few`` of them, spread evenly over the whole."""
    if FULL or len(items) <= few:
        return tuple(items)
    return tuple(items[at * len(items) // few] for at in range(few))


def number(few: int, full: int) -> int:
    """``full`` in a full run, else ``few``."""
    return full if FULL else few
