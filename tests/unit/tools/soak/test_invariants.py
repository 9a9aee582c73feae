"""Each invariant holds of a correct engine, under either rule for late rows, and is broken by one wrong entry."""

import re
from dataclasses import fields

import pytest

from tests.unit.tools.soak.soaked_tables import Soaked
from tools.soak.invariants import INVARIANTS, STREAM_TOTALS, Invariant, StreamTotals, judge

ARRIVALS = [
    [(1, 0), (12, 0), (12, 1), (14, 1)],
    [(3, 0), (13, 0), (31, 1)],
    [(2, 0), (2, 1), (8, 0), (25, 0), (44, 0)],
    [(4, 1), (29, 0), (60, 1)],
    [(100, 0)],
]
NAMES = [invariant.name for invariant in INVARIANTS]


def verdict_on(invariant, soaked):
    columns, rows = soaked.answer(invariant.violations_sql)
    _, ((checked,),) = soaked.answer(invariant.checked_sql)
    return judge(invariant, checked, columns, rows)


def verdicts(soaked):
    return {invariant.name: verdict_on(invariant, soaked) for invariant in INVARIANTS}


@pytest.fixture(params=[True, False], ids=["batch before", "own batch"])
def soaked(request):
    return Soaked(ARRIVALS, late_by_the_batch_before=request.param, replayed=3)


def test_every_invariant_holds_of_a_correct_engine(soaked):
    assert {name: verdict.status for name, verdict in verdicts(soaked).items()} == dict.fromkeys(NAMES, "holds")


def test_the_totals_balance(soaked):
    columns, (row,) = soaked.answer(STREAM_TOTALS)
    totals = StreamTotals(*row)
    assert columns == [field.name for field in fields(StreamTotals)]
    assert totals.balanced
    assert totals.arrived == sum(map(len, ARRIVALS))
    assert totals.late > 0
    assert totals.in_state == 1
    soaked.tables["emitted"].pop()
    _, (row,) = soaked.answer(STREAM_TOTALS)
    assert not StreamTotals(*row).balanced


def a_row_comes_again_later(tables):
    batch, *rest = tables["emitted"][0]
    tables["emitted"].append((batch + 1, *rest))


def a_replay_counts_one_more(tables):
    rows = tables["attempted"]
    at = next(at for at, row in enumerate(rows) if row[1] == 1)
    rows[at] = (*rows[at][:-1], rows[at][-1] + 1)


def a_replay_emits_nothing(tables):
    tables["attempted"][:] = [row for row in tables["attempted"] if row[1] == 0]


def an_attempt_has_a_row_twice(tables):
    tables["attempted"].append(next(row for row in tables["attempted"] if row[1] == 1))


def a_window_comes_out_a_micro_batch_early(tables):
    batch, attempt, *rest = next(row for row in tables["attempted"] if row[0] == 2)
    tables["attempted"].append((batch - 1, attempt, *rest))


def a_micro_batch_that_was_never_planned_emits(tables):
    _, *rest = tables["attempted"][0]
    tables["attempted"].append((99, *rest))


def a_window_comes_out_a_micro_batch_late(tables):
    batch, *rest = tables["emitted"][0]
    tables["emitted"][0] = (batch + 1, *rest)


def a_file_is_not_read(tables):
    tables["read_files"].pop()


def a_file_is_read_twice(tables):
    batch, file = tables["read_files"][0]
    tables["read_files"].append((batch + 1, file))


def an_emitted_row_is_lost(tables):
    tables["emitted"].pop()


def a_row_too_few_is_counted(tables):
    *rest, total = tables["emitted"][0]
    tables["emitted"][0] = (*rest, total - 1)


def a_late_row_is_counted(tables):
    late = next(row for row in tables["batch_rows"] if row not in tables["accepted"])
    tables["emitted"].append(late[:4])


def the_state_keeps_a_window_too_long(tables):
    batch, attempt, watermark, state, dropped = tables["told"][2]
    tables["told"][2] = (batch, attempt, watermark, state + 1, dropped)


def a_drop_is_not_counted(tables):
    at = next(at for at, row in enumerate(tables["told"]) if row[4])
    tables["told"][at] = (*tables["told"][at][:4], 0)


def the_offset_log_goes_back(tables):
    batch, _, *rest = tables["micro_batches"][-1]
    tables["micro_batches"][-1] = (batch, 0, *rest)


def the_commit_log_goes_back(tables):
    *rest, _ = tables["micro_batches"][2]
    tables["micro_batches"][2] = (*rest, 0)


def the_progress_goes_back(tables):
    batch, attempt, _, *rest = tables["told"][3]
    tables["told"][3] = (batch, attempt, 0, *rest)


def the_watermark_is_a_second_ahead(tables):
    batch, watermark, *rest = tables["micro_batches"][2]
    tables["micro_batches"][2] = (batch, watermark + 1, *rest)


@pytest.mark.parametrize(
    ("invariant", "wrong"),
    [
        ("nothing-twice", a_row_comes_again_later),
        ("replays-agree", a_replay_counts_one_more),
        ("replays-agree", a_replay_emits_nothing),
        ("replays-agree", an_attempt_has_a_row_twice),
        ("nothing-early", a_window_comes_out_a_micro_batch_early),
        ("nothing-early", a_micro_batch_that_was_never_planned_emits),
        ("nothing-waits", a_window_comes_out_a_micro_batch_late),
        ("read-once", a_file_is_not_read),
        ("read-once", a_file_is_read_twice),
        ("nothing-lost", an_emitted_row_is_lost),
        ("nothing-lost", a_row_too_few_is_counted),
        ("nothing-lost", a_late_row_is_counted),
        ("state-holds-the-rest", the_state_keeps_a_window_too_long),
        ("drops-are-counted", a_drop_is_not_counted),
        ("watermark-never-falls", the_offset_log_goes_back),
        ("watermark-never-falls", the_commit_log_goes_back),
        ("watermark-never-falls", the_progress_goes_back),
        ("watermark-follows-rows", the_watermark_is_a_second_ahead),
        ("watermark-follows-rows", the_offset_log_goes_back),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_wrong_entry_breaks_its_invariant(soaked, invariant, wrong):
    wrong(soaked.tables)
    (asked,) = (one for one in INVARIANTS if one.name == invariant)
    assert verdict_on(asked, soaked).status == "broken"


def test_a_violation_has_its_place(soaked):
    a_row_comes_again_later(soaked.tables)
    batch, window_end, sensor, _ = soaked.tables["emitted"][0]
    assert verdicts(soaked)["nothing-twice"].rows == (
        {"window_end": window_end, "sensor": sensor, "times": 2, "first_batch": batch, "last_batch": batch + 1},
    )


def test_an_invariant_without_anything_to_check_is_silent():
    whole = Soaked(ARRIVALS)
    whole.tables["told"] = [(*row[:4], None) for row in whole.tables["told"]]
    found = verdicts(whole)
    silent = {name for name, verdict in found.items() if verdict.status == "silent"}
    assert silent == {"replays-agree", "drops-are-counted"}
    assert {verdict.status for name, verdict in found.items() if name not in silent} == {"holds"}


@pytest.mark.parametrize("invariant", INVARIANTS, ids=NAMES)
def test_an_invariant_has_a_sentence_and_a_source(invariant: Invariant):
    assert len({invariant.name for invariant in INVARIANTS}) == len(INVARIANTS)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", invariant.name)
    assert invariant.sentence[0].islower()
    assert not invariant.sentence.endswith(".")
    assert re.fullmatch(r"SPARK-\d+|https://spark\.apache\.org/docs/latest/\S+#[a-z-]+", invariant.source)
