"""What the playground computes, in the browser: the reference model on a trace that the reader changes, drawn as in the report."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from conformance.account.account import account, batches_of
from conformance.account.explanation import explanation_lines
from conformance.core.case import Case
from conformance.core.versions import NotAVersion, SparkVersion, releases
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict
from conformance.suite import discovery
from reports.html.pages import templates
from reports.html.timeline import COUNTS, TREATMENTS, timeline

MODES = ("append", "update", "complete")
MOST_ROWS = 200
MOST_CHARACTERS = 10_000
STARTS_WITH = {
    "delay": "10 minutes",
    "window": "10 minutes",
    "mode": "append",
    "version": str(releases()[-1]),
    "rows": "12:05\n12:25\n12:06\n12:31",
}
"""The trace one starts with: the row at 12:06 is late in its micro-batch."""


class NotATrace(ValueError):
    """What the reader wrote is no trace; the message says why."""


def first() -> str:
    """What the page needs at first, as JSON: the state to start with, and the versions, newest first."""
    return json.dumps({"starts_with": STARTS_WITH, "versions": [*map(str, reversed(releases()))]})


def drawn(state: str) -> str:
    """The answer to a state, JSON with the keys of ``STARTS_WITH``.

    Each line of ``rows`` is a micro-batch: event times with an optional whole number, separated by commas; an empty line has no rows.
    Returns JSON: ``picture``, HTML; ``told``, what the model says, line by line; ``problem``, which is null if there is none.
    """
    try:
        picture, explanation = _answer(json.loads(state))
    except NotATrace as problem:
        return json.dumps({"picture": "", "told": [], "problem": str(problem)})
    return json.dumps({"picture": picture, "told": explanation, "problem": None})


def _answer(state: dict[str, str]) -> tuple[str, list[str]]:
    if sum(map(len, state.values())) > MOST_CHARACTERS:
        raise NotATrace(f"at most {MOST_CHARACTERS:,} characters")
    version = _version(state["version"])
    case = _case(state)
    try:
        prediction = predict(case, version)
    except Unpredictable as problem:
        raise NotATrace(f"the reference model does not predict this: {problem}") from None
    error = prediction.observation.error
    if error is not None and not any(step.batches for step in prediction.observation.steps):
        raise NotATrace(f"Spark {version} refuses this query: {error.name or error.message}")
    line = timeline(case, batches_of(account(case, version, prediction.observation, prediction)))
    if line is None:
        raise NotATrace("no micro-batch runs")
    section = SimpleNamespace(targets=[SimpleNamespace(title=str(version))], difference=None)
    named = f"{state['mode'].capitalize()} mode on Spark {version}"
    template = templates().get_template("timeline.html")
    picture = template.render(
        line=line, section=section, uid="playground", named=named, counts=COUNTS, treatments=TREATMENTS
    )
    # Without the id and the title of the case.
    return picture, [*map(str, islice(explanation_lines(case, prediction), 3, None))]


def _version(text: str) -> SparkVersion:
    try:
        version = SparkVersion.parse(text)
    except NotAVersion as problem:
        raise NotATrace(str(problem)) from None
    if version not in releases():
        raise NotATrace(f"there is no Spark {version}")
    return version


def _case(state: dict[str, str]) -> Case:
    """Read like any case, so that every mistake has the message of ``conformance case validate``."""
    if state["mode"] not in MODES:
        raise NotATrace(f"{state['mode']} is no output mode: {', '.join(MODES)}")
    written = {
        "title": "A trace of the playground",
        "streams": {"events": "event_time TIMESTAMP, number INT"},
        "query": [
            {"from": "events"},
            {"withWatermark": ["event_time", state["delay"]]},
            {"groupBy": [f"window(event_time, '{_duration(state['window'])}')"], "agg": ["sum(number) AS total"]},
            {"select": ["window.start", "window.end", "total"]},
        ],
        "outputMode": state["mode"],
        "steps": list(_steps(state["rows"])),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases" / "playground" / "trace.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(written), encoding="utf-8")
        suite = discovery.load([path.parent.parent])
    if suite.problems:
        raise NotATrace(suite.problems[0].message)
    return suite.cases[0]


def _duration(text: str) -> str:
    if not all(letter.isalnum() or letter == " " for letter in text):
        raise NotATrace(f"{text!r} is no duration such as 10 minutes")
    return text


def _steps(rows: str) -> Iterator[dict[str, Any]]:
    lines = rows.splitlines()
    if sum(len(line.split(",")) for line in lines) > MOST_ROWS:
        raise NotATrace(f"at most {MOST_ROWS} rows")
    for number, line in enumerate(lines, 1):
        yield {"add": {"events": [_row(number, row.split()) for row in line.split(",") if row.strip()]}}


def _row(line: int, words: list[str]) -> list[str | int]:
    time, *rest = words
    if len(rest) > 1 or not all(re.fullmatch(r"-?\d{1,10}", word) for word in rest):
        raise NotATrace(f"line {line}: {' '.join(words)!r} is no row: write a time and, if you like, a whole number")
    return [time, int(rest[0]) if rest else 1]
