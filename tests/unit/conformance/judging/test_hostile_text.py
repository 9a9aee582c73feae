"""Text that anyone may write, in a case or through an engine: judging it ends, and finds the same names as before."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance.core import patterns
from conformance.core.case import ExpectedError, Upgrade
from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import CheckpointHandoff, VersionPair, judge_upgrade
from conformance.judging.verdict import _classes_in, judge
from tests.support.observations import NEWEST, batch, case, differs, expect, failed, observed, step

V359 = SparkVersion.parse("3.5.9")


def error_case(**expected):
    return case(expect(error=expected))


SLOW = ExpectedError(message="(a|aa)+$")
MESSAGE = "a" * 60 + "!"


def test_a_cell_whose_pattern_takes_for_ever_is_broken_and_says_why(monkeypatch):
    """Also the pattern of a missing feature, and that of a refused checkpoint."""
    monkeypatch.setattr(patterns, "LIMIT_S", 0.2)
    fails = observed(failed(1, "SparkException", stage="run", message=MESSAGE))
    lacking = case(expect(), differs=(differs("<4", unsupported="it is missing", link="SPARK-1", error=SLOW),))
    rejected = observed(failed(1, "AnalysisException", stage="start", message=MESSAGE))
    refusing = case(expect(), expect(), upgrades=(Upgrade(because="it is so", link="SPARK-1", error=SLOW),))
    refused = observed(step(1, batch(0)), failed(2, "SparkException", stage="run", message=MESSAGE))
    for verdict in (
        judge(error_case(message="(a|aa)+$"), V359, fails),
        judge(lacking, V359, rejected),
        judge_upgrade(CheckpointHandoff(refusing, 2), VersionPair(V359, NEWEST), refused),
    ):
        assert verdict.status == "broken"
        assert "'(a|aa)+$' takes longer than 0.2 s" in verdict.notes[0]


@pytest.mark.parametrize("text", ["a." * 200_000, "a" * 400_000, "A" * 400_000, "[A_" * 150_000, "a.B$" * 100_000])
def test_long_messages_are_searched_for_classes_once(text):
    # A pattern that takes quadratic time would take minutes here.
    seen = observed(failed(1, "SparkException", stage="run", message=text))
    assert judge(error_case(**{"class": ("NoSuchException",)}), V359, seen).status == "violates"


_ONE_PATTERN = re.compile(r"\b(?:[a-z_]\w*\.)+(?:\w+\$)*([A-Z]\w*)")
"""What the names mean: this pattern finds the same, and takes quadratic time."""


@given(st.lists(st.sampled_from(["a", "org", ".", "Foo", "Bar", "$", "Exception", " ", ":", "_x", "1"]), max_size=12))
@example(["$", "a", ".", "Foo"])
def test_names_of_classes_in_a_message(parts):
    text = "".join(parts)
    expected = [name for found in _ONE_PATTERN.finditer(text) for name in (found[0], found[1])]
    assert list(_classes_in(text)) == expected
