"""Tests that have nothing to do with watermarks."""

from harness import GREETING


def test_our_own_harness_is_imported():
    assert GREETING == "our own harness"
