"""Wrong models of how a join bounds its state and matches its keys."""

from __future__ import annotations

from conformance.model.catalogue import WrongModel, misreading

_CONDITION = "join-delays/range-bounds-the-state"

WRONG_JOIN_MODELS: tuple[WrongModel, ...] = (
    misreading(
        "an inclusive bound expires one millisecond early",
        "join-delays/inclusive-bound-waits-one-millisecond-longer",
        inclusive_bound_ms=0,
    ),
    misreading(
        "a strict bound waits as long as an inclusive one",
        f"{_CONDITION}.strictly-between",
        strict_bound_ms=1,
    ),
    misreading(
        "an inclusive bound waits a millisecond on the wrong side of the watermark",
        f"{_CONDITION}.between",
        inclusive_bound_ms=-1,
    ),
    misreading(
        "a subtracted interval is added",
        f"{_CONDITION}.minus-on-the-other-side",
        subtracted_term_sign=1,
    ),
    misreading(
        "subtracted intervals do not count",
        f"{_CONDITION}.plus-on-the-own-side",
        subtracted_term_sign=0,
    ),
    misreading(
        "of two bounds of a side the higher counts",
        f"{_CONDITION}.lower-of-two-is-the-first",
        bound_of_several=max,
    ),
    misreading(
        "of two bounds of a side the first counts",
        f"{_CONDITION}.lower-of-two-is-the-second",
        bound_of_several=lambda bounds: bounds[0],
    ),
    misreading(
        "of two bounds of a side the last counts",
        f"{_CONDITION}.lower-of-two-is-the-first",
        bound_of_several=lambda bounds: bounds[-1],
    ),
    misreading(
        "equal intervals of a range count once on 4.2.1 and later",
        "join-delays/equal-intervals-on-both-sides-of-a-range.subtracted-twice",
        equal_terms_of_a_bound="count once",
    ),
    misreading(
        "join state at its watermark is not evicted",
        "join-delays/strict-bound-is-over-when-the-watermark-reaches-it",
        join_state_goes=lambda us, ms: us < ms * 1000,
    ),
    misreading(
        "rows evicted in their own micro-batch are not stored",
        "join-delays/outer-join-with-one-watermark-gives-a-wrong-null-row",
        stores_rows_that_go_at_once=False,
    ),
    misreading(
        "a left semi join keeps matched rows",
        "join-delays/left-semi-rows-that-cannot-match-are-not-stored",
        semi_forgets_matched_rows=False,
    ),
    misreading(
        "a matched row also gets a null row",
        "join-delays/left-outer-pair-that-fails-the-condition-gets-its-null-row",
        outer_emits_null_row="always",
    ),
    misreading(
        "an unmatched row gets a null row in every micro-batch",
        "event-time-column/sql-watermark-clause-on-both-sides-of-a-join",
        outer_emits_null_row="if unmatched, each batch",
    ),
    misreading(
        "null rows of one key share their values",
        "join-delays/self-full-outer-no-null-row-for-a-matched-row",
        evicted_rows_share_a_buffer=True,
    ),
    misreading(
        "rows that cannot match are stored",
        "join-delays/left-outer-row-that-cannot-match-comes-out-at-once",
        rows_that_cannot_match="are stored",
    ),
    misreading(
        "<=> in a join condition is not an equality of keys",
        "join-delays/null-safe-key-beside-a-range.inner",
        null_safe_keys="are none",
    ),
    misreading(
        "two nulls do not match under <=>",
        "join-delays/null-safe-key-beside-a-range.left-outer",
        null_safe_keys="match no nulls",
    ),
    misreading(
        "the watermark above a left semi join waits for both sides on 4.3 and later",
        "join-delays/aggregation-after-a-left-semi-range-waits-for-the-left-side",
        semi_join_output_waits_for="both sides",
    ),
    misreading(
        "BETWEEN is two comparisons on 4.0 and later",
        "join-delays/between-of-a-cast-time-bounds-its-own-side",
        between_computes_its_operand=False,
    ),
)
