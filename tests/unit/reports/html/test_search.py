"""What the search of a report finds."""

from pathlib import Path

import pytest

from conformance.suite.discovery import Suite
from reports.analysis.report import Report
from reports.html.overview_pages import search_errors
from reports.html.search import KINDS, SearchEntry, asked_questions, entries, index
from reports.results.known_bug import workaround
from tests.support import cells as a
from tests.support.observations import failed


def href(kind: str, name: str = "") -> str:
    return f"{kind}:{name}"


def of(report: Report) -> dict[str, dict[str, str]]:
    found = entries(report, {"matrix": "Matrix"}, href)
    assert tuple(found) == KINDS
    return {kind: {one.title: one.href for one in each} for kind, each in found.items()}


def test_bugs_cases_pages_comparisons_and_releases_are_found(tmp_path: Path) -> None:
    bug = a.bug(">=3.5,<4", because="the last window is lost", link="SPARK-9")
    results = a.results(tmp_path / "r", {"f/a": {"3.5.9": a.LOST, "4.3.0": a.CALM}}, {"f/a": (bug,)})
    found = of(Report.of(results, Suite(())))
    assert found["Known bugs"] == {"the last window is lost": "bugs:SPARK-9"}
    assert found["Cases"] == {"f/a": "case:f/a"}
    assert found["Pages"]["Matrix"] == "matrix:"
    assert found["Pages"]["From 3.5.9 to 4.3.0"] == "compare/3.5.9..4.3.0:"
    assert found["Pages"]["Spark 3.5.9"] == "releases:3.5.9"
    assert found["Questions"] == found["Behaviours"] == {}


def test_a_case_is_found_by_the_error_that_it_shows(tmp_path: Path) -> None:
    said = (
        "[SOME_ERROR_CLASS_OF_SPARK] A message of more than twenty characters, which names what the query may not do."
    )
    answer = a.seen(failed(1, "SOME_ERROR_CLASS_OF_SPARK", stage="start", message=said))
    (case,) = entries(Report.of(a.results(tmp_path / "r", {"f/a": {"3.5.9": answer}}), Suite(())), {}, href)["Cases"]
    assert "a message of more than twenty characters, which names what the query may not do" in case.errors
    assert all(len(text) > 20 and text in said.lower() for text in case.errors.split("|"))


@pytest.mark.parametrize(
    "pasted",
    [
        # Of another query, whole; in part; and where numbers differ.
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: assertion failed: There are [1] sources in the checkpoint "
        "offsets and now there are [3] sources requested by the query. Cannot continue. SQLSTATE: XXKST === Streaming Query === Mine",
        "sources requested by the query. Cannot continue.",
        "now there are sources requested",
    ],
)
def test_a_case_is_found_by_the_text_of_its_error_behind_a_wrapper_whole_and_in_part(
    pasted: str, tmp_path: Path
) -> None:
    """By each of its words, or by a piece of the error in what was pasted."""
    said = (
        "[STREAM_FAILED] Query [id = dc1a, runId = 46e3] terminated with exception: assertion failed: There are [1] sources in the "
        "checkpoint offsets and now there are [2] sources requested by the query. Cannot continue. SQLSTATE: XXKST\n"
        "=== Streaming Query ===\nIdentifier: [id = dc1a]\nThread State: RUNNABLE\n"
    )
    answer = a.seen(failed(1, "AssertionError", stage="start", message=said))
    (case,) = entries(Report.of(a.results(tmp_path / "r", {"f/a": {"3.5.9": answer}}), Suite(())), {}, href)["Cases"]
    text = f"{case.title} {case.words} {case.errors}".lower()
    found = all(word in text for word in pasted.lower().split())
    assert found or any(piece in pasted.lower() for piece in case.errors.split("|"))
    assert "query [id" not in text


def test_the_errors_of_refused_checkpoints_have_an_order() -> None:
    refused = ["STATE_STORE_UNSUPPORTED_OPERATION", "CANNOT_LOAD_STATE_STORE"]
    assert search_errors((), refused) == "cannot_load_state_store|state_store_unsupported_operation"


def test_a_bug_is_found_by_its_workaround_and_by_its_case(tmp_path: Path) -> None:
    bug = a.bug(">=3.5,<4", because="the last window is lost", link="SPARK-33259")
    results = a.results(tmp_path / "r", {"f/a": {"3.5.9": a.LOST, "4.3.0": a.CALM}}, {"f/a": (bug,)})
    (known,) = entries(Report.of(results, Suite(())), {}, href)["Known bugs"]
    advice = workaround("SPARK-33259", None)
    assert advice is not None
    assert advice.text.lower() in known.words
    assert "f/a" in known.words


def test_the_index_has_each_entry_with_its_kind_and_no_character_that_nobody_sees(tmp_path: Path) -> None:
    found = {"Cases": (SearchEntry("a\u202eb", "text", "x.html", "words", "errors"),)}
    assert index(found) == [
        {
            "kind": "Cases",
            "title": "a⟨right-to-left override⟩b",
            "text": "text",
            "href": "x.html",
            "words": "words",
            "errors": "errors",
        }
    ]


def test_a_suite_without_questions_has_none(tmp_path: Path) -> None:
    results = a.results(tmp_path / "r", {"f/a": {"3.5.9": a.CALM}})
    assert asked_questions(Report.of(results, Suite(()))) == ()
