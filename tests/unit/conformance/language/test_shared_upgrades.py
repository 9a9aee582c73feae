"""``upgrades.yaml`` of a suite: why a version rejects the checkpoints of many cases, or resumes them with other results."""

import re
from pathlib import Path

import pytest

from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import VersionPair, handoffs, no_checkpoint
from conformance.language import InvalidCase
from conformance.suite import discovery
from tests.support.whole_suite import whole_suite

OUTER = re.compile("outer", re.IGNORECASE)
CASE = """title: A title
behaviour: [one]
strength: observed
streams: {events: event_time TIMESTAMP}
query: [from: events, dropDuplicates: [event_time]]
steps: [add: {events: [["12:00"]]}, idle: {}]
"""
OWN = """upgrades:
  - {from: "==2.4.*", to: "==3.1.*", because: of this case, link: SPARK-1, steps: {2: {watermark: "11:00"}}}
"""
SHARED = """many:
  from: "<3.0"
  because: of all
  link: SPARK-26154
  refused: {class: IllegalArgumentException, message: version 1, stage: run}
  cases: [f/a, f/b.two]
"""
OTHERWISE = """again:
  from: "<3.0"
  writtenBy: classic
  resumedBy: connect
  because: of the order
  link: SPARK-57489
  steps: {2: {watermark: "11:00"}}
  cases: [f/a]
"""
BEFORE, AFTER = SparkVersion(2, 4, 8), SparkVersion(3, 0, 3)


def suite(folder: Path, shared: str | None = SHARED) -> discovery.Suite:
    (folder / "f").mkdir(exist_ok=True)
    (folder / "behaviours.yaml").write_text("one: a sentence\n")
    (folder / "f" / "a.yaml").write_text(CASE + OWN)
    (folder / "f" / "b.yaml").write_text(CASE.replace("A title", "Title $(which)") + "matrix: {which: [one, two]}\n")
    (folder / "upgrades.yaml").unlink(missing_ok=True)
    if shared is not None:
        (folder / "upgrades.yaml").write_text(shared)
    return discovery.load([folder])


def because(found: discovery.Suite, id: str, to: SparkVersion = AFTER) -> str | None:
    (case,) = (one for one in found.cases if one.id == id)
    entry = case.upgrade_between(BEFORE, to, 2)
    return entry.because if entry else None


OTHER_ROWS = OTHERWISE.replace("  writtenBy: classic\n  resumedBy: connect\n", "")
WHERE_3_1 = SparkVersion(3, 1, 3)


def test_an_entry_holds_of_its_cases_after_what_they_say_themselves_unless_it_refuses(tmp_path: Path) -> None:
    for shared, first in ((SHARED, "of all"), (OTHER_ROWS, "of this case"), (OTHER_ROWS + SHARED, "of all")):
        found = suite(tmp_path, shared)
        found.raise_for_problems()
        assert because(found, "f/a", WHERE_3_1) == first
        assert because(found, "f/a") == ("of all" if SHARED in shared else "of the order")
        assert because(found, "f/b.two") == ("of all" if SHARED in shared else None)
        assert because(found, "f/b.one") is None


def test_digests_do_not_change(tmp_path: Path) -> None:
    digests = [{case.id: case.digest for case in suite(tmp_path, shared).cases} for shared in (None, SHARED)]
    assert digests[0] == digests[1]


def test_an_entry_may_give_other_results_and_speak_of_one_interface(tmp_path: Path) -> None:
    (case,) = (one for one in suite(tmp_path, OTHERWISE).cases if one.id == "f/a")
    entry = case.upgrade_between(BEFORE, AFTER, 2, ("classic", "connect"))
    assert (entry.because, entry.steps[2].watermark) == ("of the order", "11:00")
    assert case.upgrade_between(BEFORE, AFTER, 2) is None
    assert case.upgrade_between(BEFORE, AFTER, 2, ("connect", "connect")) is None


@pytest.mark.parametrize(
    ("shared", "change", "message"),
    [
        (OTHERWISE, ("By: connect", "By: classics"), "unknown interface 'classics': did you mean 'classic'"),
        (OTHERWISE, ("  steps: {2:", "  steps: {idle:"), '"idle" is not the number of a step'),
        (OTHERWISE, ('  steps: {2: {watermark: "11:00"}}\n', ""), "needs one of refused, steps"),
        (SHARED, ("  refused", "  refusd"), "unknown key 'refusd'"),
        (SHARED, ("  link: SPARK-26154\n", ""), "needs the key `link`"),
        (SHARED, ('from: "<3.0"', 'from: "3.x.y"'), "3.x.y"),
        (SHARED, ("  cases: [f/a, f/b.two]\n", ""), "needs the key `cases`"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, shared: str, change: tuple[str, str], message: str) -> None:
    assert change[0] in shared
    with pytest.raises(InvalidCase, match=message) as raised:
        suite(tmp_path, shared.replace(*change)).raise_for_problems()
    assert all(problem.path.name == "upgrades.yaml" and problem.line for problem in raised.value.problems)


def test_every_case_that_the_suite_names_leaves_such_a_checkpoint() -> None:
    """The outer joins that run on 2.4, in SQL too, and no other case: SPARK-26154."""
    (catalogue,) = whole_suite().catalogues.values()
    entry = (catalogue.upgrades or {})["outer-join-in-format-1"]
    pair = VersionPair(BEFORE, AFTER)
    outer = {
        handoff.case.id
        for handoff in handoffs(case for case in whole_suite().cases if not case.topics)
        if no_checkpoint(handoff, pair) is None
        and any(OUTER.search(f"{operation.wire()}") for operation in handoff.case.operations())
    }
    assert set(entry["cases"]) == outer
