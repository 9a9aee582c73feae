"""The built-in suite, read once for all tests of a process; its values are frozen. What tests the reading reads it itself."""

from functools import cache

from conformance.suite.discovery import Suite, load


@cache
def whole_suite() -> Suite:
    """What ``discovery.load()`` gives."""
    return load()
