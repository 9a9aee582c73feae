"""The verdict on a job: whether both versions give the same rows, whether the checkpoint of one resumes on the other, and why.

What it says is a list of statements: for a terminal, for a page, and as one record for programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from conformance.core.case import Case
from conformance.core.observation import ErrorSeen
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import CheckpointVerdict, resumed_at
from conformance.judging.verdict import Verdict
from conformance.own_job.job_run import JobRun, Outcome, with_expectations
from conformance.runner.cases import JudgeCases, cell_record
from conformance.suite.discovery import Suite
from reports.analysis.change import MEANINGS, Change, change, changes
from reports.analysis.equivalence import has_behaviour, same_behaviour
from reports.analysis.features import UNSEEN, features_of_job, needs, relevance
from reports.analysis.gate import NoSuchVersion, find
from reports.analysis.matrix import Matrix
from reports.results.checkpoint_status import combined, exit_code, met, phrase, severity, statement
from reports.results.known_bug import KnownBug
from reports.results.reading import Results
from reports.results.records import Cell, DocumentedUpgrade, Header, Target
from reports.results.status import Statement
from reports.results.writing import ResultsWriter

Answer: TypeAlias = Literal["same", "differs", "fails", "unknown"]
"""Both versions do the same; not the same; the job itself fails; no answer."""
_EXIT_CODES: Mapping[Answer, int] = {"same": 0, "differs": 1, "fails": 2, "unknown": 3}


@dataclass(frozen=True)
class Handoffs:
    """Checkpoints of a job with the same verdict."""

    steps: tuple[int, ...]
    """The steps before which they were handed over."""
    verdict: CheckpointVerdict
    """On the first of them, compared with a restart on the version that wrote it."""


@dataclass(frozen=True)
class JobVerdict:
    """Whether a job does the same on two versions, and whether its checkpoints resume."""

    case: Case
    """Expects what the earlier version did, if it got to the end."""
    header: Header
    before: Target
    after: Target
    cells: tuple[Cell, Cell]
    """Of the earlier and of the later version."""
    handoffs: tuple[Handoffs, ...]
    """The checkpoints, those that do not resume as after a restart first."""
    answer: Answer
    change: Change | None
    """What differs, if something does."""
    failures: tuple[tuple[Target, str], ...]
    """The versions on which the job fails, or that gave no answer, and why."""
    features: tuple[str, ...]
    """What the query uses, by its plan and the settings it ran with; empty if no plan was seen."""

    @property
    def exit_code(self) -> int:
        """0 if nothing changes, 1 if rows differ or the query does not go on from a checkpoint, 2 if the job fails, 3 without an answer."""
        return combined([_EXIT_CODES[self.answer], *(exit_code(group.verdict) for group in self.handoffs)])

    def write(self, path: Path) -> None:
        """Write a results file, for ``conformance report``, ``export`` and ``diff``.

        Raises:
            CannotWriteFile, OtherContent, BeingWritten: see `conformance.core.output_file`.
        """
        with ResultsWriter(path, self.header) as writer:
            for cell in self.cells:
                writer.write(cell)


def judge_job(run: JobRun, folder: Path, command: str) -> JobVerdict:
    """Judge a job: what the earlier version did is what is expected of the later one, and of every checkpoint what it did itself
    after a restart there.

    Args:
        folder: where the case of the job is; its file gets these expectations.
    """
    before, after = run.on(run.before), run.on(run.after)
    seen = before.observation
    complete = seen is not None and bool(seen.steps) and seen.error is None
    case = with_expectations(run.case, folder, seen) if seen is not None and complete else run.case
    cells = _cell(before, case), _cell(after, case)
    targets = {target.name: target for target in run.engines}
    a, b = targets[run.before.name], targets[run.after.name]
    failures = tuple((target, why) for target, cell in ((a, cells[0]), (b, cells[1])) if (why := _failure(cell)))
    different = all(has_behaviour(cell) for cell in cells) and not same_behaviour(*cells)
    plan = next((step.plan for step in seen.steps if step.plan), None) if seen is not None else None
    return JobVerdict(
        case=case,
        header=Header(suite=case.digest, cases=(case.id,), targets=run.engines, started=run.started, command=command),
        before=a,
        after=b,
        cells=cells,
        handoffs=grouped(_handoffs(run)),
        answer=_answer(cells, complete=complete, different=different),
        change=change(cells[0], a, cells[1], b) if different else None,
        failures=failures,
        features=features_of_job(plan, case, run.conf) if plan else (),
    )


def _handoffs(run: JobRun) -> Iterator[tuple[int, CheckpointVerdict]]:
    """Each checkpoint that the later version resumed, by the step before which it did."""
    restarted = {outcome.task.cut: outcome for outcome in run.handoffs if outcome.task.target == run.before}
    for outcome in run.handoffs:
        if outcome.task.target == run.after and (cut := outcome.task.cut) is not None:
            pair = restarted[cut], outcome
            reason = next((each.lacking for each in pair if each.lacking is not None), None)
            seen = outcome.observation if pair[0].observation is not None else None
            yield cut, resumed_at(cut, seen, pair[0].observation, reason)


def grouped(handoffs: Iterable[tuple[int, CheckpointVerdict]]) -> tuple[Handoffs, ...]:
    """Handoffs with the same outcome, error and reason together, worst first."""
    groups: dict[tuple[str, str], list[tuple[int, CheckpointVerdict]]] = {}
    for cut, verdict in handoffs:
        about = verdict.error.title if verdict.error is not None else verdict.reason
        groups.setdefault((met(verdict), about), []).append((cut, verdict))
    together = [Handoffs(tuple(cut for cut, _ in same), same[0][1]) for same in groups.values()]
    return tuple(sorted(together, key=lambda group: severity(group.verdict)))


def _answer(cells: tuple[Cell, Cell], *, complete: bool, different: bool) -> Answer:
    if any(cell.observation is not None and cell.observation.own_code_error for cell in cells):
        return "fails"
    if not all(has_behaviour(cell) for cell in cells):
        return "unknown"
    if different:
        return "differs"
    return "same" if complete else "fails"


def _cell(outcome: Outcome, case: Case) -> Cell:
    task = replace(outcome.task, case=case)
    if outcome.run is None:
        found: Verdict | None = JudgeCases().without_run(task, outcome.lacking)
        assert found is not None
        return cell_record(task, found, None)
    run = replace(outcome.run, task=task)
    return cell_record(task, JudgeCases().verdict(run), run)


def _failure(cell: Cell) -> str | None:
    """Why a version has no answer, or with which error the job ends."""
    seen = cell.observation
    if seen is not None and seen.own_code_error is not None:
        return "\n".join(seen.own_code_error.lines())
    if not has_behaviour(cell):
        return "; ".join(cell.notes) or cell.status
    if seen is None or seen.error is None:
        return None
    error = seen.error
    line = next((line.strip() for line in error.message.splitlines() if line.strip()), "")
    return f"step {seen.steps[-1].number} ends with {error.name or 'an error'} at {error.stage}: {line}"


@dataclass(frozen=True)
class KnownHere:
    """A known bug of one of the versions."""

    spark: tuple[str, ...]
    """The versions that have it, of the two."""
    because: str
    bug: KnownBug
    cases: tuple[str, ...]
    """Cases of the suite that show it, all of whose features the query has."""


@dataclass(frozen=True)
class Known:
    """What is published about both versions."""

    before: Target
    after: Target
    """Each the version itself or, if that has no published results, the newest of its line that has."""
    bugs: tuple[KnownHere, ...]
    changes: tuple[Change, ...]
    """Worst first; of cases all of whose features the query has."""
    refusals: Mapping[str, DocumentedUpgrade]
    """Class of an error → what cases document where a checkpoint is refused with it between these versions."""

    def documented(self, error: ErrorSeen | None) -> DocumentedUpgrade | None:
        """Why a checkpoint is refused with this error, and the workaround."""
        return self.refusals.get(error.name) if error is not None else None


def known(
    results: Results, suite: Suite, before: SparkVersion, after: SparkVersion, uses: tuple[str, ...]
) -> Known | None:
    """What concerns a query that uses these features.

    Args:
        suite: its cases say which features they need.

    Returns:
        None if one of the lines has no published results.
    """
    a, b = _published(results, before), _published(results, after)
    if a is None or b is None:
        return None
    ran = frozenset(results.header.cases)
    cases = sorted(concerned((case for case in suite.cases if case.id in ran), frozenset(uses)))
    matrix = replace(Matrix.of(results), cases=tuple(cases))
    found = () if a == b else changes(matrix, a, b).changes
    refusals = {
        cell.error.name: cell.entry
        for cell in results.upgrades
        if (cell.origin, cell.to) == (a.name, b.name) and cell.error is not None and cell.entry is not None
    }
    return Known(
        a, b, tuple(_bugs(matrix, (a, b))), tuple(change for change in found if change.met_by_running_queries), refusals
    )


def _published(results: Results, version: SparkVersion) -> Target | None:
    for asked in (str(version), version.line):
        try:
            return find(results, asked)
        except NoSuchVersion:
            continue
    return None


def concerned(cases: Iterable[Case], uses: frozenset[str]) -> Iterator[str]:
    """The cases all of whose features the query has; of a query without a plan nothing is known."""
    for case, features in needs(cases).items() if uses else ():
        if relevance(set(features).difference(UNSEEN), uses) == "all":
            yield case


def _bugs(matrix: Matrix, targets: tuple[Target, Target]) -> Iterator[KnownHere]:
    """The known bugs that cases of the matrix show on these versions, as every page counts them."""
    by_name = {target.name: target for target in targets}
    for cells in matrix.known_bugs(by_name.values()).values():
        case, shown_on = [*cells][-1]
        bug, differs = matrix.known_bug(case, by_name[shown_on]), cells[case, shown_on].differs
        if bug is not None and differs is not None:
            versions = tuple(dict.fromkeys(by_name[name].spark for _, name in cells))
            yield KnownHere(versions, differs.because or "", bug, tuple(dict.fromkeys(case for case, _ in cells)))


_MOST = 5
"""Known bugs and changes that are listed."""


def summary(found: JobVerdict) -> str:
    """One line: ``3.5.9 → 4.1.4: same rows; the checkpoint is refused``."""
    rows = {
        "same": "same rows",
        "differs": found.change.what if found.change is not None else "",
        "fails": "the job fails",
        "unknown": "no answer",
    }
    worst = [phrase(group.verdict) for group in found.handoffs[:1]]
    return f"{found.before.title} → {found.after.title}: {'; '.join([rows[found.answer], *worst])}"


def statements(found: JobVerdict, about: Known | None) -> Iterator[Statement]:
    """What was found, the answer to the question first.

    Args:
        about: what is published about both versions; None if nothing is.
    """
    for target, why in found.failures:
        first, *more = why.splitlines()
        yield Statement("broken", "!", f"on {target.title}: {first}", tuple(more))
    yield from _rows(found)
    for group in found.handoffs:
        yield _handoff(group, found, about)
    if about is not None and found.features:
        yield from _known(found, about)


def _rows(found: JobVerdict) -> Iterator[Statement]:
    if found.answer == "same":
        seen = found.cells[0].observation
        count = sum(len(step.batches) for step in seen.steps) if seen is not None else 0
        batches = "1 micro-batch" if count == 1 else f"{count} micro-batches"
        yield Statement("conforms", "●", f"same rows, watermarks, late rows and state in {batches}")
    if found.change is not None:
        meaning = MEANINGS[found.change.meaning]
        first = f"first difference: {found.change.where}"
        yield Statement("violates", meaning.glyph, f"{meaning.title}: {found.change.what}", (first,))


def _handoff(group: Handoffs, found: JobVerdict, about: Known | None) -> Statement:
    steps = f", handed over before {'step' if len(group.steps) == 1 else 'steps'} {', '.join(map(str, group.steps))}"
    verdict = group.verdict
    details: tuple[str, ...] = ()
    if verdict.outcome == "other rows":
        details = (f"first difference from a restart on {found.before.title}: {verdict.difference}",)
    elif verdict.outcome != "resumed":
        documented = about.documented(verdict.error) if about is not None else None
        because = f"{documented.because}{documented.ticket}" if documented is not None else None
        details = why(verdict, because, documented.way_round if documented is not None else None)
    return statement(verdict, found.after.title, steps, details)


def why(verdict: CheckpointVerdict, because: str | None, workaround: str | None) -> tuple[str, ...]:
    """Why a checkpoint did not resume: the author's own code, else what is known of the error, else what it says."""
    if verdict.error is not None and verdict.error.own_code is not None:
        return verdict.error.own_code.evidence()
    if because is None:
        return tuple(verdict.reason.splitlines() or ([verdict.why] if verdict.why else []))
    return (because, f"workaround: {workaround}") if workaround else (because,)


def _known(found: JobVerdict, about: Known) -> Iterator[Statement]:
    uses = ", ".join(found.features)
    between = f"between {about.before.title} and {about.after.title}"
    if about.bugs:
        text = f"{counted(len(about.bugs), 'known bug')} that a query with {uses} can meet"
        yield Statement("bug", "▲", text, tuple(line for bug in about.bugs[:_MOST] for line in _bug(bug)))
    if about.changes:
        text = f"{counted(len(about.changes), 'change')} {between} that a query with {uses} can meet"
        yield Statement("differs", "◆", text, tuple(map(_change, about.changes[:_MOST])))
    if not about.bugs and not about.changes:
        yield Statement(
            "conforms", "●", f"the suite knows no bug or change {between} that a query with {uses} can meet"
        )


def _change(found: Change) -> str:
    """``3 rows later: the delay counts once (SPARK-49829). See join-delays/…``"""
    why = "; ".join(f"{reason.text}{reason.ticket}" for reason in found.reasons)
    return f"{found.what}{f': {why}' if why else ''}. See {found.case}"


def _bug(found: KnownHere) -> Iterator[str]:
    yield f"{' and '.join(found.spark)}: {found.because}{found.bug.ticket}; {found.bug}. See {found.cases[0]}"
    if found.bug.workaround is not None:
        yield f"workaround: {found.bug.workaround}"


def record(found: JobVerdict, about: Known | None) -> dict[str, Any]:
    """Everything that the statements say, as JSON."""
    change = found.change
    return {
        "from": found.before.spark,
        "to": found.after.spark,
        "summary": summary(found),
        "rows": found.answer,
        "change": None
        if change is None
        else {"meaning": change.meaning, "what": change.what, "first_difference": str(change.where)},
        "failures": [{"spark": target.spark, "why": why} for target, why in found.failures],
        "checkpoints": [_checkpoint(group, about) for group in found.handoffs],
        "features": list(found.features),
        "known_bugs": [
            {
                "spark": list(bug.spark),
                "because": bug.because,
                "link": bug.bug.link,
                "workaround": str(bug.bug.workaround) if bug.bug.workaround else None,
                "cases": list(bug.cases),
            }
            for bug in (about.bugs if about is not None else ())
        ],
        "known_changes": [
            {"case": one.case, "what": one.what, "links": [reason.link for reason in one.reasons if reason.link]}
            for one in (about.changes if about is not None else ())
        ],
        "case": str(found.case.path),
    }


def _checkpoint(group: Handoffs, about: Known | None) -> dict[str, Any]:
    verdict = group.verdict
    documented = about.documented(verdict.error) if about is not None else None
    return {
        "met": met(verdict),
        "before_steps": list(group.steps),
        "error": verdict.error.name if verdict.error is not None else None,
        "because": documented.because if documented is not None else None,
        "way_round": documented.way_round if documented is not None else None,
        "first_difference": verdict.difference or None,
        "lacking": verdict.reason or None,
    }
