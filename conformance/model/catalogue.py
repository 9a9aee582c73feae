"""Every rule once: what it says, where that is written, and the versions it holds for.

``rules_of`` makes of it the set of rules of one version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from conformance.model import refusals
from conformance.model.features import FEATURES
from conformance.model.refusals import REFUSALS, Refusal, Wording
from conformance.model.rules import Rules, window_end
from conformance.versions import SparkVersion

GUIDE = "https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html"
LATE_DATA = f"{GUIDE}#handling-late-data-and-watermarking"
CLEANING = f"{GUIDE}#conditions-for-watermarking-to-clean-aggregation-state"
POLICY = f"{GUIDE}#policy-for-handling-multiple-watermarks"
OUTER = f"{GUIDE}#outer-joins-with-watermarking"
DEDUPLICATION = f"{GUIDE}#streaming-deduplication"
WINDOWS = f"{GUIDE}#types-of-time-windows"
WINDOW_TIME = f"{GUIDE}#representation-of-the-time-for-time-window"
MODES = f"{GUIDE}#output-modes"
RECOVERY = f"{GUIDE}#recovering-from-failures-with-checkpointing"


@dataclass(frozen=True)
class Held:
    """A value of a rule, and where it holds."""

    value: Any
    says: str
    """The rule in one sentence."""
    since: str | None = None
    """The first version, ``3.4`` or ``3.5.4``; None from the beginning."""
    until: str | None = None
    """The first version for which it no longer holds; None to this day."""
    also: tuple[tuple[str | None, str | None], ...] = ()
    """Further ranges: a fix that reached several lines."""

    def holds(self, version: SparkVersion) -> bool:
        return any(_within(version, since, until) for since, until in ((self.since, self.until), *self.also))


@dataclass(frozen=True)
class Rule:
    """A rule of the specification; ``name`` is its field in ``Rules``."""

    name: str
    source: str
    """The ticket that brought or changed it, or the section of the guide."""
    held: tuple[Held, ...]
    """Its values; exactly one holds for any version."""

    def at(self, version: SparkVersion) -> Held:
        """What holds for a version."""
        return next(held for held in self.held if held.holds(version))


def _always(name: str, source: str, value: Any, says: str) -> Rule:
    return Rule(name, source, (Held(value, says),))


RULES: tuple[Rule, ...] = (
    _always(
        "event_time_ms",
        "SPARK-18124",
        lambda us: 0 if us is None else us // 1000,
        "An event time counts in whole milliseconds, cut; a null one counts as the epoch.",
    ),
    _always(
        "window_reads_as_us",
        "SPARK-18124",
        68_719_476_760,
        "A window as event time reads as the memory word that says where it lies: 19:05:19.476760 for every row.",
    ),
    _always(
        "highest_of_batch", LATE_DATA, max, "A watermark is computed from the highest event time of a micro-batch."
    ),
    _always(
        "node_watermark_ms",
        LATE_DATA,
        lambda highest, delay: highest - delay,
        "The watermark of an input is its highest event time minus the delay.",
    ),
    _always("node_keeps_its_highest", LATE_DATA, True, "The watermark of an input never falls."),
    _always("silent_node_ms", POLICY, 0, "An input that has sent nothing yet holds the watermark at the epoch."),
    _always("watermark_never_falls", "SPARK-19861", True, "The watermark never falls, and begins at the epoch."),
    _always(
        "policies",
        "SPARK-24730",
        {"min": min, "max": max},
        "Of several inputs the lowest watermark counts, or with the policy max the highest.",
    ),
    Rule(
        "nodes_known_by",
        "SPARK-50046",
        (
            Held("themselves", "Each watermark keeps its own value.", until="3.2", also=(("4.0", None),)),
            Held(
                "position",
                "Watermarks are known by their position in the physical plan, where silent inputs that look alike are one.",
                since="3.2",
                until="4.0",
            ),
        ),
    ),
    _always(
        "filters_go_below_the_watermark",
        "SPARK-21587",
        True,
        "A filter that does not look at the event time runs before the watermark sees the rows.",
    ),
    Rule(
        "late_watermark",
        "SPARK-40925",
        (
            Held("own batch", "Rows are late by the watermark of their own micro-batch.", until="3.4"),
            Held("batch before", "Rows are late by the watermark of the micro-batch before.", since="3.4"),
        ),
    ),
    _always("is_late", LATE_DATA, lambda us, ms: us <= ms * 1000, "A time at or before the watermark is late."),
    _always("null_is_late", "SPARK-18124", False, "A null event time is never late."),
    _always("late_time_of_window", CLEANING, window_end, "A row in a window is late once the window's end is."),
    _always("drops_in_complete_mode", MODES, False, "In complete mode an aggregation drops nothing."),
    _always("drops_in_update_mode", MODES, True, "In update mode late groups are dropped."),
    Rule(
        "session_drops_are_counted",
        "SPARK-38593",
        (
            Held(False, "Late rows of sessions are dropped and not counted.", until="3.3"),
            Held(True, "Late rows of sessions are dropped and counted.", since="3.3"),
        ),
    ),
    _always(
        "aggregation_counts_late", "SPARK-24634", "groups", "An aggregation counts late groups, not the rows in them."
    ),
    _always(
        "pruned_event_time_is_filtered",
        "SPARK-58979",
        False,
        "An operator whose event time nothing above needs does not see it, and drops nothing.",
    ),
    _always("is_over", CLEANING, lambda us, ms: us <= ms * 1000, "What ends at or before the watermark is over."),
    _always("null_is_over", "SPARK-18124", False, "A null event time is never over."),
    _always("over_time_of_window", CLEANING, window_end, "A window is over when its end is."),
    _always(
        "evicts_in",
        MODES,
        frozenset({"append", "update"}),
        "Aggregations forget in append and update mode, not in complete.",
    ),
    _always("eviction_watermark", "SPARK-18124", "own batch", "State goes by the watermark of the micro-batch itself."),
    _always(
        "update_emits", MODES, "changed groups", "Update mode emits the groups that got rows, and none at eviction."
    ),
    _always("append_emits", MODES, "evicted groups", "Append mode emits a group once, when it is over."),
    _always("complete_emits", MODES, "all groups", "Complete mode emits every group in every micro-batch."),
    Rule(
        "window_before_origin",
        "SPARK-39347",
        (
            Held(
                "contains its rows", "A window contains its rows, before 1970 too.", until="3.3", also=(("3.4", None),)
            ),
            Held("rounds towards zero", "Windows before 1970 are rounded towards zero.", since="3.3", until="3.4"),
        ),
    ),
    _always("window_holds_its_end", WINDOWS, False, "A window holds its start and not its end."),
    _always("sessions_touching_merge", WINDOWS, True, "A row at the very end of a session joins it."),
    _always("session_end_us", WINDOWS, lambda us, gap: us + gap, "A session ends the gap after its last row."),
    _always("window_time_us", WINDOW_TIME, lambda end: end - 1, "The time of a window is its end minus 1 µs."),
    _always(
        "no_data_batches",
        "SPARK-24156",
        "one per advance",
        "When the watermark has moved and an operator can use it, one micro-batch without data runs.",
    ),
    _always("no_data_batch_after_once", "SPARK-24699", False, "The trigger once runs one micro-batch and no more."),
    _always(
        "deduplication_remembers", DEDUPLICATION, True, "A key that was seen is a duplicate until it is forgotten."
    ),
    _always(
        "within_expires_us",
        "SPARK-42931",
        lambda us, delay: us + delay * 1000,
        "dropDuplicatesWithinWatermark forgets a key the delay after its first row.",
    ),
    _always(
        "within_is_expired",
        "SPARK-42931",
        lambda us, ms: us <= ms * 1000,
        "A key expires when the watermark reaches it.",
    ),
    _always("duplicates_prolong", "SPARK-42931", False, "Duplicates do not prolong the life of their key."),
    _always("within_forgets", "SPARK-42931", "after the rows", "Keys are forgotten after the rows of the micro-batch."),
    _always(
        "inclusive_bound_ms",
        "SPARK-22136",
        1,
        "A bound with <= or >= is over one millisecond after the watermark reaches it.",
    ),
    _always(
        "join_state_goes", "SPARK-22136", lambda us, ms: us <= ms * 1000, "Join state at or before its watermark goes."
    ),
    Rule(
        "stores_rows_that_go_at_once",
        "SPARK-49829",
        (
            Held(
                False,
                "A row that would be evicted in its own micro-batch is not stored, cannot match and gets no null row.",
                until="3.4.4",
                also=(("3.5", "3.5.4"),),
            ),
            Held(
                True,
                "A row that goes in its own micro-batch can match there, and else gets its null row.",
                since="3.4.4",
                until="3.5",
                also=(("3.5.4", None),),
            ),
        ),
    ),
    Rule(
        "semi_forgets_matched_rows",
        "SPARK-55973",
        (
            Held(False, "A left row stays in the state of a left semi join after its match.", until="4.2"),
            Held(True, "A left row leaves the state of a left semi join with its match.", since="4.2"),
        ),
    ),
    _always(
        "outer_emits_null_row",
        OUTER,
        "once, if unmatched",
        "An outer join emits an unmatched row with nulls when it goes.",
    ),
    Rule(
        "evicted_rows_share_a_buffer",
        "SPARK-32148",
        (
            Held(True, "Null rows of one key that go together have the values of the last.", until="3.0.1"),
            Held(False, "Each null row has its own values.", since="3.0.1"),
        ),
    ),
    _always(
        "rows_that_cannot_match",
        OUTER,
        "come out at once",
        "A row that fails the condition on its own side comes out with nulls at once and is not stored.",
    ),
    _always("null_keys_match", OUTER, False, "NULL equals nothing, not in a join either."),
    Rule(
        "watermark_per_operator",
        "SPARK-42376",
        (
            Held(False, "One watermark serves every operator.", until="3.5"),
            Held(True, "Each operator goes by the watermark of its own input.", since="3.5"),
        ),
    ),
    _always(
        "join_output_waits",
        "SPARK-42376",
        True,
        "What a time-interval join emits may be as old as the interval, and the watermark behind it is held back by that.",
    ),
    Rule(
        "constant_keys",
        "SPARK-47840",
        (
            Held(
                "of the state",
                "A constant grouping key comes out as it was stored.",
                until="3.0.1",
                also=(("3.5.2", None),),
            ),
            Held(
                "of the present plan",
                "A constant grouping key comes out as the present plan has it, whatever was stored.",
                since="3.0.1",
                until="3.5.2",
            ),
        ),
    ),
    Rule(
        "empty_union_branches_vanish",
        "SPARK-47840",
        (
            Held(False, "The plan keeps branches of a union that have nothing new.", until="3.1"),
            Held(True, "Branches of a union that have nothing new are taken out of the plan.", since="3.1"),
        ),
    ),
    Rule(
        "window_of_window_keeps_what_is_above",
        "SPARK-49836",
        (
            Held(
                True,
                "What stands above a window over a window column stays.",
                until="3.4",
                also=(("3.4.4", "3.5"), ("3.5.4", None)),
            ),
            Held(
                False,
                "What stands above a window over a window column in the same statement is lost.",
                since="3.4",
                until="3.4.4",
                also=(("3.5", "3.5.4"),),
            ),
        ),
    ),
    _always("restores_the_watermark", RECOVERY, True, "The watermark is in the checkpoint."),
    _always(
        "restores_node_watermarks", RECOVERY, False, "The watermarks of the single inputs are not in the checkpoint."
    ),
    _always("policy_is_pinned", "SPARK-24730", True, "The policy for several watermarks is in the checkpoint."),
    _always(
        "replays_with_logged_watermark",
        RECOVERY,
        True,
        "A micro-batch is replayed with the watermark it was planned with.",
    ),
    _always("restores_state", RECOVERY, True, "State is in the checkpoint, as of the last committed micro-batch."),
    _always(
        "no_data_batch_after_restart",
        "SPARK-24156",
        False,
        "After a restart no micro-batch without data runs before one with data.",
    ),
    Rule(
        "deduplication_state_compares",
        "SPARK-39650",
        (
            Held(
                "keys",
                "Deduplication state fits as long as the keys do.",
                until="3.1",
                also=(("3.2.2", "3.3"), ("3.3.1", None)),
            ),
            Held(
                "whole rows",
                "Deduplication state fits only where the whole row is as it was.",
                since="3.1",
                until="3.2.2",
                also=(("3.3", "3.3.1"),),
            ),
        ),
    ),
)
"""The specification."""

BY_NAME: Mapping[str, Rule] = {rule.name: rule for rule in RULES}


@cache
def rules_of(version: SparkVersion) -> Rules:
    """The rules of a version of Spark."""
    values = {rule.name: rule.at(version).value for rule in RULES}
    worded = {refusal.name: wording for refusal in REFUSALS if (wording := _wording(refusal, version))}
    there = frozenset(name for name, feature in FEATURES.items() if _within(version, feature.since, None))
    return Rules(**values, refusals=worded, features=there)


def catalogued() -> frozenset[str]:
    """The fields of ``Rules`` that the catalogue fills by a rule of their own."""
    return frozenset(field.name for field in fields(Rules)) - {"refusals", "features"}


def _wording(refusal: Refusal, version: SparkVersion) -> Wording | None:
    return next(
        (
            wording
            for wording in refusal.wordings
            if any(_within(version, since, until) for since, until in wording.ranges())
        ),
        None,
    )


@cache
def _version(text: str) -> SparkVersion:
    return SparkVersion.parse(text if text.count(".") == 2 else f"{text}.0")


def _within(version: SparkVersion, since: str | None, until: str | None) -> bool:
    return (since is None or version >= _version(since)) and (until is None or version < _version(until))


__all__ = ["BY_NAME", "RULES", "Held", "Rule", "catalogued", "refusals", "rules_of"]
