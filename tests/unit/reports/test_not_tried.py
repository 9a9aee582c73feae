"""What was removed from the answers is said to be missing, whatever shows them, and nothing is said to be the same of it."""

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.wording import counted
from conformance.suite.discovery import Suite
from reports.analysis.change import changes
from reports.analysis.matrix import Matrix
from reports.analysis.report import Report
from reports.exports.ci_reports import step_summary
from reports.exports.everything import everything
from reports.html.addresses import InOneFile
from reports.html.pages import renderings
from reports.html.writer import write_upgrade_page
from reports.results.published import find_both
from reports.results.reading import Results
from reports.results.records import Cell
from tests.support import cells as a
from tests.support.effort import number

BEFORE, AFTER = "3.5.9", "4.3.0"
PAIR = f"{BEFORE} → {AFTER}"
NEAR, FAR = ("spark-3.5.8", "spark-4.3.0"), ("spark-3.4.4", "spark-4.3.0")
EQUALITY = re.compile(
    r"nothing changes|no change\b|the same\b|same rows|conforms|behave alike|every one resumes", re.IGNORECASE
)
"""What says that two answers are equal, or that a checkpoint resumes."""
ANSWERS = {"calm": a.CALM, "lost": a.LOST, "fuller": a.FULLER}
OPEN = (a.NOT_RUN, a.BROKEN)
MET = ("resumed", "resumed", "refused", "other rows", "not-run")


@dataclass(frozen=True)
class Drawn:
    answers: Sequence[tuple[str, str]]
    """Of each case, what both versions answer: a name in ``ANSWERS``, or how the answer was removed."""
    handed: Mapping[tuple[str, str], Sequence[str]]
    """What became of the checkpoints of each pair that has results; ``not-run`` where it was removed."""

    @property
    def missing(self) -> int:
        return sum(side in OPEN for both in self.answers for side in both)

    @property
    def compared(self) -> int:
        return sum(ANSWERS.keys() >= set(both) for both in self.answers)

    @property
    def one_sided(self) -> int:
        return sum(a.OUTSIDE in both and bool(ANSWERS.keys() & set(both)) for both in self.answers)

    @property
    def wrong_on_both(self) -> int:
        return sum(both == ("lost", "lost") for both in self.answers)

    def results(self, path: Path) -> Results:
        cases = {
            f"f/{at}": {version: ANSWERS.get(side, side) for version, side in zip((BEFORE, AFTER), both, strict=True)}
            for at, both in enumerate(self.answers)
        }
        entries = {f"f/{at}": (a.bug(">=3"),) for at, both in enumerate(self.answers) if "lost" in both}
        cells: list[Cell] = []
        for pair, mets in self.handed.items():
            cells += (a.handoff_cell(f"f/{at}", met, *pair) for at, met in enumerate(mets))
        return replace(a.results(path, cases, entries), upgrades=tuple(cells))


side = st.sampled_from((*ANSWERS, *OPEN, a.OUTSIDE))
mets = st.lists(st.sampled_from(MET), min_size=1, max_size=4)
drawn = st.builds(
    Drawn,
    st.lists(st.tuples(side, side), min_size=1, max_size=4),
    st.dictionaries(st.sampled_from([("spark-3.5.9", "spark-4.3.0"), NEAR, FAR]), mets, max_size=3),
)


def gate(results: Results, *options: str) -> tuple[int, str]:
    with patch.object(Results, "read_all", lambda _: results):
        done = CliRunner().invoke(app, ["gate", "results.jsonl", "--from", BEFORE, "--to", AFTER, *options])
    return done.exit_code, done.output


def plain(page: str) -> str:
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())


def shown(results: Results, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each output for people, and its text."""
    yield "gate", gate(results)[1]
    yield "gate --verbose", gate(results, "--verbose")[1]
    report = Report.of(results, Suite(()))
    yield "page", plain(next(renderings(report, InOneFile()))().body)
    yield "page of the upgrade", plain(Path(next(write_upgrade_page(report, BEFORE, AFTER, folder))).read_text())
    pairs = (changes(Matrix.of(results), *find_both(results, BEFORE, AFTER)),)
    # Above and below it, the summary counts what each version did alone.
    yield "step summary", plain(step_summary(results, pairs).partition("### From")[2].partition("### As expected")[0])


def in_words(count: int, noun: str) -> re.Pattern[str]:
    return re.compile(rf"\b{counted(count, noun)}\b")


@settings(max_examples=number(12, 60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(drawn)
def test_what_was_removed_is_said_to_be_missing(tmp_path: Path, drawn: Drawn) -> None:
    results = drawn.results(tmp_path / "r.jsonl")
    own = drawn.handed.get(("spark-3.5.9", "spark-4.3.0"), ())
    tried, not_run = len(own) - own.count("not-run"), own.count("not-run")
    near = drawn.handed.get(NEAR, ())
    answered_by = "3.5.8 → 4.3.0" if not tried and len(near) > near.count("not-run") else ""
    for name, text in shown(results, tmp_path):
        said = f"{name}: {text}"
        if drawn.missing:
            assert in_words(drawn.missing, "cell").search(text), said
        if drawn.one_sided:
            assert re.search(
                rf"\b{drawn.one_sided} (of them ran on the other|cases? (that|on) only one version)", text
            ), said
        if drawn.wrong_on_both:
            assert re.search(rf"\b{drawn.wrong_on_both} .{{0,40}}(wrong on both|known bug on both versions)", text), (
                said
            )
        if not drawn.compared:
            assert not EQUALITY.search(text.lower().partition("checkpoint")[0]), said
            assert re.search(r"nothing compared|no case has a result on both versions", text, re.IGNORECASE), said
        # Of checkpoints, only what was tried is counted, and under the pair that was.
        if tried:
            assert f"of {counted(tried, 'tried checkpoint')}" in text.lower(), said
            assert not not_run or f"{not_run} not run" in text, said
        else:
            assert f"{PAIR} was not run" in text, said
            assert (
                (f"{answered_by} was: of " in text) if answered_by else ("nor any other pair of the lines" in text)
            ), said
            for claim in re.finditer("every one resumes", text):
                assert answered_by, said
                assert f"{answered_by} was:" in text[: claim.start()], said


@settings(max_examples=number(12, 60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(drawn)
def test_so_it_is_for_programs(tmp_path: Path, drawn: Drawn) -> None:
    results = drawn.results(tmp_path / "r.jsonl")
    code, out = gate(results, "--json")
    said = json.loads(out)
    (exported,) = json.loads(everything(Report.of(results, Suite(()))))["pairs"]
    own = drawn.handed.get(("spark-3.5.9", "spark-4.3.0"), ())
    tried = len(own) - own.count("not-run")
    assert said["compared"] == exported["compared"] == drawn.compared
    assert len(said["silent"]) == len(exported["silent"]) == drawn.missing
    assert len(said["on_one_version"]) == drawn.one_sided
    assert exported["checkpoints"] == said["checkpoints_summary"]
    assert tried or f"{PAIR} was not run" in said["checkpoints_summary"]
    assert {(one["from"], one["to"]) for one in said["checkpoints"] if "not run" not in one["status"]} <= {
        (BEFORE, AFTER) if tried else ("3.5.8", "4.3.0"),
        (BEFORE, AFTER),
    }
    # 3.5.8 writes the same files as 3.5.9, so its checkpoints count as tried.
    answering = own if tried else drawn.handed.get(NEAR, ())
    answered = len(answering) - answering.count("not-run")
    not_tried = bool(drawn.missing or not answered or len(answering) > answered)
    assert bool(said["not_tried"]) is not_tried
    assert code == (1 if said["changes"] else 3 if drawn.missing or not drawn.compared else 0)
    assert gate(results, "--require-tried")[0] == (
        1 if said["changes"] else 3 if not_tried or not drawn.compared else 0
    )
