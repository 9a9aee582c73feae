"""The questions of the site: short answers by cases that ran, with links that lead to statements."""

import re
from dataclasses import replace
from functools import cache

import pytest

from conformance.core.errors import WrongUsage
from reports.html.specification_pages import SpecificationPages, pages_of_report
from tests.support.published import published_report, published_specification
from tests.support.whole_suite import whole_suite
from tools.site_questions import llms_text, questions, questions_markdown

(CATALOGUE,) = whole_suite().catalogues.values()
LONGEST_ANSWER = 500
"""Characters: five lines of a page."""


def standings(evidence):
    return {standing for standing, _ in evidence.spans}


@cache
def answered():
    """Each question by its id."""
    return {one.id: one for one in questions(published_report(), published_specification())}


@pytest.mark.parametrize("question", CATALOGUE.questions)
def test_a_question_is_answered_in_five_lines_by_cases_that_ran(question):
    one = answered()[question]
    assert len(one.answer) <= LONGEST_ANSWER
    assert len(re.findall(r"[.?!](?=\s|$)", one.answer)) <= 5
    assert one.clauses
    assert one.statements
    assert standings(one.evidence) & {"holds", "bug"}
    assert all(re.fullmatch(r"https://\S+|SPARK-\d{5}", link) for link in one.links)


def test_the_questions_that_people_ask_most_are_there():
    assert len(answered()) >= 21


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"clauses": [{"says": "Because", "case": "late-drops/gone", "step": "1", "shows": "rows"}]},
            "q: there are no results of a case 'late-drops/gone'",
        ),
        ({"behaviours": ["gone"]}, "q: behaviours.yaml has no 'gone'"),
    ],
)
def test_a_question_about_what_is_not_there_is_said(entry, said):
    report = published_report()
    asked = {"q": {"question": "Why?", "answer": "Because.", **entry}}
    changed = replace(report, catalogue=replace(report.catalogue, questions=asked))
    with pytest.raises(WrongUsage, match=re.escape(said)):
        questions(changed, published_specification())


def test_every_question_has_its_anchor_and_its_links_lead_to_statements():
    found = questions(published_report(), published_specification())
    page = questions_markdown(
        published_report(), found, published_specification(), pages_of_report("../report"), "specification"
    )
    assert {one.id for one in found} <= {*re.findall(r'<a id="([^"]+)">', page)}
    statements = re.findall(r"\(specification/([^#)]+)#([^)]+)\)", page)
    assert len(statements) >= len(found)
    pages = SpecificationPages(published_report(), published_specification(), pages_of_report("../report")).markdown()
    for file, place in statements:
        assert f'<a id="{place}">' in pages[file]


def test_an_answer_says_of_each_part_what_its_step_shows():
    """Questions and statements have one verdict: a processing-time trigger lets the micro-batch without data wait, as 5.7 says."""
    asked = answered()["window-one-batch-late"]
    page = questions_markdown(
        published_report(), [asked], published_specification(), pages_of_report(None), "specification"
    )
    assert (
        "- “which starts at once”: `batches` of step 2 of A closed window is emitted in a no-data micro-batch" in page
    )
    trigger = next(line for line in page.splitlines() if line.startswith("- “at the next multiple of its interval”"))
    assert trigger.endswith("(○ not tried: 3.0 – 3.3; ● holds: 3.4 – 4.3)")
    assert "5.7" in {one.number for one in asked.statements}


def test_programs_get_every_question_and_statement_with_its_versions():
    found = questions(published_report(), published_specification())
    lines = llms_text(found, published_specification(), "https://example.org/site/").splitlines()
    assert lines[0].startswith("# ")
    assert lines[2].startswith("> ")
    entries = [line for line in lines if line.startswith("- [")]
    assert len(entries) == len(found) + len(published_specification().statements)
    assert all(re.search(r"\((●|◆|▲|–|·|✗|○|not tested).*\)$", line) for line in entries)
    assert any("(https://example.org/site/specification/03-late-filtering.html#3.1)" in line for line in entries)
