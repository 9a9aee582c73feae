"""The rules of the watermark semantics as one frozen value: a version of Spark, or a wrong model with one of them altered.

``catalogue`` has the sentence, the source and the versions of each value; the model reads each rule at one place. What a version refuses
(``refusals.yaml``) or lacks (``features.yaml``) is data as well; ``checks``, ``frame`` and the operators decide whether a query is refused,
and raise the refusal by its name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal, TypeAlias

from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange
from conformance.model.errors import Refused, Stage, Unpredictable


def range_of(entry: dict[str, Any]) -> VersionRange | None:
    """The versions of an entry; None for all versions."""
    return VersionRange.parse(entry["spark"]) if "spark" in entry else None


def applies(spark: VersionRange | None, version: SparkVersion) -> bool:
    return spark is None or version in spark


@dataclass(frozen=True)
class Wording:
    """How a refusal is worded on a range of versions."""

    stage: Stage
    classes: tuple[str, ...]
    text: str
    """May contain ``{what}``, the subject of the refusal."""
    spark: VersionRange | None = None
    """None for all versions."""

    def error(self, name: str, what: str = "") -> Refused:
        return Refused(name, self.stage, self.classes, self.text.replace("{what}", what))


@dataclass(frozen=True)
class Feature:
    """A construct that some versions lack."""

    spark: VersionRange
    link: str
    missing: Wording | None = None
    """How the other versions refuse it; None if it is a setting or an option."""


@cache
def features() -> Mapping[str, Feature]:
    return {
        name: Feature(
            VersionRange.parse(entry["spark"]),
            entry["link"],
            Wording("analysis", (entry["error"]["class"],), entry["error"]["text"]) if "error" in entry else None,
        )
        for name, entry in read_data("conformance.model", "features.yaml").items()
    }


@dataclass(frozen=True)
class Refusal:
    """Something that Spark refuses. Versions without a wording do not refuse it."""

    name: str
    source: str
    wordings: tuple[Wording, ...]

    def wording(self, version: SparkVersion) -> Wording | None:
        """None if the version does not refuse it."""
        return next((wording for wording in self.wordings if applies(wording.spark, version)), None)


@cache
def refusals() -> tuple[Refusal, ...]:
    return tuple(
        Refusal(name, entry["source"], tuple(map(_wording, entry["wordings"])))
        for name, entry in read_data("conformance.model", "refusals.yaml").items()
    )


def _wording(entry: dict[str, Any]) -> Wording:
    return Wording(entry["stage"], tuple(entry["classes"]), entry["text"], range_of(entry))


Boundary: TypeAlias = Callable[[int, int], bool]
"""Compares an event time in µs with a watermark in ms."""


@dataclass(frozen=True)
class Rules:
    """A complete set of rules."""

    # How the watermark is computed.
    event_time_ms: Callable[[int | None], int]
    """Converts the event time of a row in µs to ms for the statistics."""
    window_reads_as_us: int
    """The value that the statistics misread if the event time is a window."""
    highest_of_batch: Callable[[Sequence[int]], int]
    """Selects the event time, in ms, that the watermark is computed from."""
    node_watermark_ms: Callable[[int, int], int]
    """Computes the watermark from the highest event time and the delay, all in ms."""
    node_keeps_its_highest: bool
    silent_node_ms: int | None
    """The watermark of an input without rows so far, in ms; None: it is ignored."""
    watermark_never_falls: bool
    policies: Mapping[str, Callable[[Sequence[int]], int]]
    """``multipleWatermarkPolicy`` in lower case → the function that combines the watermarks of several inputs."""
    nodes_known_by: Literal["themselves", "position"]
    filters_go_below_the_watermark: bool
    limit_reads: Literal["its rows", "one row more"]
    """What a limit without state below it reads of each partition."""
    struct_fields_keep_the_watermark: bool

    # Which rows are late.
    late_watermark: Literal["batch before", "own batch"]
    is_late: Boundary
    null_is_late: bool
    late_time_of_window: Callable[[tuple[int, int]], int]
    """The time of a window (start and end, µs) that decides whether its rows are late."""
    drops_in_complete_mode: bool
    drops_in_update_mode: bool
    session_drops_are_counted: bool
    session_counts_late: Literal["times", "rows"]
    """``times``: rows of one key and one event time are aggregated per partition before sessions are built."""
    aggregation_counts_late: Literal["groups", "rows"]
    pruned_event_time_is_filtered: bool

    # When state is evicted.
    is_over: Boundary
    """Whether state with an event time in µs is evicted at a watermark in ms."""
    null_is_over: bool
    over_time_of_window: Callable[[tuple[int, int]], int]
    evicts_in: frozenset[str]
    """The output modes in which aggregations evict state."""
    eviction_watermark: Literal["own batch", "batch before"]
    update_emits: Literal["changed groups", "all groups"]
    append_emits: Literal["evicted groups", "changed groups"]
    complete_emits: Literal["all groups", "changed groups"]

    # Windows and sessions.
    window_before_origin: Literal["contains its rows", "rounds towards zero"]
    window_holds_its_end: bool
    sessions_touching_merge: bool
    session_end_us: Callable[[int, int], int]
    """Computes the end of a session from the event time and gap of a row, in µs."""
    window_time_us: Callable[[int], int]
    """Computes the time of a window from its end, in µs."""

    # Micro-batches.
    no_data_batches: Literal["one per advance", "always one", "none"]
    no_data_batch_after_once: bool

    # Deduplication.
    deduplication_remembers: bool
    within_expires_us: Callable[[int, int], int]
    """Computes the expiry of a key in µs from the event time of its row in µs and the delay in ms."""
    within_is_expired: Boundary
    duplicates_prolong: bool
    within_forgets: Literal["after the rows", "before the rows"]

    # Joins.
    inclusive_bound_ms: int
    """How many ms a bound with <= or >= lags behind the watermark."""
    strict_bound_ms: int
    """The same for a bound with < or >."""
    bound_of_several: Callable[[Sequence[int]], int]
    """Selects the bound, in ms, of a side for which the condition gives several."""
    subtracted_term_sign: int
    """The sign of a constant that remains subtracted when an inequality is solved for the event time."""
    equal_terms_of_a_bound: Literal["count each", "count once", "count once, subtracted intervals as negative"]
    between_computes_its_operand: bool
    """Whether BETWEEN in a join condition makes its side compute a value that is not a column, once and before the join."""
    null_safe_keys: Literal["match nulls", "match no nulls", "are none"]
    """What ``<=>`` is in a join condition."""
    join_state_goes: Boundary
    stores_rows_that_go_at_once: bool
    semi_forgets_matched_rows: bool
    outer_emits_null_row: Literal[
        "once, if unmatched", "once, if no partner is in the state", "if unmatched, each batch", "always"
    ]
    evicted_rows_share_a_buffer: bool
    rows_that_cannot_match: Literal["come out at once", "are stored"]

    # State functions and stateful processors.
    functions_drop_late_rows: Literal["by event time only", "always", "never"]
    timeout_fires: Callable[[int, int], bool]
    """Whether an event-time timeout fires at a watermark, both in ms."""
    rows_come_before_timeouts: bool
    datetime_timeout_ms: Callable[[int], int]
    """Reads a timeout that is passed as a ``datetime``, given its instant in ms."""
    null_first_column_is_emitted: bool
    """Whether a row that a state function emits with null in the first column comes out."""
    timer_fires: Callable[[int, int], bool]
    """Whether an event-time timer fires at a watermark, both in ms."""
    initial_state: Literal["whole", "grouping columns below unused output"]
    processors_pass_the_watermark_on: bool
    emitted_rows_may_be_late: bool
    """Whether a processor may emit rows behind the watermark in its event-time column."""

    # Several operators.
    watermark_per_operator: bool
    join_output_waits: bool
    semi_join_output_waits_for: Literal["both sides", "its left side"]
    constant_keys: Literal["of the state", "of the present plan"]
    constant_columns_of_joins: Literal["of the state", "of the present plan"]
    comparisons_with_rand_are_decided: bool
    aggregates_by_order_are_deterministic: bool
    """Whether the optimizer takes ``first``, ``last``, ``collect_list`` and ``collect_set`` for deterministic."""
    false_filters_cut_the_plan: bool
    not_null_columns_of_state: Literal["may be as they are", "may not come up", "may not go"]
    """Which changes of NOT NULL columns in the state are allowed after a restart."""
    watermark_passes_not_null_on: bool
    """Whether a column that is NOT NULL below a watermark is so in the state of a join above it."""
    silent_distinct_vanishes: bool
    deduplication_by_key_may_follow: bool
    """Whether a deduplication without an event-time key is allowed above any stateful operator."""
    distinct_is_noticed: bool
    """Whether the checks at the start recognise SQL DISTINCT as an aggregation."""
    empty_union_branches_vanish: bool
    window_of_window_keeps_what_is_above: bool

    # Restart.
    restores_the_watermark: bool
    restores_node_watermarks: bool
    policy_is_pinned: bool
    restores_state: bool
    no_data_batch_after_restart: bool
    deduplication_state_compares: Literal["keys", "whole rows"]

    # Refusals and features.
    refusals: Mapping[str, Wording]
    """Name of a refusal of the version → its wording."""
    features: frozenset[str]

    def altered(self, **values: Any) -> Rules:
        return replace(self, **values)

    def accepting(self, *names: str) -> Rules:
        """These rules without some refusals."""
        return self.altered(refusals={name: worded for name, worded in self.refusals.items() if name not in names})

    def refusal(self, name: str, what: str = "") -> Refused:
        """The error of a refusal.

        Raises Unpredictable: the version does not refuse it, and the model does not know what happens instead.
        """
        if name not in self.refusals:
            raise Unpredictable(f"{name} where it is not refused")
        return self.refusals[name].error(name, what)

    def require(self, feature: str, what: str = "") -> None:
        """Check that the version has a feature, by its name in ``features.yaml``; ``what``: the subject of its error, if not the name.

        Raises Refused: the version lacks the feature; Unpredictable: the version lacks it, and the model does not know the error.
        """
        if feature in self.features:
            return
        missing = features()[feature].missing
        if missing is None:
            raise Unpredictable(f"{feature} where it does not exist")
        raise missing.error("missing feature", what or feature)


def differing(these: Rules, those: Rules) -> tuple[str, ...]:
    """The names of the rules with different values, in the order of the fields."""
    return tuple(field.name for field in fields(Rules) if getattr(these, field.name) != getattr(those, field.name))


@dataclass(frozen=True)
class RulesRead:
    """What a run of the model has read of its rules."""

    rules: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Rule → the module and the function that read it first."""
    refusals: set[str] = field(default_factory=set)
    features: set[str] = field(default_factory=set)

    def tell_apart(self, these: Rules, those: Rules) -> bool:
        """Whether two sets of rules differ in anything that was read. If not, the run is the same with both."""
        return (
            any(getattr(these, name) != getattr(those, name) for name in self.rules)
            or any(these.refusals.get(name) != those.refusals.get(name) for name in self.refusals)
            or not self.features.isdisjoint(these.features ^ those.features)
        )


class WatchedRules:
    """A view of ``Rules`` that records in ``read`` what the model reads of them."""

    accepting, refusal, require = Rules.accepting, Rules.refusal, Rules.require

    def __init__(self, rules: Rules, read: RulesRead) -> None:
        self._rules = rules
        self._read = read
        self.refusals: Mapping[str, Wording] = _WatchedRefusals(
            rules.refusals, [refusal.name for refusal in refusals()], read.refusals
        )
        self.features: Set[str] = _WatchedFeatures(rules.features, features(), read.features)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._rules, name)
        reader = sys._getframe(1)
        self._read.rules.setdefault(name, (reader.f_globals["__name__"], reader.f_code.co_qualname.partition(".<")[0]))
        # From now on it is found without this method: the model reads some rules for each row.
        self.__dict__[name] = value
        return value

    def altered(self, **values: Any) -> WatchedRules:
        return WatchedRules(self._rules.altered(**values), self._read)


class _WatchedNames:
    """Names of what a version has, of which it is recorded which ones are asked for."""

    def __init__(self, present: Collection[str], every: Iterable[str], read: set[str]) -> None:
        self._present = present
        self._every = every
        self._read = read

    def __contains__(self, name: object) -> bool:
        self._read.add(str(name))
        return name in self._present

    def __iter__(self) -> Iterator[str]:
        self._read.update(self._every)
        return iter(self._present)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _WatchedFeatures(_WatchedNames, Set[str]):
    pass


class _WatchedRefusals(_WatchedNames, Mapping[str, Wording]):
    _present: Mapping[str, Wording]

    def __getitem__(self, name: str) -> Wording:
        self._read.add(name)
        return self._present[name]
