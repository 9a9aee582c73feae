"""What the published results say to somebody whose query uses some features."""

from functools import cache

import pytest

from conformance.core.versions import SparkVersion
from conformance.judging.comparison import MOVES_ROWS, BehaviourChange, Divergence, Meaning
from conformance.query.reading import PHYSICAL_PLAN, QueryReading, QueryWatermark, read_plan
from conformance.suite.features import features
from reports.analysis.job_relevance import KnownOfJob, Published, concerned, query_needs
from reports.results.published import published_results
from tests.support.whole_suite import whole_suite

NO_PLAN = QueryReading(())
JOIN = ("append mode", "outer join", "several watermarks")


@cache
def about(before: str, after: str, uses: tuple[str, ...], plan: str = "") -> KnownOfJob:
    versions = SparkVersion.parse(before), SparkVersion.parse(after)
    published = Published.about(published_results(origins=()), *versions)
    assert published is not None
    return published.known(uses, plan=plan)


def changed(meaning: Meaning, what: str) -> BehaviourChange:
    return BehaviourChange(meaning, what, Divergence(1, 0, "rows", "", ""), met_by_running_queries=True, step=1)


def test_bugs_that_such_a_query_can_meet_with_the_versions_that_have_them() -> None:
    plan = joined(BETWEEN, "FileScan json [u#2]")
    links = {bug.bug.link: bug.spark for bug in about("3.5.9", "4.3.0", JOIN, plan).bugs}
    assert links["SPARK-58904"] == ("3.5.9", "4.3.0")
    assert "SPARK-38593" not in links  # of session windows


def test_state_that_alone_differs_has_the_reason_of_cases_where_it_differs_too() -> None:
    """A semi join keeps fewer rows from 4.2 on: ``check`` said that the suite knows no reason, above a list of eight such cases."""
    what = "same rows; differs in rows in state"
    known = about("3.5.9", "4.3.0", ("append mode", "semi join", "several watermarks"), joined(BETWEEN))
    first, *_ = known.reasons(changed("metric", what))
    assert first.startswith(f"A change that the query can meet: {what}: matched left rows stayed in state")
    assert "(SPARK-55973)" in first
    assert not any(what in reason for reason in known.reasons(changed("rows", "1 more row than before")))


def test_a_change_has_the_reason_of_cases_with_the_same_effect() -> None:
    """Late rows were named as the reason of a query that failed, since that was the first change that it can meet."""
    known = about("3.2.4", "3.5.9", ("append mode", "window aggregation", "several watermarks"))
    failing = known.reasons(changed("refused", "fails while it runs: AnalysisException"))
    assert "(SPARK-42376)" in failing[0]
    assert not any("more row" in reason for reason in failing)
    assert known.reasons(changed("refused", "fails while it runs: CAST_INVALID_INPUT")) == ()
    assert not any("more row" in reason for reason in known.reasons(changed("rows", "1 row has different values")))
    more, digests = (
        known.reasons(changed("rows", "5 more rows than before")),
        known.reasons(changed("rows", "other rows")),
    )
    assert "2 more rows than before" in more[0]
    assert {*more} <= {*digests}, "digests do not tell which rows"


@pytest.mark.parametrize("pair", [("3.0.3", "3.5.9"), ("3.5.9", "4.3.0")])
def test_every_published_change_of_rows_has_an_effect(pair: tuple[str, str]) -> None:
    """The effect is read from the words of the change: other words would fit every change."""
    published = Published.of_pair(*map(SparkVersion.parse, pair))
    assert published is not None
    moved = [change for change in published.changes if change.meaning in MOVES_ROWS]
    assert moved
    assert [change.what for change in moved if not change.effect] == []


def test_a_bug_with_another_effect_on_rows_is_named_last_and_a_bug_of_checkpoints_never() -> None:
    chained = ("append mode", "inner join", "several watermarks", "window aggregation", "chained operators")
    known = about("3.5.9", "4.3.0", chained, joined(BETWEEN))
    assert any("NOT NULL in the schema of the state" in bug.because for bug in known.bugs)
    first, *_ = more = known.reasons(changed("rows", "8 more rows than before"))
    assert first.startswith(
        "3.5.9 has a known bug that the query can meet, so 4.3.0 may be right: the shipments' watermark"
    )
    assert known.reasons(changed("rows", "1 row has different values")) == (first,)
    assert not any("NOT NULL" in reason for reason in more)


def test_what_only_a_setting_shows_is_known_of_a_job_with_that_setting() -> None:
    """Two changes and four bugs could never be shown, because no job had ``RocksDB``."""
    deduplicating = ("append mode", "window aggregation", "deduplication", "chained operators")
    case = "chained-aggregations/rocksdb-deduplication-by-the-keys-of-the-aggregation"

    def told(uses: tuple[str, ...]) -> set[str]:
        found = about("3.5.9", "4.3.0", uses)
        return {change.case for change in found.changes} | {id for bug in found.bugs for id in bug.cases}

    assert case not in told(deduplicating)
    assert case in told((*deduplicating, "RocksDB"))


def test_sql_is_only_a_way_to_write_the_query() -> None:
    """A plan does not show it, so no job has it."""
    (case,) = [
        case for case in whole_suite().cases if case.id == "several-watermarks/sql-union-follows-the-slower-stream"
    ]
    needed = features(case)
    assert "SQL" in needed
    uses = frozenset(feature for feature in needed if feature != "SQL")
    assert [*concerned(query_needs([case]), uses, {}, NO_PLAN)] == [case.id]


def test_a_case_with_another_setting_concerns_no_job_without_it() -> None:
    """Every job was told of a change that only a query with enforced names of sinks meets."""
    (case,) = [case for case in whole_suite().cases if case.id == "unsupported/sink-without-a-name"]
    uses = frozenset({*features(case), "window aggregation"})
    assert [*concerned(query_needs([case]), uses, {}, NO_PLAN)] == []
    assert [*concerned(query_needs([case]), uses, case.conf, NO_PLAN)] == [case.id]


@pytest.mark.parametrize(
    ("case_id", "watermark"),
    [
        ("event-time-column/nested-field-is-refused", None),
        ("event-time-column/window-column-gives-a-senseless-watermark", "window"),
    ],
)
def test_a_watermark_on_a_window_or_a_nested_field_concerns_no_job_with_another(
    case_id: str, watermark: str | None
) -> None:
    (case,) = [case for case in whole_suite().cases if case.id == case_id]
    uses = frozenset({*features(case), "window aggregation"})

    def on(column: str) -> QueryReading:
        return QueryReading((QueryWatermark(None, column, "10 minutes"),))

    assert [*concerned(query_needs([case]), uses, {}, on("order_time"))] == []
    if watermark is not None:
        assert [*concerned(query_needs([case]), uses, {}, on(watermark))] == [case_id]


def deduplicated(*between: str, keys: str = "id#64") -> str:
    """The plan of a deduplication, as 3.5.9 and 4.3.0 print it, with operators below it."""
    lines = [f"+- StreamingDeduplicate [{keys}], state info [ opId = 0 ], 0, 1", "Exchange hashpartitioning(id#64, 1)"]
    lines += [*between, "EventTimeWatermark t#63: timestamp, 10 minutes"]
    return "\n".join([PHYSICAL_PLAN, lines[0], *(f"{'   ' * at}+- {line}" for at, line in enumerate(lines[1:], 1))])


def joined(condition: str, right: str = "EventTimeWatermark u#2: timestamp, 10 minutes") -> str:
    return "\n".join(
        [
            PHYSICAL_PLAN,
            f"StreamingSymmetricHashJoin [a#3], [b#4], LeftOuter, condition = [ leftOnly = null, both = {condition}, full = {condition} ]",
            ":- EventTimeWatermark t#1: timestamp, 10 minutes",
            f"+- {right}",
        ]
    )


SELECTED = "*(1) Project [id#64, t#63-T600000ms AS x#65-T600000ms]"
REUSED = "ReusedExchange [n#5, u#2-T600000ms], Exchange hashpartitioning(n#1, 1), ENSURE_REQUIREMENTS, [plan_id=2914]"
"""Of a side that is planned like the other."""
BETWEEN = "((u#2-T600000ms >= t#1-T600000ms) AND (u#2-T600000ms <= t#1-T600000ms + INTERVAL '01' HOUR))"
TWICE = "(t#1-T600000ms > u#2-T600000ms + INTERVAL '-10' SECOND + INTERVAL '-10' SECOND)"
CAST = "(cast(t#1-T600000ms as bigint) >= (cast(u#2-T600000ms as bigint) - 10))"
ESCAPES = "deduplication/late-rows-escape-when-the-time-is-not-selected"
ONE_SIDED = "join-delays/outer-join-with-one-watermark-gives-a-wrong-null-row"
EQUAL_TERMS = "join-delays/equal-intervals-on-both-sides-of-a-range.subtracted-twice"
OF_A_CAST = "join-delays/between-of-a-cast-time-bounds-its-own-side"


@pytest.mark.parametrize(
    ("case_id", "plan", "listed"),
    [
        (ESCAPES, deduplicated("*(1) Project [id#64]"), True),
        (ESCAPES, deduplicated("*(1) Project [id#64, cast(t#63-T600000ms as date) AS d#65]"), True),
        (ESCAPES, deduplicated(), False),
        (ESCAPES, deduplicated(SELECTED), False),
        (ESCAPES, deduplicated(keys="id#64, t#63-T600000ms"), False),
        (ONE_SIDED, joined(BETWEEN, "FileScan json [u#2]"), True),
        (ONE_SIDED, joined(BETWEEN, REUSED), False),
        (ONE_SIDED, joined(BETWEEN), False),
        (EQUAL_TERMS, joined(TWICE), True),
        (EQUAL_TERMS, joined(BETWEEN), False),
        (OF_A_CAST, joined(CAST), True),
        (OF_A_CAST, joined(BETWEEN), False),
    ],
)
def test_a_case_concerns_a_job_only_if_its_plan_has_what_triggers_the_case(
    case_id: str, plan: str, listed: bool
) -> None:
    """A job that selects the event time got a bug of deduplications without it, and every join those of peculiar conditions."""
    (case,) = [case for case in whole_suite().cases if case.id == case_id]
    assert bool([*concerned(query_needs([case]), frozenset(features(case)), {}, read_plan(plan))]) is listed


@pytest.mark.parametrize("case_id", ["recovery/dropped-operator-is-refused", "recovery/metadata-gone-is-a-new-query"])
def test_no_job_meets_a_query_or_a_checkpoint_that_somebody_changes(case_id: str) -> None:
    (case,) = [case for case in whole_suite().cases if case.id == case_id]
    assert [*concerned(query_needs([case]), frozenset(features(case)), {}, NO_PLAN)] == []


def test_another_patch_release_is_told_of_the_newest_of_its_line() -> None:
    found = about("3.5.3", "4.3.0", JOIN)
    assert (found.before.title, found.after.title) == ("3.5.9", "4.3.0")


def test_a_query_of_which_no_plan_was_seen_is_told_of_no_bug() -> None:
    assert about("3.5.9", "4.3.0", ()).bugs == ()


@pytest.mark.parametrize("version", ["2.4.8", "9.9.9"])
def test_a_line_without_results(version: str) -> None:
    assert Published.about(published_results(origins=()), SparkVersion.parse(version), SparkVersion(4, 3, 0)) is None


@pytest.mark.parametrize("pair", [("3.5.9", "4.3.0"), ("3.0.3", "3.5.9"), ("4.2.1", "4.3.0")])
@pytest.mark.parametrize(
    "uses", [JOIN, ("append mode", "window aggregation"), ("append mode", "deduplication", "RocksDB")]
)
def test_what_is_derived_when_results_are_published_says_what_results_and_cases_say(
    pair: tuple[str, str], uses: tuple[str, ...]
) -> None:
    """Reading results and cases took a check two seconds of a core."""
    derived = Published.of_pair(*map(SparkVersion.parse, pair))
    assert derived is not None
    known, read = derived.known(uses), about(*pair, uses)
    assert known.record() == read.record()
    assert [*known.statements()] == [*read.statements()]
    for change in (changed("rows", "1 more row than before"), changed("rows", "other rows")):
        assert known.reasons(change) == read.reasons(change)


@pytest.mark.parametrize("pair", [("3.5.3", "4.3.0"), ("4.3.0", "3.5.9"), ("4.3.0", "4.3.0")])
def test_of_other_pairs_nothing_is_derived(pair: tuple[str, str]) -> None:
    assert Published.of_pair(*map(SparkVersion.parse, pair)) is None


WORKAROUND = "Define a watermark on both inputs."
"""Of SPARK-58904, in ``reports/results/known_bugs.yaml``."""


def test_a_known_bug_has_its_workaround() -> None:
    known = about("3.5.9", "4.3.0", JOIN, joined(BETWEEN, "FileScan json [u#2]"))
    told = [line for one in known.statements() if one.kind == "bug" for line in one.details]
    at = next(place for place, line in enumerate(told) if "SPARK-58904" in line)
    assert told[at + 1] == f"workaround: {WORKAROUND}"
    assert "Met by: append mode, outer join" in told[at]
    # So it has for programs.
    bugs = {bug["link"]: bug["workaround"] for bug in known.record()["known_bugs"]}
    assert bugs["SPARK-58904"] == WORKAROUND
