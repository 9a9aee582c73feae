"""The numbers about two versions add up, row by row and column by column."""

import json
from collections.abc import Iterator

import pytest

from reports.analysis.checkpoints import UpgradeMatrix, by_pair
from reports.analysis.gate import default_rulings
from reports.analysis.tally import TallyRow, tally_of_cases, tally_of_checkpoints
from tests.support import cells as a
from tests.support.published import published_report
from tests.unit.reports.analysis.test_checkpoints import NEW, OLD, cell
from tests.unit.reports.analysis.test_gate import gate


def wrong(tally: TallyRow) -> Iterator[str]:
    """Yield each row that is not the sum of its parts, of its conditions or of what the gate says."""
    for _, row in tally.rows():
        for what, counts in (
            ("parts", [part.count for part in row.parts]),
            ("conditions", row.conditions.values()),
            ("gate", row.gate.values()),
        ):
            if counts and sum(counts) != row.count:
                yield f"{row.name}: {row.count} is not the sum of its {what}, {[*counts]}"
        for part in row.parts:
            assert part.count, f"{part.name} counts nothing"


def found(tally: TallyRow, name: str) -> TallyRow:
    (row,) = [row for _, row in tally.rows() if row.name == name]
    return row


def test_every_published_pair_adds_up_to_all_cases() -> None:
    report = published_report()
    for pair in report.pairs:
        tally = tally_of_cases(pair, default_rulings(pair, report.condition))
        assert (tally.count, [*wrong(tally)]) == (len(report.matrix.cases), []), f"{pair.before} to {pair.after}"
        for name, count in (
            ("compared", pair.compared),
            ("changes", len(pair.changes)),
            ("change rows or fail", pair.of_rows),
        ):
            if count:
                assert found(tally, name).count == count
                assert not found(tally, name).conditions.get("unknown"), "every published case is at hand"


def test_the_checkpoints_of_every_published_pair_add_up() -> None:
    report = published_report()
    targets = {target.name: target for target in report.targets}
    pairs = {cell.pair for cell in report.results.upgrades if {*cell.pair} <= targets.keys()}
    assert pairs
    for before, after in sorted(pairs):
        known = report.upgrades.between(targets[before], targets[after])
        tally = tally_of_checkpoints(known)
        assert (tally.count, [*wrong(tally)]) == (len(known.cells), []), f"{before} to {after}"
        for name, count in (("tried", known.tried), ("refused", known.count("refused", "unsupported"))):
            if count:
                assert found(tally, name).count == count
        assert not known.count("refused") or not found(tally, "refused").conditions.get("unknown")


def test_a_checkpoint_is_counted_once_whatever_became_of_it() -> None:
    met = [
        "resumed",
        "refused",
        "unsupported",
        "other rows",
        "fails later",
        "violates",
        "not-run",
        "not-applicable",
        "broken",
    ]
    known = UpgradeMatrix(by_pair(cell(f"f/{at}", status) for at, status in enumerate(met)), {}).between(OLD, NEW)
    tally = tally_of_checkpoints(known)
    assert (tally.count, [*wrong(tally)]) == (len(met), [])
    assert (found(tally, "refused").count, found(tally, "not tried").count) == (2, 2)
    assert found(tally, "do not resume so").count == 6
    # Nothing is known of a refusal without an entry, and it counts.
    without = cell("f/x", "refused").model_copy(update={"differs": None})
    undocumented = UpgradeMatrix(by_pair([without, cell("f/y", "refused")]), {}).between(OLD, NEW)
    assert [*wrong(tally_of_checkpoints(undocumented))] == []
    assert found(tally, "resume with other results").conditions == {"unknown": 2}


@pytest.mark.parametrize("missing", [a.BROKEN, a.NOT_RUN, a.OUTSIDE])
def test_a_case_that_is_not_compared_is_counted_with_the_reason(capsys, tmp_path, monkeypatch, missing) -> None:
    monkeypatch.chdir(tmp_path)
    a.results(
        tmp_path / "r.jsonl", {"f/a": {"3.5.9": a.CALM, "4.3.0": missing}, "f/b": {"3.5.9": a.LOST, "4.3.0": a.CALM}}
    )
    _, out = gate(capsys, "r.jsonl", "--from", "3.5.9", "--to", "4.3.0", "--json")
    tally, checkpoints = [TallyRow.model_validate_json(json.dumps(own)) for own in json.loads(out)["tallies"]]
    assert (checkpoints.name, checkpoints.count) == ("checkpoints", 0)
    assert (tally.count, [*wrong(tally)], found(tally, "not compared").count) == (2, [], 1)
    _, out = gate(capsys, "r.jsonl", "--from", "3.5.9", "--to", "4.3.0", "--verbose")
    assert "2 cases\n  1 compared\n    1 changes\n      1 change rows or fail\n" in out
    assert "  1 not compared\n    1 " in out
