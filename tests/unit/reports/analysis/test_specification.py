"""The specification: every behaviour has its statement, its cases and their results, and keeps its number."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from conformance.core.errors import WrongUsage
from conformance.model.catalogue import catalogue
from conformance.suite.discovery import Suite
from reports.analysis.report import Report
from reports.analysis.specification import Specification, stated_rule
from tests.support.published import published_report, published_specification
from tests.support.whole_suite import whole_suite

NUMBERS = Path(__file__).parent / "statement-numbers.txt"
"""Number and name of every statement that was ever published. Lines are added and never changed."""
(CATALOGUE,) = whole_suite().catalogues.values()


def standings(evidence):
    return {standing for standing, _ in evidence.spans}


@cache
def statements():
    """Each by its behaviour."""
    return {one.id: one for one in published_specification().statements}


def shown(evidence):
    """Whether some case shows on some version what the statement says."""
    return any(standing in ("holds", "bug") for _, standing in evidence.by_version)


def with_behaviours(**behaviours):
    """A report whose catalogue has these behaviours instead."""
    report = published_report()
    return replace(report, catalogue=replace(report.catalogue, behaviours=behaviours))


def entry(number, section="joins"):
    return {"number": number, "section": section, "sentence": "It holds.", "sources": []}


def test_every_behaviour_of_the_catalogue_is_a_statement():
    assert set(statements()) == set(CATALOGUE.behaviours)


def test_a_number_is_never_changed_nor_reused():
    """A new behaviour: append its line. A behaviour that is gone: keep its line, so that its number stays its own."""
    published = dict(line.split(" ", 1) for line in NUMBERS.read_text(encoding="utf-8").splitlines())
    assert len(published) == len(NUMBERS.read_text(encoding="utf-8").splitlines()), "a number stands twice"
    now = {one.number: one.id for one in statements().values()}
    assert {number: id for number, id in now.items() if published.get(number, id) != id} == {}
    assert set(now) - set(published) == set(), f"append to {NUMBERS.name}"


def test_a_statement_has_its_sentence_sources_cases_and_results():
    for behaviour in CATALOGUE.behaviours:
        one = statements()[behaviour]
        assert one.sentence.endswith("."), behaviour
        assert one.sources, behaviour
        if one.untested is not None:
            told = CATALOGUE.behaviours[one.id]
            assert told.get("why") or told.get("reason"), f"{behaviour}: a behaviour without a case says why"
        elif not {case.case for case in one.cases} & set(published_report().matrix.cases):
            # All its cases are newer than the published results, which every page says.
            assert standings(one.evidence) <= {"untested", "outside"}, behaviour
        else:
            assert standings(one.evidence) & {"holds", "bug"}, f"{behaviour}: no published result shows it"


def test_no_published_result_contradicts_a_statement():
    found = [id for id, one in statements().items() if "violates" in standings(one.evidence)]
    assert found == []


@pytest.mark.parametrize(
    ("behaviours", "said"),
    [
        ({"a": {"section": "joins"}}, "a: it has no number"),
        ({"a": entry("8")}, "a: it has no number"),
        ({"a": entry("8.1"), "b": entry("8.1")}, "b: 8.1 is the number of a"),
        ({"a": entry("8.1"), "b": entry("8.2", "recovery")}, "b: chapter 8 is 'joins', not 'recovery'"),
    ],
)
def test_wrong_numbers_are_said(behaviours, said):
    with pytest.raises(WrongUsage, match=re.escape(said)) as caught:
        Specification.of(with_behaviours(**behaviours))
    assert caught.value.exit_code == 2


def test_statements_stand_by_their_numbers_not_by_their_place_in_the_catalogue():
    found = Specification.of(with_behaviours(a=entry("2.10"), b=entry("2.9"), c=entry("1.1", "columns")))
    assert [(one.number, one.title, [each.id for each in one.statements]) for one in found.chapters] == [
        (1, "Columns", ["c"]),
        (2, "Joins", ["b", "a"]),
    ]


def test_cases_without_a_catalogue_specify_nothing(tmp_path):
    report = Report.of(published_report().results, Suite(()))
    with pytest.raises(ValueError, match="nothing to specify"):
        Specification.of(report)


def test_an_unknown_rule_is_said():
    with pytest.raises(ValueError, match="'is_lat', which is not in"):
        stated_rule("is_lat")


def test_the_functions_that_read_a_rule_are_known_and_short_ones_are_shown():
    for rule in catalogue():
        readers = [*published_specification().readers(rule)]
        assert readers, rule
        for reader in readers:
            assert reader.text is None or (rule in reader.text and len(reader.text.splitlines()) <= 16), rule


def test_the_value_of_a_rule_is_shown_as_the_function_that_it_is_or_by_its_name():
    shown = [
        value
        for name in ("is_late", "node_watermark_ms", "late_watermark")
        for _, _, value in stated_rule(name).versions
    ]
    assert shown == [
        "def _at_or_before(time_us: int, watermark_ms: int) -> bool:\n    return time_us <= watermark_ms * 1000",
        '"node_watermark_ms": {"highest minus delay": lambda highest, delay: highest - delay},',
        "rules.late_watermark = 'own batch'",
        "rules.late_watermark = 'batch before'",
    ]
