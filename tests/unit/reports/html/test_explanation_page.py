"""The page of ``explain --output``: the words of the terminal, the values of the pictures, and what of it is not ours."""

import json
import re
import shutil
from hashlib import sha256
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest

from conformance.query_progress.answer import QueryExplanation
from conformance.query_progress.tracks import Queries
from conformance.query_progress.wire import Progress
from reports.html.standalone import asset, explanation_page
from tests.support.commands import answer_of
from tests.support.transcript import transcript
from tests.unit.conformance.own_job.test_delays import table
from tests.unit.conformance.own_job.test_explained_job import DATA, explained
from tests.unit.conformance.query_progress.lines import progress
from tests.unit.conformance.query_progress.test_causes import LOGS

DOCS = Path(__file__).parents[4] / "docs"
LOG = next(path for path in LOGS if path.stem == "short-delay" and path.parent.name == "4.3.0")


def words(text):
    """Return what is shown of a page or of a terminal, without marks, spaces and breaks of lines."""
    return re.sub(r"[\s✗●`]+", "", unescape(re.sub(r"<[^>]*>", "", text)))


def data_of(page):
    (data,) = json.loads(re.search(r"data-pictures>(.*?)</script>", page, re.DOTALL)[1])
    return data


def test_the_plotting_library_is_what_its_authors_published():
    """The digest is that of dist/uPlot.iife.min.js in the package uplot 1.6.32 of npm; its licence stands before it."""
    licence, _, library = asset("uplot.js").partition("*/\n")
    assert "Permission is hereby granted, free of charge" in licence
    assert sha256(library.encode()).hexdigest() == "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"


def test_a_page_by_progress_says_what_the_terminal_says_as_the_docs_show(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("explanation")
    shutil.copy(LOG, "progress.jsonl")
    (asked,) = (command for command in transcript(DOCS / "your-query-in-production.md") if "-o" in command.line)
    code, text, _ = answer_of(capsys, *asked.line.split()[1:])
    page = (folder / "explanation.html").read_text()
    *lines, last = text.splitlines()
    assert (code, len(lines) < 25) == (0, True)
    assert (last,) == asked.printed
    assert len(lines) > 10
    shown = words(page)
    assert [line for line in re.split(r"\n(?!    )", "\n".join(lines)) if words(line) not in shown] == []
    assert data_of(page)["batches"] == [*range(16)]
    plain = answer_of(capsys, "explain", "--json", "--progress", str(LOG))[1]
    assert answer_of(capsys, "explain", "--json", "--progress", str(LOG), "-o", str(folder))[1] == plain


@pytest.mark.parametrize("name", ["short-delay", "outer-waits", "without-refused", "sound-inner-join"])
def test_a_page_of_a_job_says_what_the_terminal_says_and_has_every_row(name, monkeypatch):
    _, answer = explained(DATA / f"{name}-4.3.0.json", monkeypatch)
    page = explanation_page([answer.page])
    shown, data = words(page), data_of(page)
    treatments = ("joined:", "late:", "out:", "in state:", "duplicate:", "without partner:", "not known:")
    told = ("micro-batch", "4 more", "2 more", *treatments)
    lines = [line for line in answer.lines() if not line.strip().startswith(told)]
    assert [line for line in lines if words(line) not in shown] == []
    assert page.count("<tr") - 1 == len(answer.job.treated.rows)
    assert data["batches"] == [batch.id for batch in answer.job.seen.batches]
    by_label = {
        series.label: values for series, values in zip(answer.page.over_time.series, data["values"], strict=True)
    }
    for batch, at in ((batch, at) for at, batch in enumerate(answer.job.seen.batches)):
        assert by_label.get("watermark", [None] * 99)[at] == (batch.watermark or None)
        assert by_label["rows dropped"][at] == batch.dropped
    newest = [values for label, values in by_label.items() if label.startswith("newest of")]
    assert len(newest) == (2 if len(answer.job.case.streams) > 1 and answer.job.seen.error is None else 0)
    assert all(a <= b for values in newest for a, b in pairwise(values) if a is not None)


def test_delays_are_on_the_page_as_picture_and_table(monkeypatch):
    made = table("short-delay", monkeypatch)
    page = explanation_page([made.page])
    shown, lines = words(page), [*made.lines()][1:]
    assert [line for line in lines if words(line.replace("✗ your", "Your")) not in shown] == []
    assert [delay["delayMs"] for delay in data_of(page)["delays"]["delays"]] == [
        point.delay_ms for point in made.points
    ]


def test_a_long_progress_makes_a_small_page_that_says_how_points_were_left_out(tmp_path, capsys):
    log = tmp_path / "progress.jsonl"
    with log.open("w") as file:
        for batch in range(10_000):
            file.write(json.dumps(progress(batch, high=batch, mark=batch - 10, state={"stateStoreSave": 3})) + "\n")
    answer_of(capsys, "explain", "--progress", str(log), "-o", str(tmp_path))
    page = (tmp_path / "explanation.html").read_text()
    assert "two points stand for 16 of them" in page
    assert len(page) < 400_000


def test_a_page_replaces_no_file_of_somebody_else_and_stays_without_an_answer(tmp_path, capsys):
    page, asked = tmp_path / "explanation.html", ("explain", "--progress", str(LOG), "-o", str(tmp_path))
    page.write_text("mine")
    code, _, errors = answer_of(capsys, *asked)
    assert (code, page.read_text()) == (2, "mine")
    assert "explanation.html exists and is not" in errors
    page.unlink()
    answer_of(capsys, *asked)
    written = page.read_text()
    (tmp_path / "x.log").write_text('{"other": 1}\n')
    assert answer_of(capsys, "explain", "--progress", str(tmp_path / "x.log"), "-o", str(tmp_path))[0] == 2
    assert page.read_text() == written
    assert sorted(file.name for file in tmp_path.iterdir()) == ["explanation.html", "x.log"]
    assert answer_of(capsys, "explain", "--progress", str(LOG), "-o", str(page))[0] == 2
    assert answer_of(capsys, "explain", "late-drops/window-still-open", "-o", str(tmp_path))[0] == 2


def test_text_of_strangers_is_text():
    hostile = "</script><img src=x onerror=alert(1)>\u202e"
    read = Queries(pictured=True)
    source = {"description": hostile, "numInputRows": 1}
    read.read([Progress.model_validate(progress(0, name=hostile, high=1) | {"sources": [source]})])
    page = explanation_page([QueryExplanation(query, ()).page for query in read.by_id.values()], [hostile])
    assert "onerror" in page
    assert "<img" not in page
    assert "\u202e" not in page
