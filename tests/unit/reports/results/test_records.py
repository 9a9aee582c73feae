"""The records of a results file: what they hold, and what they refuse."""

from typing import Any

import pytest
from pydantic import ValidationError

import reports.results.records as records
from conformance.core.case import Upgrade
from conformance.core.observation import ErrorSeen
from conformance.core.versions import SparkVersion, VersionRange
from conformance.judging.verdict import Verdict, combine, judge
from reports.results.records import (
    FORMAT,
    Cell,
    DocumentedDifference,
    Header,
    TargetRecord,
    handoff_name,
)
from tests.support.observations import NEWEST, batch, differs, observed, step, window
from tests.support.runs import STARTED, case_named, cell, header

OLD, NEW = "spark-3.5.9", "spark-4.3.0"
OLD_VERSION = SparkVersion.parse("3.5.9")
SEEN = observed(step(1, batch(0, window("12:00", "12:10", 1))))


def head(**keys: Any) -> Header:
    about = {
        "suite": "5" * 64,
        "cases": ("a",),
        "targets": (TargetRecord(name=OLD, spark="3.5.9"),),
        "started": STARTED,
    }
    return Header(**{**about, **keys})


def refused(**keys: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        head(**keys)
    return str(caught.value)


class TestTarget:
    def test_a_release(self) -> None:
        one = TargetRecord(name=OLD, spark="3.5.9")
        assert (one.title, str(one.version), one.apache, one.met) == ("3.5.9", "3.5.9", True, False)
        assert one.runtime == "local"

    @pytest.mark.parametrize(("name", "spark"), [("ours", "3.5.9"), ("a", "3.5.9"), ("spark-4.0.0", "3.5.9")])
    def test_another_build_is_not_apaches(self, name, spark) -> None:
        one = TargetRecord(name=name, spark=spark)
        assert (one.apache, one.title) == (False, name.removeprefix("spark-"))

    def test_without_a_spark_version(self) -> None:
        assert TargetRecord(name="model", spark="model").version is None

    @pytest.mark.parametrize("field", ["java", "python", "scala", "os", "image_digest"])
    def test_an_engine_that_introduced_itself(self, field) -> None:
        assert TargetRecord(name=OLD, spark="3.5.9", **{field: "x"}).met

    @pytest.mark.parametrize("field", ["image", "master"])
    def test_what_is_known_before_does_not_count_as_an_introduction(self, field) -> None:
        assert not TargetRecord(name=OLD, spark="3.5.9", **{field: "x"}).met

    @pytest.mark.parametrize("name", ["a\nb", "a\x1b[1m", "a\x7f", "\u202eb"])
    def test_a_name_is_one_line_of_text(self, name) -> None:
        with pytest.raises(ValidationError, match="must be text on one line, without control characters"):
            TargetRecord(name=name, spark="3.5.9")


class TestHeader:
    def test_the_newest_format_is_written(self) -> None:
        assert (head().format, FORMAT) == (5, 5)

    @pytest.mark.parametrize("format", [0, 4, 6, True, "5"])
    def test_other_formats_are_refused(self, format) -> None:
        assert "format" in refused(format=format)

    def test_its_cells_are_cases_times_targets(self) -> None:
        assert header(("a", "b"), (OLD, NEW)).expected_cells() == {(c, t) for c in "ab" for t in (OLD, NEW)}

    def test_its_upgrades_are_cuts_times_pairs(self) -> None:
        one = head(cases=(), pairs=((OLD, NEW), (NEW, OLD)), cuts={"a": (2, 3), "b": (2,)})
        assert one.expected_cells() == {
            (case, f"{origin} → {to} before step {cut}")
            for case, cut in (("a", 2), ("a", 3), ("b", 2))
            for origin, to in ((OLD, NEW), (NEW, OLD))
        }

    @pytest.mark.parametrize(
        ("keys", "twice"),
        [
            ({"cases": ("a", "b", "a")}, "has a twice"),
            ({"cases": ("a", "b", "b")}, "has b twice"),
            ({"targets": (TargetRecord(name=OLD, spark="3.5.9"),) * 2}, f"has {OLD} twice"),
            ({"pairs": ((OLD, NEW), (OLD, NEW))}, "twice"),
            ({"cuts": {"a": (2, 2)}}, "has 2 twice"),
        ],
    )
    def test_nothing_is_announced_twice(self, keys, twice) -> None:
        assert twice in refused(**keys)

    def test_the_number_of_cells_is_limited(self, monkeypatch) -> None:
        monkeypatch.setattr(records, "MOST_CELLS", 9)
        targets = tuple(TargetRecord(name=name, spark="3.5.9") for name in "xyz")
        assert len(head(cases=("a", "b", "c"), targets=targets).expected_cells()) == 9
        pairs = ((OLD, NEW), (NEW, OLD))
        full = {"cases": ("a",), "targets": targets, "pairs": pairs, "cuts": {"a": (2, 3), "b": (4,)}}
        assert len(head(**full).expected_cells()) == 9
        told = refused(**{**full, "cuts": {"a": (2, 3), "b": (4, 5)}})
        assert "announces 11 cells; at most 9 are read" in told
        assert "announces 12 cells" in refused(cases=("a", "b", "c", "d"), targets=targets)

    def test_a_million_cells_may_be_announced(self) -> None:
        assert (records.MOST_CELLS, records.MOST_SHARDS) == (1_000_000, 9_999)

    @pytest.mark.parametrize("shard", [(1, 1), (1, 2), (2, 2), (9_999, 9_999)])
    def test_shards(self, shard) -> None:
        assert head(shard=shard).shard == shard

    @pytest.mark.parametrize("shard", [(0, 1), (2, 1), (0, 0), (1, 10_000)])
    def test_impossible_shards(self, shard) -> None:
        assert f"{shard[0]}/{shard[1]} is not a shard: write 2/5, up to 9999 parts" in refused(shard=shard)

    def test_a_key_of_an_unknown_name_is_refused(self) -> None:
        assert "surprise" in refused(surprise=1)


class TestCell:
    @pytest.mark.parametrize(
        ("id", "expansion", "variant", "written", "file"),
        [
            ("late/a", "", "", "late/a", "late/a.yaml"),
            ("late/a.left.one", "left.one", "", "late/a.left.one", "late/a.yaml"),
            ("late/a.left@rocksdb", "left", "rocksdb", "late/a.left", "late/a.yaml"),
        ],
    )
    def test_the_file_of_its_case(self, id, expansion, variant, written, file) -> None:
        keys = {"case": id, "expansion": expansion, "variant": variant}
        one = cell("late/a", OLD).model_copy(update=keys)
        assert (one.written, one.file) == (written, file)

    def test_one_run(self) -> None:
        of = case_named("late/a")
        one = Cell.of(of, NEW, judge(of, NEWEST, SEEN), [SEEN], 12, reused=True)
        assert one.runs == ()
        assert one.observation == SEEN.without_progress()
        assert (one.duration_ms, one.reused, one.expansion, one.variant, one.case_digest) == (
            12,
            True,
            "",
            "",
            of.digest,
        )
        assert not Cell.of(of, NEW, judge(of, NEWEST, SEEN), [SEEN]).reused
        assert Cell.of(of, NEW, judge(of, NEWEST, SEEN), [SEEN]).duration_ms == 0

    def test_several_runs_of_which_one_has_no_observation(self) -> None:
        of = case_named("late/a")
        verdict = combine([judge(of, NEWEST, SEEN)] * 3)
        one = Cell.of(of, NEW, verdict, [None, SEEN])
        assert [run.observation for run in one.runs] == [None, SEEN.without_progress(), None]
        assert one.observation == SEEN.without_progress()
        assert Cell.of(of, NEW, verdict).observation is None

    def test_the_entry_that_covers_it(self) -> None:
        entry = differs(">=3.5", because="rows are lost", bug=True, introduced_by="SPARK-9")
        said = DocumentedDifference.of(entry)
        assert said == DocumentedDifference(spark=">=3.5", because="rows are lost", bug=True, introduced_by="SPARK-9")
        assert said.ticket == " (no ticket, introduced by SPARK-9)"
        assert DocumentedDifference(spark=">0", link="SPARK-1").ticket == " (SPARK-1)"
        assert not DocumentedDifference(spark=">0").bug


class TestCellWithACheckpoint:
    def test_its_key(self) -> None:
        of = case_named("late/a")
        entry = Upgrade.model_validate({"because": "of this", "link": "SPARK-1", "workaround": "a=b"})
        error = ErrorSeen(stage="run", classes=("E",), message="")
        verdict = Verdict(
            of.id,
            NEWEST,
            "differs",
            differs=entry,
            origin=OLD_VERSION,
            cut=2,
            outcome="refused",
            error=error,
            proven=True,
        )
        one = Cell.of(of, NEW, verdict, [SEEN], 7, origin=OLD)
        assert one.key == ("late/a", handoff_name(OLD, NEW, 2)) == ("late/a", f"{OLD} → {NEW} before step 2")
        assert (one.origin, one.target, one.pair, one.cut) == (OLD, NEW, (OLD, NEW), 2)
        assert (one.outcome, one.error, one.duration_ms) == ("refused", error, 7)
        assert one.observation == SEEN.without_progress()
        assert one.differs == DocumentedDifference(
            spark="", because="of this", link="SPARK-1", workaround="a=b", proven=True
        )

    def test_the_versions_of_its_entry(self) -> None:
        entry = Upgrade.model_validate({"because": "x", "bug": True})
        versions = {"from_": VersionRange.parse("==3.5.*"), "to": VersionRange.parse(">=4.0")}
        said = DocumentedDifference.of(entry.model_copy(update=versions))
        assert (said.origin, said.spark, said.ticket) == ("==3.5.*", ">=4.0", " (no ticket)")


@pytest.mark.parametrize(
    ("workaround", "proven", "shown"),
    [
        ("spark.sql.check=false", True, "spark.sql.check=false"),
        ("spark.sql.check=false", False, None),
        ("start with a new checkpoint", False, None),
        (None, False, None),
    ],
)
def test_a_setting_is_a_workaround_only_where_it_was_tried(workaround, proven, shown) -> None:
    said = DocumentedDifference(spark="", because="of this", workaround=workaround, proven=proven)
    assert said.proven_workaround == shown
