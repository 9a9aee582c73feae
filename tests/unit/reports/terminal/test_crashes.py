"""The table of crashes on a terminal."""

from io import StringIO

from rich.console import Console

from reports.results.crash import CrashRecords
from reports.terminal.checkpoint import tables
from tests.unit.reports.results.test_crash import HEADER, NOT_RECORDED, record


def shown(*records):
    text = StringIO()
    Console(file=text, width=200).print(*tables(CrashRecords(HEADER, records)), sep="\n")
    return text.getvalue()


def test_the_table_counts_by_case_and_by_fault():
    text = shown(record(), record(), record("refused", "IllegalStateException", fault="lost"))
    assert "spark-3.5.9 hdfs late-drops/a" in text
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert rows["killed"] == ["2", "2", "0"]
    assert rows["lost"] == ["1", "0", "1"]
    assert "3 images: 2 resumed, 1 refused" in text
    assert "refused with: IllegalStateException 1" in text


def test_what_must_not_be_is_shown_once_of_each_kind():
    text = shown(
        record("other rows", why="micro-batch 4: 1 row lost"),
        record("unclear", "EOFException", "Stream ended prematurely", fault="torn"),
        record("unclear", "EOFException", "Stream ended prematurely", fault="unsynced"),
        NOT_RECORDED,
    )
    assert "✗ spark-3.5.9 hdfs late-drops/a, killed at write checkpoint/commits/2: micro-batch 4: 1 row lost" in text
    assert "▲ spark-3.5.9 hdfs late-drops/a, torn at write checkpoint/commits/2: EOFException: Stream ended" in text
    assert "; and 1 more like this" in text
    assert "! spark-3.5.9 hdfs late-drops/a, not recorded: it is gone" in text
