"""Wrong models: each misreads one rule. A suite that can detect errors has at least one case that detects each of them."""

from __future__ import annotations

from conformance.model.catalogue import WrongModel, accepting, misreading

_CONDITION = "join-delays/range-bounds-the-state"

WRONG_MODELS: tuple[WrongModel, ...] = (
    # The watermark.
    misreading(
        "the delay is one millisecond too long",
        "event-time-column/ansi-day-time-delay",
        node_watermark_ms=lambda highest, delay: highest - delay - 1,
    ),
    misreading(
        "the delay is one millisecond too short",
        "event-time-column/ansi-day-time-delay",
        node_watermark_ms=lambda highest, delay: highest - delay + 1,
    ),
    misreading(
        "there is no delay", "event-time-column/ansi-day-time-delay", node_watermark_ms=lambda highest, _: highest
    ),
    misreading(
        "the watermark uses the lowest event time of a micro-batch",
        "event-time-column/filter-on-the-event-time-stays-above",
        highest_of_batch=min,
    ),
    misreading(
        "event times are rounded up to milliseconds",
        "event-time-column/window-column-gives-a-senseless-watermark",
        event_time_ms=lambda us: 0 if us is None else -(-us // 1000),
    ),
    misreading(
        "the watermark sees a row more than a limit lets through",
        "late-drops/limit-hides-the-rows-it-does-not-read-from-the-watermark",
        limit_reads="one row more",
    ),
    misreading(
        "a null event time counts as the far future",
        "session-windows/a-null-event-time-makes-no-session",
        event_time_ms=lambda us: 10**14 if us is None else us // 1000,
    ),
    misreading(
        "a window as event time counts by its end",
        "event-time-column/window-column-gives-a-senseless-watermark",
        window_reads_as_us=0,
    ),
    misreading(
        "the watermark of an input may decrease",
        "join-delays/inner-match-comes-with-the-later-row",
        node_keeps_its_highest=False,
    ),
    misreading(
        "watermarks are not monotonic",
        "event-time-column/progress-reports-the-watermark-every-time",
        node_keeps_its_highest=False,
        watermark_never_falls=False,
    ),
    misreading(
        "the policy min uses the fastest input",
        "output-modes/update-inner-join-emits-each-pair-once",
        policies={"min": max, "max": max},
    ),
    misreading(
        "the policy max uses the slowest input",
        "several-watermarks/policy-is-read-in-any-letter-case",
        policies={"min": min, "max": min},
    ),
    misreading(
        "an input without rows does not hold back the watermark",
        "join-delays/inner-match-comes-with-the-later-row",
        silent_node_ms=None,
    ),
    misreading(
        "inputs are identified by their position on 4.x",
        "several-watermarks/silent-streams-do-not-lend-their-watermark",
        nodes_known_by="position",
    ),
    misreading(
        "the watermark sees rows that a later filter removes",
        "event-time-column/filter-on-another-column-is-pushed-below",
        filters_go_below_the_watermark=False,
    ),
    misreading(
        "a filter on a key stays above first and last",
        "event-time-column/filter-on-a-key-above-an-aggregation-by-order.first",
        aggregates_by_order_are_deterministic=False,
    ),
    misreading(
        "an event time loses its watermark in a struct on 3.3 and later",
        "event-time-column/struct-of-the-event-time-keeps-the-watermark",
        struct_fields_keep_the_watermark=False,
    ),
    # Late rows.
    misreading(
        "a time equal to the watermark is not late",
        "late-drops/rows-at-or-before-the-epoch-are-late",
        is_late=lambda us, ms: us < ms * 1000,
    ),
    misreading(
        "lateness is compared in whole milliseconds",
        "late-drops/row-equal-to-the-watermark-is-late",
        is_late=lambda us, ms: us // 1000 <= ms,
    ),
    misreading(
        "a row is late by the start of its window",
        "late-drops/window-ending-at-the-epoch-is-late",
        late_time_of_window=lambda window: window[0],
    ),
    misreading(
        "late rows use the watermark of their own micro-batch on 3.4 and later",
        "deduplication/zero-delay-in-a-backlog",
        late_watermark="own batch",
    ),
    misreading(
        "late rows use the watermark of the previous micro-batch on 3.3",
        "deduplication/zero-delay-in-a-backlog",
        late_watermark="batch before",
    ),
    misreading("a null event time is late", "late-drops/null-event-time-reads-as-the-epoch", null_is_late=True),
    misreading(
        "complete mode drops late rows",
        "window-eviction/window-before-1970-contains-its-rows",
        drops_in_complete_mode=True,
    ),
    misreading(
        "update mode accepts late rows", "late-drops/window-ending-at-the-epoch-is-late", drops_in_update_mode=False
    ),
    misreading(
        "late rows of an aggregation are counted one by one",
        "chained-aggregations/single-operator-mode-loses-the-rows-of-a-chain",
        aggregation_counts_late="rows",
    ),
    misreading(
        "late rows of sessions are counted one by one",
        "session-windows/late-rows-of-one-time-count-as-one",
        session_counts_late="rows",
    ),
    misreading(
        "late rows of sessions are not counted",
        "session-windows/late-rows-are-counted-one-by-one",
        session_drops_are_counted=False,
    ),
    misreading(
        "late rows are dropped although their event time is pruned",
        "deduplication/late-rows-escape-when-the-time-is-not-selected",
        pruned_event_time_is_filtered=True,
    ),
    # Eviction.
    misreading(
        "state at the watermark is not evicted",
        "deduplication/zero-delay-makes-the-same-time-late",
        is_over=lambda us, ms: us < ms * 1000,
    ),
    misreading(
        "eviction is compared in whole milliseconds",
        "window-eviction/raw-timestamp-a-microsecond-ahead-stays",
        is_over=lambda us, ms: us // 1000 <= ms,
    ),
    misreading(
        "a window closes at its start",
        "late-drops/window-ending-at-the-epoch-is-late",
        over_time_of_window=lambda window: window[0],
    ),
    misreading(
        "state is evicted one micro-batch late",
        "deduplication/without-no-data-batches-keys-stay",
        eviction_watermark="batch before",
    ),
    misreading(
        "state is not evicted in update mode",
        "window-eviction/update-mode-evicts-without-emitting",
        evicts_in=frozenset({"append"}),
    ),
    misreading(
        "state is evicted in complete mode",
        "output-modes/complete-keeps-all-state",
        evicts_in=frozenset({"append", "update", "complete"}),
    ),
    misreading(
        "state with a null event time is evicted", "late-drops/null-event-time-reads-as-the-epoch", null_is_over=True
    ),
    misreading(
        "update mode emits every group", "output-modes/update-sql-distinct-repeats-rows", update_emits="all groups"
    ),
    misreading(
        "append mode emits open groups",
        "event-time-column/progress-reports-the-watermark-of-an-emptied-batch",
        append_emits="changed groups",
    ),
    misreading(
        "complete mode emits only changed groups",
        "deduplication/sql-distinct-runs-in-complete-mode",
        complete_emits="changed groups",
    ),
    # Windows and sessions.
    misreading(
        "windows before 1970 are rounded towards zero on 4.x",
        "window-eviction/window-before-1970-contains-its-rows",
        window_before_origin="rounds towards zero",
    ),
    misreading(
        "a window includes its end and excludes its start",
        "join-delays/inner-windows-without-watermark-never-forget",
        window_holds_its_end=True,
    ),
    misreading(
        "touching sessions are not merged",
        "session-windows/complete-mode-shows-merged-sessions",
        sessions_touching_merge=False,
    ),
    misreading(
        "a session ends half a gap too early",
        "session-windows/a-struct-may-be-the-key-of-a-session",
        session_end_us=lambda us, gap: us + gap // 2,
    ),
    misreading(
        "the time of a window is its end",
        "chained-aggregations/window-time-is-the-end-minus-one-microsecond",
        window_time_us=lambda end: end,
    ),
    # Micro-batches.
    misreading(
        "no micro-batch without data runs",
        "event-time-column/second-watermark-on-a-branch-is-refused",
        no_data_batches="none",
    ),
    misreading(
        "a micro-batch without data follows every one with data",
        "join-delays/inner-windows-without-watermark-never-forget",
        no_data_batches="always one",
    ),
    misreading(
        "the trigger once also runs a micro-batch without data",
        "no-data-batches/once-leaves-results-to-the-next-run",
        no_data_batch_after_once=True,
    ),
    # Deduplication.
    misreading("no key is remembered", "deduplication/distinct-needs-no-watermark", deduplication_remembers=False),
    misreading(
        "within the watermark a key expires at its own time",
        "deduplication/within-watermark-forgets-after-the-delay",
        within_expires_us=lambda us, _: us,
    ),
    misreading(
        "within the watermark a key expires one millisecond late",
        "deduplication/within-watermark-duplicates-do-not-prolong",
        within_is_expired=lambda us, ms: us < ms * 1000,
    ),
    misreading(
        "duplicates extend the expiry of their key",
        "deduplication/within-watermark-ignores-incremental-cleanup",
        duplicates_prolong=True,
    ),
    misreading(
        "keys are evicted before the rows of the micro-batch",
        "deduplication/within-watermark-ignores-incremental-cleanup",
        within_forgets="before the rows",
    ),
    misreading(
        "deduplication state is only compatible with the same row schema",
        "deduplication/another-column-may-join-on-restart",
        deduplication_state_compares="whole rows",
    ),
    # Joins.
    misreading(
        "an inclusive bound expires one millisecond early",
        "join-delays/inclusive-bound-waits-one-millisecond-longer",
        inclusive_bound_ms=0,
    ),
    misreading("a strict bound waits as long as an inclusive one", f"{_CONDITION}.strictly-between", strict_bound_ms=1),
    misreading(
        "an inclusive bound waits a millisecond on the wrong side of the watermark",
        f"{_CONDITION}.between",
        inclusive_bound_ms=-1,
    ),
    misreading("a subtracted interval is added", f"{_CONDITION}.minus-on-the-other-side", subtracted_term_sign=1),
    misreading("subtracted intervals do not count", f"{_CONDITION}.plus-on-the-own-side", subtracted_term_sign=0),
    misreading(
        "of two bounds of a side the higher counts", f"{_CONDITION}.lower-of-two-is-the-first", bound_of_several=max
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
    # Several operators.
    misreading(
        "one watermark serves all operators on 3.5 and later",
        "event-time-column/second-watermark-on-a-branch-is-refused",
        watermark_per_operator=False,
    ),
    misreading(
        "the watermark above a time-interval join is not held back",
        "chained-aggregations/inclusive-interval-delays-one-millisecond-more",
        join_output_waits=False,
    ),
    misreading(
        "a constant key is emitted as in the current plan",
        "several-watermarks/constant-column-tells-unioned-streams-apart",
        constant_keys="of the present plan",
    ),
    misreading(
        "operations above a window over windows are lost",
        "chained-aggregations/filter-above-a-window-over-a-window",
        window_of_window_keeps_what_is_above=False,
    ),
    misreading(
        "a constant column of a join is emitted as in the current plan",
        "join-delays/constants-of-both-sides-stay-apart",
        constant_columns_of_joins="of the present plan",
    ),
    misreading(
        "a constant key is emitted as in the current plan, even if streams have no new rows",
        "recovery/constant-key-keeps-its-value-when-the-query-changes",
        constant_keys="of the present plan",
        empty_union_branches_vanish=False,
    ),
    misreading(
        "a deduplication by key may not follow an update aggregation",
        "output-modes/deduplication-by-key-follows-an-update-aggregation",
        deduplication_by_key_may_follow=False,
    ),
    misreading(
        "operators below a filter that is always false keep their state",
        "output-modes/filter-that-is-always-false-keeps-the-state",
        false_filters_cut_the_plan=False,
    ),
    misreading(
        "state with other NOT NULL columns is compatible after a restart",
        "recovery/inner-join-goes-on-where-the-event-time-has-two-names",
        not_null_columns_of_state="may be as they are",
    ),
    misreading(
        "columns that are NOT NULL below a watermark are nullable above it",
        "recovery/inner-join-goes-on-while-one-input-is-silent",
        watermark_passes_not_null_on=False,
    ),
    misreading(
        "SQL DISTINCT is not an aggregation",
        "unsupported/append-sql-distinct-without-watermark",
        distinct_is_noticed=False,
    ),
    # Restart.
    misreading(
        "the watermark is lost at a restart",
        "output-modes/update-without-aggregation-is-append",
        restores_the_watermark=False,
    ),
    misreading(
        "the inputs' watermarks survive a restart",
        "recovery/each-stream-must-pass-the-watermark-again-after-restart",
        restores_node_watermarks=True,
    ),
    misreading("a restart may change the policy", "recovery/policy-max-stays-after-restart", policy_is_pinned=False),
    misreading("state is lost at a restart", "recovery/inner-join-finds-its-rows-after-restart", restores_state=False),
    misreading(
        "a restart runs a micro-batch without data",
        "no-data-batches/none-after-restart-until-data",
        no_data_batch_after_restart=True,
    ),
    # State functions and stateful processors.
    misreading(
        "late rows reach no state function",
        "arbitrary-state/late-rows-reach-a-function-without-event-time-timeout.no-timeout",
        functions_drop_late_rows="always",
    ),
    misreading(
        "late rows reach every state function",
        "arbitrary-state/function-decides-by-the-watermark",
        functions_drop_late_rows="never",
    ),
    misreading(
        "a timeout fires at a watermark equal to it",
        "arbitrary-state/function-decides-by-the-watermark",
        timeout_fires=lambda timeout, watermark: timeout <= watermark,
    ),
    misreading(
        "a timeout fires although rows of the micro-batch move it",
        "arbitrary-state/rows-of-the-micro-batch-cancel-its-timeout",
        rows_come_before_timeouts=False,
    ),
    misreading(
        "a timeout passed as a datetime is a number of days",
        "arbitrary-state/timeout-may-be-a-datetime",
        datetime_timeout_ms=lambda ms: ms // 86_400_000,
    ),
    misreading(
        "a state function loses rows with null in the first column",
        "arbitrary-state/null-key-comes-out",
        null_first_column_is_emitted=False,
    ),
    misreading(
        "a timer fires only behind the watermark",
        "arbitrary-state/timer-fires-when-the-watermark-reaches-it",
        timer_fires=lambda timer, watermark: timer < watermark,
    ),
    misreading(
        "an unused output column strips the initial state",
        "arbitrary-state/initial-state-is-whole-whatever-is-selected-after",
        initial_state="grouping columns below unused output",
    ),
    misreading(
        "nothing after a stateful processor has its watermark",
        "arbitrary-state/transform-with-state-then-aggregation",
        processors_pass_the_watermark_on=False,
    ),
    misreading(
        "a stateful processor may emit late rows",
        "arbitrary-state/emitting-rows-behind-the-watermark-fails",
        emitted_rows_may_be_late=True,
    ),
    accepting(
        "an event-time timeout needs no watermark",
        "arbitrary-state/event-time-timeout-needs-a-watermark",
        "event-time timeout without watermark",
    ),
    accepting(
        "a state function may have another output mode than the query",
        "arbitrary-state/output-mode-of-the-function-must-be-that-of-the-query",
        "state function in another mode",
    ),
    accepting(
        "a state function in update mode may follow an aggregation",
        "arbitrary-state/update-function-after-an-aggregation-is-refused",
        "update function with an aggregation",
    ),
    # Refusals.
    accepting(
        "append mode runs without a watermark",
        "deduplication/sql-distinct-is-an-aggregation",
        "append without watermark",
    ),
    accepting(
        "a watermark may be defined twice",
        "event-time-column/second-watermark-on-a-branch-is-refused",
        "second watermark",
    ),
    accepting(
        "the first of two event times is taken",
        "event-time-column/two-event-time-columns-are-refused",
        "two event times",
    ),
    accepting(
        "an outer join needs no bound",
        "unsupported/join-whose-state-nothing-bounds.left-outer.keys-alone",
        "outer join without bound",
    ),
)
