"""Regular expressions of cases: anyone writes them."""

import re
from functools import partial

import pytest

from conformance.core import patterns
from conformance.core.patterns import NotAPattern, PatternTooSlow, check, occurs

HOSTILE = "(a|aa)+$"


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(patterns, "LIMIT_S", 0.2)


def test_a_pattern_is_found_anywhere():
    assert occurs(r"late|dropped", "3 rows were dropped")
    assert not occurs(r"^dropped", "3 rows\ndropped")
    assert occurs(r"^dropped", "3 rows\ndropped", in_lines=True)


@pytest.mark.parametrize(
    "text",
    [
        *("(", "[a", "*", "a{99999999999999999999}", "(?R)", "(?V1)a", r"(?P<x>a)(?&x)"),
        *("(" * 5000 + ")" * 5000, "a" * 30_000),
    ],
)
def test_not_a_pattern(text):
    with pytest.raises(NotAPattern):
        check(text)


@pytest.mark.parametrize(
    "text",
    [
        "(?:" * 40 + "a" + ")+" * 40,
        "((((a){99}){99}){99}){99}",
        "(?:" * 20 + "a" + "){2}" * 20,
        "(?=(?:a|(b){9}){9999})",
    ],
)
def test_a_pattern_that_takes_for_ever_to_compile_is_refused(text):
    with pytest.raises(NotAPattern, match="longer than 20,000 characters"):
        check(text)


@pytest.mark.parametrize("text", [r"(\d{1,1000}\.?)+", r"a{5000}", "(?:(?:(?:a+b)+c)+d)+", ".{0,100000}"])
def test_a_pattern_with_ordinary_repetitions_is_one(text):
    check(text)


@pytest.mark.parametrize("search", [occurs, partial(occurs, in_lines=True)])
def test_a_pattern_that_takes_for_ever_is_given_up(search, impatient):
    with pytest.raises(PatternTooSlow, match=r"takes longer than 0.2 s"):
        search(HOSTILE, "a" * 60 + "!")


@pytest.mark.parametrize("pattern", ["a{e<=3}", "{", r"\{e", "[{]", r"\N{DIGIT ONE}{2}", "a{,2}b", "{x", r"\\{"])
def test_a_brace_means_what_python_says(pattern: str) -> None:
    for text in ("a{e<=3}", "b", "{", "{e", "11", "aab", "{x", "\\{"):
        assert occurs(pattern, text) == (re.search(pattern, text) is not None), text
