"""What changes between two versions, and what it means."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.core.case import Restart
from conformance.core.observation import Observation
from conformance.judging import comparison
from conformance.judging.comparison import Divergence, divergences
from conformance.suite.conditions import UNKNOWN
from reports.analysis.change import Changes, change, changes
from reports.analysis.matrix import Matrix
from reports.results.known_bug import KnownBug
from reports.results.records import TargetRecord
from tests.support import cells as a
from tests.support.observations import case, differs


def changed(folder: Path, answers, differing=None) -> Changes:  # type: ignore[no-untyped-def]
    """What changes between the two versions of these answers."""
    matrix = Matrix.of(a.results(folder / "r", answers, differing))
    return changes(matrix, *matrix.targets)


def pair(tmp_path: Path, before, after, **differing) -> Changes:  # type: ignore[no-untyped-def]
    return changed(tmp_path, {a.CASE: {"3.5.9": before, "4.3.0": after}}, differing or None)


def test_a_reason_that_both_versions_have_is_told_once(tmp_path: Path) -> None:
    said = {"because": "it was late", "link": "SPARK-1"}
    entries = (
        differs("<4", steps=a.ONLY_FIRST, **said),
        differs(">=4", steps={1: {"state": 7}}, **said),
    )
    (change,) = pair(tmp_path, a.LOST, a.FULLER, **{a.CASE: entries}).changes
    assert [(one.spark, one.text, one.link, one.bug) for one in change.reasons] == [
        ("3.5.9", "it was late", "SPARK-1", None)
    ]
    other = (entries[0], differs(">=4", because="it was late", link="SPARK-2", steps={1: {"state": 7}}))
    (change,) = pair(tmp_path, a.LOST, a.FULLER, **{a.CASE: other}).changes
    assert [(one.spark, one.link) for one in change.reasons] == [("3.5.9", "SPARK-1"), ("4.3.0", "SPARK-2")]


def test_an_unsupported_version_says_why(tmp_path: Path) -> None:
    entry = differs("<4", unsupported="it arrived in 4.0", link="SPARK-1")
    (change,) = pair(tmp_path, a.REFUSED, a.CALM, **{a.CASE: (entry,)}).changes
    assert [one.text for one in change.reasons] == ["it arrived in 4.0"]


def test_a_version_without_the_metric_says_nothing_of_it(tmp_path: Path) -> None:
    assert pair(tmp_path, a.UNCOUNTED, a.CALM).changes == ()
    assert len(pair(tmp_path, a.UNCOUNTED, a.OTHER).changes) == 1


def test_cells_without_an_answer_are_told_and_cases_about_other_versions_are_not_missing(tmp_path: Path) -> None:
    broken = pair(tmp_path, a.BROKEN, a.CALM)
    assert [(one.case, one.target, one.status) for one in broken.missing] == [(a.CASE, "spark-3.5.9", "broken")]
    assert broken.compared == 0
    outside = pair(tmp_path, a.OUTSIDE, a.CALM)
    assert (outside.missing, outside.outside) == ((), (a.CASE,))
    assert len(pair(tmp_path, a.OUTSIDE, a.NOT_RUN).missing) == 1


def test_a_known_bug_is_told_with_the_release_that_mends_it(tmp_path: Path) -> None:
    entry = a.bug(">=3.5,<3.5.4")
    results = a.results(tmp_path / "r", {a.CASE: {"3.5.0": a.LOST, "3.5.9": a.CALM}}, {a.CASE: (entry,)})
    matrix = Matrix.of(results)
    (there,) = changes(matrix, *matrix.targets).changes
    (back,) = changes(matrix, *reversed(matrix.targets)).changes
    assert [one.bug for one in there.reasons] == [KnownBug("SPARK-2", "3.5.4", replaced_in="3.5.4")]
    assert (there.brings_a_bug, back.brings_a_bug) == (False, True)


def test_worst_first_and_each_by_its_kind(tmp_path: Path) -> None:
    ids = {"z/rows": a.LOST, "a/metric": a.FULLER, "b/refused": a.REFUSED, "c/timing": a.EARLIER}
    found = changed(tmp_path, {id: {"3.5.9": a.CALM, "4.3.0": answer} for id, answer in ids.items()})
    assert [change.case for change in found.changes] == ["z/rows", "b/refused", "c/timing", "a/metric"]
    for id in ids:
        assert [change.case for change in found.of(id[2:])] == [id]
    assert found.of("accepted") == ()


def test_the_same_two_answers_are_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The releases of a line mostly give the same answer, and a report compares every two of them."""
    old, new = ("3.0.3", "3.1.3", "3.2.4"), ("4.0.5", "4.1.4", "4.2.1")
    answers = {a.CASE: {**dict.fromkeys(old, a.LOST), **dict.fromkeys(new, a.CALM)}}
    compared: list[str] = []

    def counting(one: Observation, other: Observation, *, instants: bool) -> Iterator[Divergence]:
        compared.append(one.case)
        return divergences(one, other, instants=instants)

    monkeypatch.setattr(comparison, "divergences", counting)
    matrix = Matrix.of(a.results(tmp_path / "r", answers))
    for before in matrix.targets:
        for after in matrix.targets:
            other = (before.spark in old) != (after.spark in old)
            assert [len(changes(matrix, before, after).changes)] == [int(other)]
    assert compared == [a.CASE] * 4  # each way: up to the first difference, and all of them


def test_the_condition_is_that_of_the_step_whose_rows_differ() -> None:
    """A metric differs before the step that damages the checkpoint, the rows only after it."""
    old = a.seen(a.step(1, a.batch(0, a.FIRST)), a.step(2), a.step(3, a.batch(1, a.SECOND)))
    new = a.seen(a.step(1, a.batch(0, a.FIRST, state=(2,))), a.step(2), a.step(3, a.batch(1)))
    targets = [TargetRecord(name=f"spark-{version}", spark=version) for version in ("3.5.9", "4.3.0")]
    cells = [
        a.cell("f/a", target.name, a.CALM).model_copy(update={"observation": seen, "behaviour": digest * 64})
        for target, seen, digest in zip(targets, (old, new), "12", strict=True)
    ]
    found = change(cells[0], targets[0], cells[1], targets[1])
    damaging = case(None, None, None, id="f/a")
    damage = damaging.steps[1].model_copy(update={"action": Restart(how="graceful", damage={"gone": "commit"})})
    damaging = damaging.model_copy(update={"steps": (damaging.steps[0], damage, damaging.steps[2])})
    assert (found.where.step, found.step, found.condition(damaging).kind) == (1, 3, "edits")
    assert found.condition(None) == found.condition(case(id="f/a", digest="1" * 64)) == UNKNOWN
