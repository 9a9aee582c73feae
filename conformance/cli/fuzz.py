"""``conformance maintain fuzz``: generated cases, and where Sparks and the reference model disagree on them."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, get_args

import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from conformance.cli import engine_options, options
from conformance.cli.console import errors_console, print_answer, print_error
from conformance.cli.options import flag, grouped, one_of, option, output_option
from conformance.cli.progress import EngineLines
from conformance.core.versions import StoreName
from conformance.core.wording import counted, printable
from conformance.fuzzing import campaign
from conformance.model.catalogue import catalogue
from conformance.model.errors import DEFECT
from conformance.runner.resources import RunInterrupted
from conformance.strategies.pipelines import FAMILIES

SECONDS_BETWEEN_LINES = 10.0
"""Without a terminal, lines of progress are this far apart."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


@grouped
def fuzz(
    *,
    family: list[str] | None = option(
        None, f"What cases are about: {', '.join(FAMILIES)}. Repeatable.", "NAME", options.SELECT_CASES
    ),
    seed: int | None = option(
        None,
        "The same seed generates the same cases; random by default.",
        "N",
        options.SELECT_CASES,
        min=0,
        max=campaign.BIGGEST_SEED,
    ),
    spark: list[str] | None = option(
        None,
        "A version (3.5.9), line (3.5) or range (>=3.4); newest, lines, all or installed. Repeatable.",
        "VERSION",
        options.SELECT_VERSIONS,
    ),
    model: bool = flag(
        "--model",
        "Report every difference from the reference model. Without --spark, compare its predictions for the newest release "
        "of every line.",
        options.SELECT_VERSIONS,
    ),
    state_store: list[str] | None = option(
        None,
        "Keep state here; with several, each Spark runs once with each. Repeatable.",
        "hdfs|rocksdb",
        options.ENGINES,
    ),
    engines: engine_options.EngineOptions,
    for_: str = option("10m", "How long: 90, 30s, 10m, 1h30m.", "TIME", options.SPEED, "--time"),
    max_cases: int | None = option(None, "At most N cases.", "N", options.SPEED, min=1),
    speed: engine_options.Speed,
    verbose: options.Verbose = False,
    output: Path = output_option(campaign.OUTPUT, "Folder of the discrepancies.", "FOLDER"),
) -> None:
    """Generate cases and find where Sparks or the model disagree.

    Every discrepancy is shrunk and written to a folder as a case, with each answer and the commands to reproduce it. Differences
    between versions that a rule of the model explains are counted, but not reported as discrepancies.

    Exits with 0 without a discrepancy, else with 1; with 3 without one if answers are missing.
    """
    plan = campaign.plan_fuzzing(
        campaign.FuzzOptions(
            seconds=seconds(for_),
            spark=spark or (),
            model=model,
            state_stores=[one_of(get_args(StoreName), text, "--state-store") for text in state_store or ()],
            families=family or (),
            seed=seed,
            most_cases=max_cases,
            output=output,
            runtime=engine_options.runtime_options(engines),
            work=engines.work,
            concurrency=speed,
        )
    )
    errors = errors_console(plan.notes)
    with errors.status("generating the first cases") if errors.is_terminal else nullcontext() as status:
        outcome = campaign.run_fuzzing(plan, _Display(errors, status))
    print_answer(map(Text, _lines(outcome, plan.seed)), verbose=verbose)
    if outcome.interrupted:
        raise RunInterrupted(f"run it again with the same seed: {plan.command}")
    if outcome.tally.discrepancies:
        raise typer.Exit(1)
    outcome.raise_for_missing_answers()


def seconds(text: str) -> float:
    """How many seconds a length of time means, ``90``, ``30s``, ``10m`` or ``1h30m``; BadParameter if it means none."""
    parts = [*_DURATION.finditer(text.strip())]
    if not parts or "".join(part[0] for part in parts) != text.strip():
        raise typer.BadParameter(f"{text!r} is not a length of time; write 90, 30s, 10m or 1h30m", param_hint="--time")
    total = sum(float(part[1]) * _UNITS[part[2]] for part in parts)
    if not total:
        raise typer.BadParameter("the time must be more than zero", param_hint="--time")
    return total


class _Display(EngineLines, campaign.CampaignListener):
    """Progress on standard error: one changing line on a terminal, else a line every few seconds."""

    def __init__(self, errors: Console, status: Status | None) -> None:
        self._errors, self._status = errors, status
        self._began = self._last = time.monotonic()

    def started(self, seed: int, oracles: Sequence[str], by_the_model: bool) -> None:
        against = " against the model" if by_the_model else ""
        self._errors.print(f"seed {seed}; {' and '.join(oracles)}{against}")

    def written(self, file: Path) -> None:
        self._errors.print(f"found: {file}", markup=False, style="bold red")

    def went_on(self, tally: campaign.Tally) -> None:
        self._progress(self._line(tally))

    def shrinking(self, written: Mapping[str, Any], tally: campaign.Tally) -> None:
        self._progress(f"{self._line(tally)}; shrinking a discrepancy, now {counted(len(written['steps']), 'step')}")

    def says(self, line: str) -> None:
        self._progress(printable(line), always=True)

    def _line(self, tally: campaign.Tally) -> str:
        minutes = max(time.monotonic() - self._began, 1e-9) / 60
        return (
            f"{counted(tally.cases, 'case')}, {tally.cases / minutes:.0f} per minute; "
            f"{len(tally.rules)} of {len(catalogue())} rules reached; {counted(len(tally.discrepancies), 'discrepancy')}"
        )

    def _progress(self, line: str, *, always: bool = False) -> None:
        now = time.monotonic()
        if self._status is not None:
            self._status.update(Text(line))
        elif always or now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            print_error(line)


def _lines(outcome: campaign.FuzzOutcome, seed: int) -> Iterator[str]:
    tally, took = outcome.tally, outcome.seconds
    rate = tally.cases / max(took, 1e-9) * 60
    yield f"{counted(tally.cases, 'case')} in {took:.0f} s, {rate:.0f} per minute, seed {seed}"
    yield (counted(len(tally.discrepancies), "discrepancy") + (f", and {tally.again} similar" if tally.again else ""))
    for discrepancy in tally.discrepancies:
        explained = ", ".join(name for name, _ in discrepancy.difference.rules) or "no rule of the model"
        size = f"{counted(discrepancy.steps, 'step')}, {counted(discrepancy.rows, 'row')}"
        yield f"  {discrepancy.name}: {discrepancy.difference.what}, {size}; {explained}"
    if tally.known:
        yield f"known differences: {sum(tally.known.values())}"
        for rules_, times in tally.known.most_common():
            names = ", ".join(f"{name} ({source})" for name, source in rules_) or "several rules together"
            yield f"  {times:5}  {names}"
    others = {"cases the model does not predict": tally.not_predicted, "cases without an answer": tally.unanswered}
    for title, counts in others.items():
        if counts:
            yield f"{title}: {sum(counts.values())}"
            for what, times in counts.most_common():
                yield f"  {times:5}  {what}" + ("  ← a defect of the model" if what.startswith(DEFECT) else "")
    if tally.unsteady:
        yield f"differences that did not recur: {tally.unsteady}"
    rules = set(catalogue())
    missed = ", ".join(sorted(rules - tally.rules)) or "none"
    yield f"rules reached: {len(tally.rules & rules)} of {len(rules)}; not reached: {missed}"
