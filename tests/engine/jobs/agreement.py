"""Holds what ``conformance check`` says of a job against what plain PySpark does with it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tests.engine.jobs.catalogue import REPOSITORY, Job, sample
from tests.engine.jobs.plain import Plain, Resumed

Answer: TypeAlias = Mapping[str, Any]
"""What ``conformance check --json`` prints."""
OPERATORS = {
    # That of session windows has no name of its own.
    "the aggregation": {"stateStoreSave", "sessionWindowStateStoreSaveExec", "defaultName"},
    "the join": {"symmetricHashJoin"},
    "the deduplication": {"dedupe", "dedupeWithinWatermark"},
    "the state function": {"applyInPandasWithState", "flatMapGroupsWithState"},
}
"""Whose state a reason is about → the operators that Spark's progress names."""


def check(job: Job, before: str, after: str, folder: Path) -> Answer:
    """Ask the command, in the repository of the job; it writes its case and results to ``folder``."""
    streams = [
        option
        for stream, ddl in job.schemas.items()
        for option in ("--sample", f"{stream}={sample(stream)}", "--schema", f"{stream}={ddl}")
    ]
    settings = [option for key, value in job.conf.items() for option in ("--conf", f"{key}={value}")]
    command = [str(Path(sys.executable).with_name("conformance")), "check", f"shop.{job.function}", "--code", "src"]
    versions = ["--from", before, "--to", after, "--output-mode", job.mode]
    rest = ["--no-silent-streams", "--json", "-o", str(folder)]
    done = subprocess.run(
        [*command, *versions, *streams, *settings, *rest], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if not done.stdout:
        raise RuntimeError(f"{job.name}: exit code {done.returncode}, no answer: {done.stderr[-2000:]}")
    answer: Answer = {**json.loads(done.stdout), "exit_code": done.returncode}
    return answer


def rows_of(answer: Answer) -> str:
    """In the words of `Plain.rows`."""
    change = answer["change"]
    return "metrics" if change is not None and change["meaning"] == "metric" else str(answer["rows"])


def met_in(answer: Answer) -> set[str]:
    """In the words of `Resumed.met`."""
    found = answer["checkpoints"]
    return {"fails everywhere" if one["fails_anyway"] else one["outcome"] for one in found} - {"no answer"}


def met_by(resumed: Iterable[Resumed]) -> set[str]:
    return {each.met for each in resumed} - {"no answer"}


def disagreements(plain: Plain, answer: Answer) -> Iterator[str]:
    """Each way in which the verdict is not what plain PySpark does."""
    if rows_of(answer) != plain.rows:
        yield f"rows: {plain.rows}, check says {rows_of(answer)}"
    if bool(answer["columns"]) == plain.same_columns:
        yield f"columns: {'same' if plain.same_columns else 'other'}, check says {answer['columns'] or 'same'}"
    yield from _checkpoints(plain, answer)
    yield from _reasons(plain, answer)
    yield from _workarounds(plain, answer)


def _checkpoints(plain: Plain, answer: Answer) -> Iterator[str]:
    met, said = met_by(plain.checkpoints), met_in(answer)
    errors = {name for each in plain.checkpoints for name in each.errors}
    if plain.errors[0] != plain.errors[1]:
        # The error of a row comes after a checkpoint or before it; which, depends on how the sample is divided.
        errors.update(plain.errors)
        met, said = met - {"resumed"}, said - {"resumed"}
    if "unclear" in said:
        # Plain PySpark does not tell whether an error says what is wrong.
        said = said - {"unclear"} | met & {"refused", "fails later"}
    if met != said:
        yield f"checkpoints: {_listed(met)}, check says {_listed(said)}"
    for checkpoint in answer["checkpoints"]:
        if checkpoint["error"] is not None and checkpoint["error"] not in errors:
            yield f"error: {_listed(errors)}, check says {checkpoint['error']}"


def _reasons(plain: Plain, answer: Answer) -> Iterator[str]:
    """A reason names an operator that the job has."""
    for checkpoint in answer["checkpoints"]:
        for reason in checkpoint["because"]:
            about = re.match("state of (.*), (?:column|its) ", reason)
            if about is not None and not OPERATORS[about[1]] & plain.operators:
                yield f"reason: the state of {_listed(plain.operators)}, check says {about[1]}"


def _workarounds(plain: Plain, answer: Answer) -> Iterator[str]:
    """What is named must be right; what is not may have been right by chance, where no later row shows that it is not."""
    for checkpoint in answer["checkpoints"]:
        for tried in checkpoint["tried"]:
            setting, outcomes = tried["setting"], set(tried["outcomes"])
            if setting not in plain.workarounds:
                yield f"{setting}: not tried, check says {_listed(outcomes)}"
            elif met_by(plain.workarounds[setting]) == {"resumed"} != outcomes:
                yield f"{setting}: resumed, check says {_listed(outcomes)}"
        named = checkpoint["workaround"]
        if named is not None and met_by(plain.workarounds.get(named, ())) != {"resumed"}:
            yield f"workaround {named}: {_listed(met_by(plain.workarounds.get(named, ())))}, check recommends it"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(set(words))) or "nothing"
