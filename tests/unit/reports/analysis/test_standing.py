"""On which versions a statement holds, by the results of its cases."""

import pytest

from conformance.core.versions import VersionRange
from reports.analysis.matrix import Matrix
from reports.analysis.specification import Evidence, span
from tests.support import cells as a
from tests.support.observations import differs

VERSIONS = ("3.3.4", "3.4.4", "3.5.8", "3.5.9", "4.0.5")
REFUSED = differs("<3.4", unsupported="it is new", link="SPARK-1", error={"class": ("AnalysisException",)})
ROWS = {1: {"rows": [["12:00", "12:10", 1]], "dropped": 1}}


def evidence(folder, answers, entries=None, within=None):
    """Of two cases; what is not answered is as expected."""
    found = a.results(
        folder / "results.jsonl", {case: dict.fromkeys(VERSIONS, a.CALM) | of for case, of in answers.items()}, entries
    )
    matrix = Matrix.of(found)
    return Evidence.of(matrix, ("f/a", "f/b"), matrix.targets, VersionRange.parse(within) if within else None)


def spans(found):
    return list(found.spans)


def test_as_all_cases_say_it_holds(tmp_path):
    found = evidence(tmp_path, {"f/a": {}, "f/b": {}})
    assert spans(found) == [("holds", "3.3 – 4.0")]
    assert not found.variations


def test_a_known_bug_breaks_it_and_is_named(tmp_path):
    bug = differs(">=3.5,<4", because="it is lost", link="SPARK-2", bug=True, steps=ROWS)
    lost = {"3.5.8": a.LOST, "3.5.9": a.LOST}
    found = evidence(tmp_path, {"f/a": lost, "f/b": {}}, {"f/a": (bug,)})
    assert spans(found) == [("holds", "3.3 – 3.4"), ("bug", "3.5"), ("holds", "4.0")]
    (one,) = found.variations
    assert (one.versions, one.reason.link, one.cases) == ("3.5", "SPARK-2", ("f/a",))


def test_a_documented_difference_is_no_contradiction_but_is_named(tmp_path):
    changed = differs("<3.5", because="it was dropped", link="SPARK-3", steps=ROWS)
    found = evidence(tmp_path, {"f/a": {"3.3.4": a.LOST, "3.4.4": a.LOST}, "f/b": {}}, {"f/a": (changed,)})
    assert spans(found) == [("differs", "3.3 – 3.4"), ("holds", "3.5 – 4.0")]
    assert [(one.versions, one.reason.because) for one in found.variations] == [("3.3 – 3.4", "it was dropped")]


def test_what_a_version_lacks_says_nothing_of_the_other_cases(tmp_path):
    one = evidence(tmp_path, {"f/a": {"3.3.4": a.REFUSED}, "f/b": {}}, {"f/a": (REFUSED,)})
    assert spans(one) == [("holds", "3.3 – 4.0")]
    both = evidence(
        tmp_path, {"f/a": {"3.3.4": a.REFUSED}, "f/b": {"3.3.4": a.REFUSED}}, {"f/a": (REFUSED,), "f/b": (REFUSED,)}
    )
    assert spans(both) == [("unsupported", "3.3"), ("holds", "3.4 – 4.0")]


def test_a_violation_is_never_hidden(tmp_path):
    found = evidence(tmp_path, {"f/a": {"4.0.5": a.LOST}, "f/b": {}})
    assert spans(found)[-1] == ("violates", "4.0")


def test_a_release_that_differs_from_its_line_is_named_in_full(tmp_path):
    found = evidence(tmp_path, {"f/a": {"3.5.8": a.LOST}, "f/b": {}})
    assert spans(found) == [("holds", "3.3 – 3.4"), ("violates", "3.5.8"), ("holds", "3.5.9 – 4.0")]


def test_versions_that_a_statement_is_not_about_count_for_nothing(tmp_path):
    found = evidence(tmp_path, {"f/a": {"3.3.4": a.LOST}, "f/b": {}}, within=">=3.4")
    assert spans(found) == [("outside", "3.3"), ("holds", "3.4 – 4.0")]


def test_a_statement_about_some_versions_holds_where_its_case_documents_a_difference(tmp_path):
    changed = differs("<3.5", because="it was dropped", link="SPARK-3", steps=ROWS)
    found = evidence(tmp_path, {"f/a": {"3.3.4": a.LOST, "3.4.4": a.LOST}}, {"f/a": (changed,)}, within="<3.5")
    assert spans(found)[0] == ("holds", "3.3 – 3.4")


def test_it_does_not_hold_where_only_some_of_its_versions_differ(tmp_path):
    changed = differs("<3.4", because="it was dropped", link="SPARK-3", steps=ROWS)
    found = evidence(tmp_path, {"f/a": {"3.3.4": a.LOST}}, {"f/a": (changed,)}, within="<3.5")
    assert spans(found)[:2] == [("differs", "3.3"), ("holds", "3.4")]


@pytest.mark.parametrize("answer", [a.NOT_RUN, a.OUTSIDE])
def test_without_an_answer_there_is_no_result(tmp_path, answer):
    none = dict.fromkeys(VERSIONS, answer)
    found = evidence(tmp_path, {"f/a": none, "f/b": none})
    assert spans(found) == [("untested", "3.3 – 4.0")]


def test_a_range_with_a_gap(tmp_path):
    targets = Matrix.of(a.results(tmp_path / "r.jsonl", {"f/a": dict.fromkeys(VERSIONS, a.CALM)})).targets
    assert span([targets[0], *targets[2:]], targets) == "3.3, 3.5 – 4.0"
