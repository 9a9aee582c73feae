"""What a user's text names of known versions."""

import pytest

from conformance.core.versions import (
    NotARange,
    NotAVersion,
    SparkVersion,
    VersionRange,
    maintained_until,
    named,
    released_on,
    releases,
)

KNOWN = ("3.5.8", "3.5.9", "4.0.5")
LABELLED = {"ours": "3.5.9", "4.0.5": "3.5.9", "spark-4.0.5": "4.0.5", "other": "3.5.9", "unknown": None}
"""Columns of results by name; somebody called one like a version that it is not."""


def of_known(text):
    return named(text, KNOWN, SparkVersion.parse, lambda each: (each,))


def of_labelled(text):
    def version(name):
        return SparkVersion.parse(LABELLED[name]) if LABELLED[name] else None

    return named(text, LABELLED, version, lambda name: (name,), lambda name: (LABELLED[name],))


@pytest.mark.parametrize(
    ("text", "meant"),
    [("3.5.8", ("3.5.8",)), ("3.5", ("3.5.9",)), ("4.0", ("4.0.5",)), ("3", ()), ("3.4", ()), ("", ())],
)
def test_a_version_or_the_newest_of_a_line(text, meant):
    assert of_known(text) == meant


def test_a_name_goes_before_a_version_and_what_several_have_is_ambiguous():
    assert of_labelled("4.0.5") == ("4.0.5",)
    assert of_labelled("4.0") == of_labelled("spark-4.0.5") == ("spark-4.0.5",)
    assert of_labelled("3.5.9") == of_labelled("3.5") == ("ours", "4.0.5", "other")


@pytest.mark.parametrize("text", ["9" * 5_000, f"3.5.{'9' * 5_000}"])
def test_a_number_of_thousands_of_digits_is_no_version(text):
    with pytest.raises(NotAVersion):
        SparkVersion.parse(text)
    with pytest.raises(NotARange):
        VersionRange.parse(f">={text}")


def test_a_line_is_maintained_as_long_as_the_versioning_policy_says() -> None:
    first = {release.line: release for release in reversed(releases())}
    named_by_the_policy = {"2.4": "2021-05", "3.5": "2027-11"}
    for line, release in first.items():
        day = released_on(release)
        assert day is not None, release
        months = day.year * 12 + day.month - 1 + (6 if (release.major, release.minor) >= (4, 3) else 18)
        assert maintained_until(line) == named_by_the_policy.get(line, f"{months // 12}-{months % 12 + 1:02}")


def test_a_line_without_a_known_end_has_none() -> None:
    assert maintained_until("9.9") is None
