"""The parts of a page that are worked out: the timeline, who arrived when, the scale, the query as PySpark."""

from pathlib import Path

import pytest

from conformance.account.account import BatchAccount, account, batches_of
from conformance.core.versions import SparkVersion
from conformance.suite import discovery
from reports.analysis.step_table import step_table
from reports.html.addresses import InAFolder, InOneFile, SourceLink, case_key, slug
from reports.html.texts import duration, visible
from reports.html.timeline import TimeScale, timeline
from reports.results.reading import Results

SAMPLE = Path(__file__).parents[3] / "browser" / "sample"
CASES = {case.id: case for case in discovery.load([SAMPLE / "cases"]).cases}
CELLS = {(cell.case, cell.target): cell for cell in Results.read(SAMPLE / "results.jsonl").cells}
LATE = "late-drops/late-by-the-watermark-of-the-batch-before"
REPLAY = "recovery/replay-filters-late-rows-as-the-first-attempt-did"


def told(id: str, version: str) -> tuple[BatchAccount, ...]:
    seen = CELLS[id, f"spark-{version}"].observation
    assert seen is not None
    return batches_of(account(CASES[id], SparkVersion.parse(version), seen))


def treated(id: str, version: str) -> list[list[str]]:
    return [[row.treatment for row in one.rows] for one in told(id, version)]


class TestArrivals:
    def test_a_backlog_is_a_row_for_each_micro_batch_and_the_count_of_drops_tells_which_was_late(self) -> None:
        assert treated(LATE, "4.3.0") == [["taken"], ["taken"], ["taken"]]
        assert treated(LATE, "3.3.4") == [["taken"], ["taken"], ["late"]]

    def test_a_replay_has_the_rows_of_what_it_replays(self) -> None:
        assert treated(REPLAY, "3.3.4") == [["taken"], ["late"], ["late"]]
        assert [one.restarted for one in told(REPLAY, "4.3.0")] == [None, None, "crash-before-commit"]

    def test_a_no_data_batch_has_none_and_a_null_time_is_null(self) -> None:
        found = treated("late-drops/null-event-time-is-never-late", "4.3.0")
        assert "null" in {treatment for each in found for treatment in each}
        assert treated("late-drops/window-still-open", "4.3.0")[1] == []

    @pytest.mark.parametrize("id", CASES)
    def test_every_case_can_be_drawn_on_every_version(self, id: str) -> None:
        for (case, target), cell in CELLS.items():
            if case != id or cell.observation is None:
                continue
            version = SparkVersion.parse(target.removeprefix("spark-"))
            drawn = timeline(CASES[id], told(id, str(version)))
            batches = sum(len(step.batches) for step in cell.observation.steps)
            assert (drawn is None) == (batches == 0)
            if drawn is not None:
                assert len(drawn.columns) == batches
                assert drawn.described.count("Micro-batch ") == batches
            table = step_table(CASES[id], version, cell)
            assert len(table.steps) == len(CASES[id].steps)
            assert any(step.differs for step in table.steps) == (cell.status == "violates")


class TestModel:
    def test_a_prediction_is_a_column_of_its_own(self) -> None:
        cell = CELLS[LATE, "spark-3.3.4"]
        model = CELLS[LATE, "spark-4.3.0"].observation
        told = step_table(CASES[LATE], SparkVersion(3, 3, 4), cell, model)
        assert told.sides == ("Expected", "Engine", "Model")
        lines = [line for block in told.steps[0].blocks for line in block.sides[2]]
        assert any(line.differs for line in lines)


class TestTimeScale:
    def test_order_is_kept_and_an_empty_gap_takes_little_room(self) -> None:
        scale = TimeScale.of([0, 10, 20, 30, 1_000_000])
        heights = [scale.at(instant) for instant in (0, 5, 10, 30, 1_000_000)]
        assert heights == sorted(heights)
        assert scale.at(5) == 0.5
        assert scale.height < 10
        assert scale.breaks == ((30, 1_000_000),)

    @pytest.mark.parametrize("instants", [[], [5], [5, 5]])
    def test_no_gap_at_all(self, instants: list[int]) -> None:
        assert TimeScale.of(instants).height == 0
        assert TimeScale.of(instants).at(7) == 0


class TestAddresses:
    @pytest.mark.parametrize("text", ["..", ".", "a/b", "", "ü", "x" * 300, "a b", "-", "con?", "\ud800"])
    def test_a_slug_is_a_file_name_and_tells_texts_apart(self, text: str) -> None:
        made = slug(text)
        assert made not in ("", ".", "..")
        assert not set(made) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
        assert len(made) <= 100
        assert made != slug(text + "!")

    def test_in_a_folder_and_in_one_file(self) -> None:
        key = case_key("late-drops/x")
        assert InAFolder().page("matrix", key) == "../../matrix.html"
        assert InAFolder().page(key, "index", "A") == "cases/late-drops/x.html#A"
        assert InOneFile().page(key, "index", "A") == "#case/late-drops/x:A"


@pytest.mark.parametrize(
    ("text", "label", "href"),
    [
        ("SPARK-40925", "SPARK-40925", "https://issues.apache.org/jira/browse/SPARK-40925"),
        ("https://www.example.org/a/b#the-place", "example.org – the place", "https://www.example.org/a/b#the-place"),
        ("https://example.org", "example.org", "https://example.org"),
        ("WatermarkTracker", "WatermarkTracker", None),
        ("javascript:alert(1)", "javascript:alert(1)", None),
        ("https://[", "https://[", None),
    ],
)
def test_sources(text: str, label: str, href: str | None) -> None:
    assert SourceLink.of(text) == SourceLink(label, href)


def test_invisible_characters_are_named() -> None:
    assert visible("a\u202eb\x00c\ud800d\n") == "a⟨right-to-left override⟩b⟨u+0000⟩c⟨u+d800⟩d\n"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 s"),
        (12, "0 s"),
        (4261, "4.3 s"),
        (5000, "5 s"),
        (59_949, "59.9 s"),
        (59_950, "1 min 0 s"),
        (184_000, "3 min 4 s"),
        (7_530_000, "2 h 5 min"),
    ],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text
