"""``conformance gate``: whether results change between two Spark versions."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from conformance.cli import options
from conformance.cli.console import print_answer, width
from conformance.cli.options import OUTPUT, argument, flag, option
from conformance.core.errors import WrongUsage
from conformance.core.output_file import write_file
from conformance.core.versions import SparkVersion
from conformance.suite.features import named_features, needs
from harness.targets.targets import VendorRuntime, vendor_runtime
from reports.analysis.change import changes
from reports.analysis.checkpoints import CheckpointChange, Checkpoints, DocumentedCheckpoint, Pair
from reports.analysis.gate import DRAFT, FailOn, Gate, KnownPair, Ruling, draft, in_baseline, known_pair, read_accepted
from reports.analysis.matrix import Matrix, ShownBug
from reports.analysis.published_pairs import published_pair
from reports.results.checkpoint_status import WORST_FIRST, colour_of
from reports.results.known_bug import KnownBug
from reports.results.published import find_both, left_out, nearest_published, published_results
from reports.results.reading import Results
from reports.results.records import Cell, DocumentedDifference
from reports.terminal.gate import lines, tallies


def gate(
    results: list[Path] | None = argument(
        None, "Results files with both versions; by default the published results.", "FILE"
    ),
    from_: str = option(..., "The version you are on: 3.5.9, 3.5, or a vendor's, dbr-15.4.", "VERSION", None, "--from"),
    to: str = option(..., "The version you want.", "VERSION", None, "--to"),
    cases: options.Cases = None,
    fail_on: FailOn = option(
        "running",
        "running: changes that a query that runs today can meet; any: newly accepted queries and other errors of failing "
        "ones, too; documented: of the first, those of documented results; guaranteed: documented rows are lost, added "
        "or changed, or the query is refused.",
        "WHAT",
    ),
    uses: list[str] | None = option(
        None,
        "What your query uses, such as outer-join,deduplication: changes of other cases pass. Repeatable.",
        "FEATURES",
    ),
    accept: Path | None = option(None, "Changes that may pass, each with a reason.", "FILE"),
    baseline: Path | None = option(None, "Earlier results: changes that they have may pass.", "FILE"),
    draft_: Path | None = option(
        None, "Write the failing changes here, to add reasons and pass to --accept.", "FILE", OUTPUT, "--draft"
    ),
    verbose: bool = flag("--verbose", "Print every change, not only what matters to most queries."),
    require_tried: bool = flag("--require-tried", "Fail if something that a version could run has no result."),
    as_json: options.AsJson = False,
) -> None:
    """Fail if results change between two Spark versions.

    Exits with 0 if every change may pass, 1 if a change fails or an acceptance is stale, 2 for wrong usage, and 3 if cells
    have no answer, nothing is compared, or --require-tried finds something without a result. To compare two runs of one
    version use `conformance maintain diff`.
    """
    used = named_features(uses or ())
    runtimes = {text: runtime for text in (from_, to) if (runtime := _runtime(text, published=not results)) is not None}
    before, after = (
        runtimes[text].answered_by or runtimes[text].spark if text in runtimes else text for text in (from_, to)
    )
    if runtimes and before == after:
        verb = "are both answered by" if any(one.answered_by for one in runtimes.values()) else "both contain"
        raise WrongUsage(f"{from_} and {to} {verb} Apache Spark {before}: there is nothing to compare")
    baseline_read = Results.read(baseline) if baseline is not None else None
    known = published_pair(before, after) if not (results or cases or baseline_read) else None
    known = known or _compared(results, before, after, cases, with_features=bool(used))
    answer = known.ruled(
        fail_on,
        used,
        read_accepted(accept) if accept is not None else (),
        in_baseline(baseline_read, before, after),
        require_tried=require_tried,
    )
    vendors = [Text(str(runtime), style="dim") for runtime in runtimes.values()]
    rows = () if as_json else lines(answer, known.titles, vendors, verbose=verbose, width=width())
    # What it was asked for and did not try stands at its end, so no row is cut off.
    print_answer(rows, _record(answer, [*runtimes.values()]) if as_json else {}, as_json=as_json, verbose=True)
    if draft_ is not None:
        write_file(draft_, draft(tuple(ruling.change for ruling in answer.failing)), DRAFT)
    raise typer.Exit(answer.exit_code)


def _runtime(text: str, *, published: bool) -> VendorRuntime | None:
    """Return the runtime of a vendor that a text names, answered by the nearest release if the results are the published ones."""
    runtime = vendor_runtime(text)
    if runtime is None or not published:
        return runtime
    nearest = str(nearest_published(SparkVersion.parse(runtime.spark)) or runtime.spark)
    return runtime if nearest == runtime.spark else replace(runtime, answered_by=nearest)


def _compared(
    results: Sequence[Path] | None, before: str, after: str, cases: Sequence[Path] | None, *, with_features: bool
) -> KnownPair:
    """Compare two versions by results, the published ones by default; with the features that each case needs, if asked for."""
    # The language of cases takes long to import, and published pairs do without it.
    from conformance.suite import discovery

    read = Results.read_all(results) if results else published_results((before, after), origins=(before,))
    matrix = Matrix.of(read)
    changed = [change.case for change in changes(matrix, *find_both(read, before, after)).changes]
    # Of most other cases only what they document about checkpoints is needed.
    some = discovery.some(read.header.cases, cases, key=None if with_features else "upgrades")
    known = {case.id: case for case in (*some, *(() if with_features else discovery.some(changed, cases)))}
    omitted = left_out(read) if not results else ()
    pair = known_pair(read, before, after, tuple(known.values()), matrix, omitted)
    return replace(pair, needs=needs(known.values()) if with_features else {})


def _bugs(bugs: Sequence[ShownBug]) -> list[dict[str, Any]]:
    return [{"cases": list(one.cases), "because": one.because, "link": one.bug.link, **_bug(one.bug)} for one in bugs]


def _record(answer: Gate, runtimes: Sequence[VendorRuntime]) -> dict[str, Any]:
    return {
        "from": answer.compared.before.spark,
        "to": answer.compared.after.spark,
        "runtimes": [asdict(runtime) for runtime in runtimes],
        "fail_on": answer.fail_on,
        "uses": sorted(answer.uses),
        "exit_code": answer.exit_code,
        "compared": answer.compared.compared,
        "changes": [_ruling(ruling) for ruling in answer.rulings],
        "known_bugs_of_both": _bugs(answer.bugs),
        "new_known_bugs": _bugs(answer.new_bugs),
        "checkpoints": _checkpoint_records(answer.checkpoints),
        "tallies": [tally.model_dump(mode="json") for tally in tallies(answer)],
        "stale": [str(entry) for entry in answer.stale],
        "silent": [
            {"case": cell.case, "target": cell.target, "status": cell.status, "why": cell.why}
            for cell in answer.compared.missing
        ],
        "outside": list(answer.compared.outside),
        "left_out": list(answer.left_out),
        "checkpoints_summary": answer.checkpoints.summary(),
        "not_tried": list(answer.not_tried),
        "on_one_version": list(answer.compared.one_sided),
    }


def _bug(bug: KnownBug | None) -> dict[str, str | None]:
    if bug is None:
        return dict.fromkeys(("introduced_by", "fixed_in", "workaround"))
    workaround = str(bug.workaround) if bug.workaround else None
    return {"introduced_by": bug.introduced_by, "fixed_in": bug.fixed_in, "workaround": workaround}


def _checkpoint_records(checkpoints: Checkpoints) -> list[dict[str, Any]]:
    """The records of checkpoints that were tried, or that a case documents, worst first."""
    names = checkpoints.before.name, checkpoints.after.name
    tried = sorted(
        checkpoints.cells,
        key=lambda cell: (WORST_FIRST.index(colour_of(cell.status, cell.outcome)), cell.case, cell.cut),
    )
    entries: list[tuple[Pair, Cell | DocumentedCheckpoint, str, str | None, DocumentedDifference | None]] = [
        *((cell.pair, cell, cell.status, cell.error.name if cell.error else None, cell.differs) for cell in tried),
        *((names, known, f"{known.status}, not run", None, known.entry) for known in checkpoints.documented),
    ]
    return [
        {
            "case": about.case,
            "from": origin.removeprefix("spark-"),
            "to": to.removeprefix("spark-"),
            "status": status,
            "outcome": about.outcome,
            "error": error,
            "because": entry.reason if entry else None,
            "link": entry.link if entry else None,
            "workaround": entry.proven_workaround if entry else None,
            **(checkpoints.change(about) if isinstance(about, Cell) else CheckpointChange()).model_dump(mode="json"),
        }
        for (origin, to), about, status, error, entry in entries
    ]


def _ruling(ruling: Ruling) -> dict[str, Any]:
    change = ruling.change
    return {
        "case": change.case,
        "change": change.meaning,
        "what": change.what,
        "passing": ruling.passing,
        "condition": ruling.condition.model_dump(mode="json"),
        "fixes_a_bug": change.fixes_a_bug,
        "because": ruling.because,
        "strength": ruling.strength,
        "where": str(change.where),
        "reasons": [
            {
                "spark": reason.spark,
                "text": reason.text,
                "link": reason.link,
                "bug": reason.bug is not None,
                **_bug(reason.bug),
            }
            for reason in change.reasons
        ],
    }
