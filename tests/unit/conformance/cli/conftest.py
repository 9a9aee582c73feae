"""Commands in this process. Reading the built-in suite takes seconds, so they share one reading; test_validate.py reads it anew."""

from __future__ import annotations

import pytest

from conformance.suite import discovery
from tests.support.whole_suite import whole_suite


@pytest.fixture
def suite_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads the built-in suite in this process is given the suite that other tests have read."""
    load = discovery.load
    monkeypatch.setattr(discovery, "load", lambda paths=None: load(paths) if paths else whole_suite())
