"""The catalogue of known bugs is valid, and names bugs and cases of the suite."""

import pytest

from conformance.core.versions import falling_into, releases
from reports.results.known_bug import KnownBug, listed_bugs, read_bugs, workaround
from tests.support.whole_suite import whole_suite

ENTRY = {"ticket": "SPARK-1", "workaround": {"text": "Do it.", "source": "SPARK-1"}}
PLACE = {"file": "sql/core/src/A.scala", "method": "A.b", "lines": "1-2"}
CAUSE = {"text": "It is so.", "release": "4.2.0", "places": [PLACE]}
TITLED = {"title": "It is so", "case": "a/b"}
CASES = {case.id: case for case in whole_suite().cases}


def test_every_entry_is_about_a_bug_of_the_cases_and_its_cases_exist() -> None:
    bugs = {
        (one.link, one.introduced_by) for case in CASES.values() for one in (*case.differs, *case.upgrades) if one.bug
    }
    assert [key for key in listed_bugs() if key[2] is None and key[:2] not in bugs] == []
    named = [one.workaround.case for one in listed_bugs().values() if one.workaround is not None]
    assert [
        case for case in (*named, *(bug.case for bug in listed_bugs().values())) if case and case not in CASES
    ] == []


def test_every_bug_of_the_newest_release_has_its_cause() -> None:
    """Of a bug without tickets, whose cases differ in nothing but their matrix, one case is enough."""
    explained = {key for key, bug in listed_bugs().items() if bug.cause is not None}
    files = {key[2].partition(".")[0] for key in explained if key[2] is not None}
    unexplained = [
        case.id
        for case in CASES.values()
        for one in case.differs
        if one.bug
        and releases()[-1] in falling_into(one.spark)
        and (one.link, one.introduced_by, None) not in explained
        and ((one.link or one.introduced_by) or case.id.partition(".")[0] not in files)
    ]
    assert unexplained == []


def test_a_case_that_shows_a_setting_has_it() -> None:
    found = workaround(None, "SPARK-34081")
    assert found is not None
    case = CASES[str(found.case)]
    key, _, value = str(found.setting).partition("=")
    assert str(case.conf[key]) == value


def test_a_bug_knows_its_workaround() -> None:
    assert "both inputs" in str(KnownBug("SPARK-58904", None).workaround)
    assert KnownBug("SPARK-38593", None).workaround is None
    assert KnownBug(None, None).workaround is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"ticket": "1"}, "ticket"),
        ({"introduced_by": "SPARK-2"}, "needs either"),
        ({"ticket": None}, "needs either"),
        ({"workaround": {"text": "do", "source": "SPARK-1"}}, "workaround"),
        ({"workaround": {"text": "Do.", "source": "someone"}}, "source"),
        ({"workaround": {"text": "Do.", "source": "SPARK-1", "setting": "x"}}, "setting"),
        ({"workaround": {"text": 1, "source": "SPARK-1"}}, r"(?s)text.*valid string"),
        ({"more": "x"}, r"(?s)more.*Extra inputs"),
        ({"cause": CAUSE}, "`title` and `case` beside"),
        (TITLED | {"cause": CAUSE | {"places": []}}, r"(?s)places.*at least 1"),
        (TITLED | {"cause": CAUSE | {"release": "4.2"}}, "release"),
        (TITLED | {"cause": CAUSE | {"places": [PLACE | {"lines": "12"}]}}, "lines"),
        (TITLED | {"cause": CAUSE | {"places": [PLACE | {"file": "A.py"}]}}, "file"),
    ],
)
def test_a_wrong_entry_is_refused(change: dict[str, object], problem: str) -> None:
    read_bugs([ENTRY | TITLED | {"cause": CAUSE}])
    with pytest.raises(ValueError, match=problem):
        read_bugs([ENTRY | change])


def test_an_entry_may_not_be_there_twice() -> None:
    with pytest.raises(ValueError, match="same bug"):
        read_bugs([ENTRY, ENTRY])
