"""Titles that a matrix of cases generates are sentences: articles and plurals fit, and no name of a parameter is left."""

import re

import pytest

from tests.support.published import published_report
from tests.support.whole_suite import whole_suite

# A vowel that is spoken as a consonant takes "a": a union, a unit, a one-sided condition, a user.
WRONG = re.compile(
    r"\b[Aa] (?!(?:uni|one\b|one-|use|eu))[aeiou]|\b[Aa]n (?![aeiou]|hour|honest)[a-z]"
    r"|\b1 (?:row|partition|batch|micro-batch|case|window)e?s\b|\b([a-z]+) \1\b|\ba-[a-z]|\bof the kind\b|\$\("
)
SHAPES = "form blank-for-a-dash"
"""The name of a way to write a delay, not a sentence."""


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("After a inner join", "a i"),
        ("an row", "an r"),
        ("divided into 1 partitions", "1 partitions"),
        ("forgotten a-day after", "a-d"),
        ("a join of the kind full-outer", "of the kind"),
        ("the the row", "the the"),
    ],
)
def test_each_mistake_is_seen(text: str, wrong: str) -> None:
    found = WRONG.search(text)
    assert found[0] == wrong


def test_every_title_is_a_sentence() -> None:
    suite = whole_suite()
    titles = {case.id: " ".join(case.title.split()) for case in (*suite.cases, *suite.policy_cases)}
    found = {id: text for id, text in titles.items() if WRONG.search(text.replace(SHAPES, ""))}
    assert not found


def test_every_sentence_about_a_change_is_one() -> None:
    report = published_report()
    sentences = {change.what for pair in report.pairs for change in pair.changes}
    sentences |= {reason.text for pair in report.pairs for change in pair.changes for reason in change.reasons}
    assert len(sentences) > 200
    assert [text for text in sorted(sentences) if WRONG.search(text)] == []
