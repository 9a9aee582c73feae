"""On which versions a statement holds, by the results of the steps that its clauses cite."""

import pytest

from conformance.core.versions import SparkVersion
from conformance.judging.verdict import combine, judge, no_answer, not_applicable
from reports.analysis.matrix import Matrix
from reports.analysis.report import Report
from reports.analysis.specification import Clause, Evidence, span
from reports.results.records import Cell, TargetRecord
from tests.support import cells as a
from tests.support.observations import batch, case, change, differs, expect, failed, observed, step, window
from tests.support.published import published_report, published_specification
from tests.support.whole_suite import whole_suite

VERSIONS = ("3.3.4", "3.4.4", "3.5.8", "3.5.9", "4.0.5")
FIRST, SECOND, THIRD = (window("12:00", "12:10", total) for total in (1, 2, 3))
ROWS = {1: [["12:00", "12:10", 1]], 2: [["12:00", "12:10", 2]], 3: [["12:00", "12:10", 3]]}
REFUSED = differs("<3.4", unsupported="it is new", link="SPARK-1", error={"class": ("AnalysisException",)})
NOT_STARTED = (failed(1, "AnalysisException", stage="start"),)
FAILED_LATER = (step(1, batch(0, FIRST)), failed(2, "SparkException"))


def answer(*rows, dropped=0):
    """Each step with one micro-batch."""
    return tuple(step(number, batch(number, row, dropped=dropped)) for number, row in enumerate(rows, 1))


CALM = answer(FIRST, SECOND, THIRD)
OTHER_SECOND = answer(FIRST, THIRD, THIRD)
"""The second step emits what the third does."""
OTHER_THIRD = answer(FIRST, SECOND, FIRST)


def changed(spark, number=2, **keys):
    about = {
        "because": "it was otherwise",
        "link": "SPARK-3",
        "steps": {number: change(rows=ROWS[3 if number == 2 else 1])},
    }
    return differs(spark, **{**about, **keys})


def report(answers, **entries):
    """Of cases with three steps: case → version → answer; what is not answered is as expected."""
    cases, cells = {}, {}
    for id, of_case in answers.items():
        steps = [expect(rows=ROWS[number], **({"dropped": 0} if number == 1 else {})) for number in (1, 2, 3)]
        cases[id] = case(*steps, id=id, differs=entries.get(id, ()))
        for version in VERSIONS if "3.0.3" not in of_case else ("3.0.3", *VERSIONS):
            cells[id, f"spark-{version}"] = cell(cases[id], version, of_case.get(version, CALM))
    names = dict.fromkeys(target for _, target in cells)
    targets = tuple(TargetRecord(name=name, spark=name.removeprefix("spark-")) for name in sorted(names))
    return Report(results=None, matrix=Matrix(tuple(cases), targets, cells), cases=cases)


def cell(of, text, shown):
    version, target = SparkVersion.parse(text), f"spark-{text}"
    match shown:
        case a.NOT_RUN:
            return Cell.of(of, target, no_answer(of, version, "not-run", "stopped"))
        case a.BROKEN:
            return Cell.of(of, target, no_answer(of, version, "broken", "the engine did not answer"))
        case a.OUTSIDE:
            elsewhere = of.model_copy(update={"spark": differs(">9").spark})
            return Cell.of(of, target, not_applicable(elsewhere, version))
        case [tuple(), tuple()]:
            seen = [observed(*steps).model_copy(update={"case": of.id}) for steps in shown]
            return Cell.of(of, target, combine([judge(of, version, one) for one in seen]), seen)
    seen = observed(*shown).model_copy(update={"case": of.id})
    return Cell.of(of, target, judge(of, version, seen), [seen])


def clause(step=2, shows="rows", case="f/a", **keys):
    return {"says": "it holds", "case": case, "step": str(step), "shows": shows, **keys}


def evidence(answers, *clauses, versions="all", **entries):
    """By the second step of one case, or by these clauses."""
    of = report(answers, **entries)
    return Evidence.of(of, Clause.all_of(of, {"versions": versions, "clauses": clauses or [clause()]}))


def spans(answers, *clauses, **keys):
    return list(evidence(answers, *clauses, **keys).spans)


def differing(spark, shown, number=2, **keys):
    """Results and entries of one case that differs on the versions up to 3.4."""
    return {"answers": {"f/a": {"3.3.4": shown, "3.4.4": shown}}, "f/a": (changed(spark, number, **keys),)}


def test_as_its_steps_say_it_holds():
    found = evidence({"f/a": {}, "f/b": {}}, clause(), clause(case="f/b"))
    assert list(found.spans) == [("holds", "3.3 – 4.0")]
    assert not found.variations


def test_a_difference_of_the_cited_step_is_no_contradiction_but_is_named():
    found = evidence(**differing("<3.5", OTHER_SECOND))
    assert list(found.spans) == [("differs", "3.3 – 3.4"), ("holds", "3.5 – 4.0")]
    (one,) = found.variations
    assert (one.versions, one.reason.because, one.cases) == ("3.3 – 3.4", "it was otherwise", ("f/a",))


def test_a_difference_of_another_step_does_not_touch_it():
    found = evidence(**differing("<3.5", OTHER_THIRD, number=3))
    assert list(found.spans) == [("holds", "3.3 – 4.0")]
    assert not found.variations


def test_a_difference_in_another_key_of_the_step_does_not_touch_it():
    entry = changed("<3.5", steps={2: change(dropped=1)})
    shown = answer(FIRST, SECOND, THIRD, dropped=1)[1]
    answers = {"f/a": dict.fromkeys(("3.3.4", "3.4.4"), (CALM[0], shown, CALM[2]))}
    assert spans(answers, **{"f/a": (entry,)}) == [("holds", "3.3 – 4.0")]


def test_a_known_bug_breaks_it_and_is_named():
    found = evidence(**differing("<3.5", OTHER_SECOND, bug=True))
    assert list(found.spans) == [("bug", "3.3 – 3.4"), ("holds", "3.5 – 4.0")]
    assert [(one.versions, one.reason.bug) for one in found.variations] == [("3.3 – 3.4", True)]


def test_what_a_version_lacks_is_not_tried_there():
    found = evidence({"f/a": {"3.3.4": NOT_STARTED}}, **{"f/a": (REFUSED,)})
    assert list(found.spans) == [("untested", "3.3"), ("holds", "3.4 – 4.0")]
    assert [one.reason.unsupported for one in found.variations] == ["it is new"]


def test_what_a_version_lacks_says_nothing_of_the_other_clauses():
    answers = {"f/a": {"3.3.4": NOT_STARTED}, "f/b": {}}
    assert spans(answers, clause(), clause(case="f/b"), **{"f/a": (REFUSED,)}) == [("holds", "3.3 – 4.0")]


@pytest.mark.parametrize(
    "entry",
    [
        changed("<3.5", steps={}, expect=expect(error={"class": ("AnalysisException",)})),
        changed("<3.5", steps={1: change(error={"class": ("AnalysisException",)})}),
    ],
)
def test_a_step_that_the_query_never_reached_is_not_tried_and_the_reason_is_named(entry):
    answers = {"f/a": dict.fromkeys(("3.3.4", "3.4.4"), NOT_STARTED)}
    found = evidence(answers, **{"f/a": (entry,)})
    assert list(found.spans) == [("untested", "3.3 – 3.4"), ("holds", "3.5 – 4.0")]
    assert [(one.versions, one.reason.link) for one in found.variations] == [("3.3 – 3.4", "SPARK-3")]


def test_reasons_are_those_of_each_version_though_they_have_one_ticket():
    entries = (changed("<3.4", because="rows were lost"), changed(">=3.4,<3.5", because="rows came twice"))
    answers = {"f/a": dict.fromkeys(("3.3.4", "3.4.4"), OTHER_SECOND)}
    found = evidence(answers, **{"f/a": entries})
    assert [(one.versions, one.reason.because) for one in found.variations] == [
        ("3.3", "rows were lost"),
        ("3.4", "rows came twice"),
    ]


def test_the_least_good_clause_decides():
    bug = changed("<3.4", bug=True)
    answers = {"f/a": dict.fromkeys(("3.3.4", "3.4.4"), OTHER_SECOND), "f/b": {"3.3.4": OTHER_SECOND}}
    both = spans(answers, clause(), clause(case="f/b"), **{"f/a": (changed("<3.5"),), "f/b": (bug,)})
    assert both == [("bug", "3.3"), ("differs", "3.4"), ("holds", "3.5 – 4.0")]


@pytest.mark.parametrize("shown", [OTHER_SECOND, FAILED_LATER, NOT_STARTED, (CALM, OTHER_SECOND)])
def test_a_violation_of_the_step_is_never_hidden(shown):
    assert spans({"f/a": {"4.0.5": shown}})[-1] == ("violates", "4.0")


def test_a_violation_of_another_step_does_not_touch_it():
    assert spans({"f/a": {"4.0.5": OTHER_THIRD}}) == [("holds", "3.3 – 4.0")]


def test_an_entry_that_is_not_true_is_a_violation():
    assert spans({"f/a": {}}, **{"f/a": (changed("<3.4"),)})[0] == ("violates", "3.3")


def test_a_release_that_differs_from_its_line_is_named_in_full():
    found = spans({"f/a": {"3.5.8": OTHER_SECOND}})
    assert found == [("holds", "3.3 – 3.4"), ("violates", "3.5.8"), ("holds", "3.5.9 – 4.0")]


@pytest.mark.parametrize(
    ("of_statement", "of_clause"), [(">=3.4", {}), ("all", {"versions": ">=3.4"}), (">=3.4", {"versions": ">=3.0"})]
)
def test_versions_that_it_is_not_about_count_for_nothing(of_statement, of_clause):
    found = spans({"f/a": {"3.3.4": OTHER_SECOND}}, clause(**of_clause), versions=of_statement)
    assert found == [("outside", "3.3"), ("holds", "3.4 – 4.0")]


@pytest.mark.parametrize("keys", [{}, {"bug": True}])
def test_what_the_case_documents_of_some_versions_may_be_what_it_says(keys):
    """Such as a change of Spark between two versions, or a known bug that the statement is about."""
    about = differing("<3.5", OTHER_SECOND, **keys)
    found = evidence(about["answers"], clause(versions="<3.5", differs="<3.5"), **{"f/a": about["f/a"]})
    assert list(found.spans) == [("holds", "3.3 – 3.4"), ("outside", "3.5 – 4.0")]
    assert [one.versions for one in found.variations] == ["3.3 – 3.4"]


def test_it_does_not_hold_where_the_step_shows_no_difference_that_it_speaks_of():
    about = differing("<3.5", OTHER_SECOND)
    found = spans(about["answers"], clause(differs="<4.0"), **{"f/a": about["f/a"]})
    assert found == [("holds", "3.3 – 3.4"), ("differs", "3.5"), ("holds", "4.0")]


def test_a_metric_that_a_version_does_not_report_is_not_tried_there():
    assert spans({"f/a": {"3.0.3": CALM}}, clause(1, "dropped")) == [("untested", "3.0"), ("holds", "3.3 – 4.0")]
    assert spans({"f/a": {"3.0.3": CALM}}, clause(1, "rows")) == [("holds", "3.0 – 4.0")]


def test_a_key_that_is_not_checked_on_a_version_is_not_tried_there():
    answers = {"f/a": dict.fromkeys(("3.3.4", "3.4.4"), OTHER_SECOND)}
    found = spans(answers, **{"f/a": (changed("<3.5", steps={2: change(unchecked=("rows",), watermark=0)}),)})
    assert found == [("untested", "3.3 – 3.4"), ("holds", "3.5 – 4.0")]


@pytest.mark.parametrize("shown", [a.NOT_RUN, a.BROKEN, a.OUTSIDE])
def test_without_an_answer_it_is_not_tried(shown):
    none = dict.fromkeys(VERSIONS, shown)
    assert spans({"f/a": none}) == [("untested", "3.3 – 4.0")]


def test_a_case_that_changed_since_it_ran_or_is_unknown_shows_nothing():
    of = report({"f/a": {}})
    found = Evidence.of(of, Clause.all_of(of, {"clauses": [clause(case="f/gone")]}))
    assert found.summary == "○ not tried: 3.3 – 4.0"


CHECKPOINTS = [
    *(a.handoff_cell("f/a", "resumed", f"spark-{origin}", "spark-3.5.9") for origin in ("3.3.4", "4.0.5")),
    a.handoff_cell("f/a", "refused", "spark-3.5.9", "spark-4.0.5"),
    a.handoff_cell("f/a", "resumed", "spark-3.4.4", "spark-4.0.5"),
    a.handoff_cell("f/a", "refused", "spark-3.5.9", "spark-4.0.5", cut=3),
    a.handoff_cell("f/a", "not-run", "spark-3.3.4", "spark-3.5.8"),
    a.handoff_cell("f/a", "violates", "spark-3.5.9", "spark-3.3.4"),
]


@pytest.mark.parametrize(
    ("keys", "standings"),
    [
        # What newer versions wrote is no upgrade; what was not run is not tried.
        ({}, ["untested", "untested", "untested", "holds", "differs"]),
        ({"from": "==3.5.*"}, ["violates", "untested", "untested", "untested", "differs"]),
        ({"from": "==3.4.*"}, ["untested", "untested", "untested", "untested", "holds"]),
        ({"from": "==3.5.*", "differs": ">=4.0", "versions": ">=4.0"}, ["outside"] * 4 + ["holds"]),
        ({"from": "==3.4.*", "differs": ">=4.0", "versions": ">=4.0"}, ["outside"] * 4 + ["differs"]),
    ],
)
def test_a_clause_about_checkpoints_is_judged_by_those_that_were_handed_over(keys, standings):
    of = report({"f/a": {}})
    vars(of)["upgrades_of_cases"] = {"f/a": CHECKPOINTS}
    (about,) = Clause.all_of(of, {"clauses": [clause(shows="checkpoint", **keys)]})
    assert [about.on(of, target)[0] for target in of.versions] == standings


def test_a_range_with_a_gap():
    targets = report({"f/a": {}}).targets
    assert span([targets[0], *targets[2:]], targets) == "3.3, 3.5 – 4.0"


PUBLISHED = {
    # Cases with its tag differ because they divide state in RocksDB, which is new in 4.2; the cited rows are dropped on every version.
    "3.1": [("holds", "3.0 – 4.3")],
    # Its only bug is of the Kafka connector of 4.1, in a replay after records aged out.
    "1.1": [("holds", "3.0 – 4.3")],
    # 3.5's entries are of versions before 3.5, of a chain that these refuse; a left semi join that waits longer is another step.
    "3.5": [("outside", "3.0 – 3.4"), ("holds", "3.5 – 4.3")],
    # The state that SPARK-46350 and SPARK-58904 are about is in other steps than those that prove 8.1, 8.2 and 8.4.
    "8.1": [("holds", "3.0 – 4.3")],
    "8.2": [("holds", "3.0 – 4.3")],
    # Matched rows of a left semi join stayed longer up to 4.1 (SPARK-55973): that is 8.13's.
    "8.3": [("holds", "3.0 – 4.3")],
    "8.4": [("holds", "3.0 – 4.3")],
    # Equal terms of an inequality counted once up to 4.2.0: the bound was wrong, but there was one.
    "8.5": [("holds", "3.0 – 4.3")],
    # A real break: the cited step itself lost its row (SPARK-49829).
    "8.12": [("bug", "3.0 – 3.3"), ("holds", "3.4 – 4.3")],
    # Python has no function over groups with state before 3.4: not tried, which is not the same as true.
    "11.1": [("untested", "3.0 – 3.3"), ("holds", "3.4 – 4.3")],
}


@pytest.mark.parametrize("number", PUBLISHED)
def test_published_statements_are_judged_by_what_proves_them(number):
    (one,) = [one for one in published_specification().statements if one.number == number]
    assert list(one.evidence.spans) == PUBLISHED[number]


def test_each_part_of_a_sentence_holds_on_some_published_version():
    """Of two clauses for one part, one may show where a known bug breaks it."""
    of = published_report()
    parts: dict[tuple[str, str], set[str]] = {}
    for id, entry in {**of.catalogue.behaviours, **of.catalogue.questions}.items():
        for one in Clause.all_of(of, entry):
            shown = {standing for standing, _ in Evidence.of(of, [one]).spans}
            parts.setdefault((id, one.says), set()).update(shown if one.case in of.cases else {"holds"})
    assert {part for part, shown in parts.items() if "holds" not in shown} == set()


def test_no_published_reason_is_of_a_version_or_a_case_that_the_statement_does_not_cite():
    cases = {case.id: case for case in whole_suite().cases}
    for one in published_specification().statements:
        for variation in one.evidence.variations:
            assert set(variation.cases) <= {clause.case for clause in one.clauses}, one.number
            documented = {entry.reason for id in variation.cases for entry in cases[id].differs}
            assert variation.reason.reason in documented, one.number
