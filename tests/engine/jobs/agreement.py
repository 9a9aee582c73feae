"""Holds what ``conformance check`` says of a job against what plain PySpark does with it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tests.engine.jobs.catalogue import REPOSITORY, Job
from tests.engine.jobs.drawn import Drawn
from tests.engine.jobs.plain import ARRIVALS, Plain, Resumed

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
    """Ask the command about a function, in the repository of the job; it writes its case and results to ``folder``."""
    schemas = [option for stream, ddl in job.schemas.items() for option in ("--schema", f"{stream}={ddl}")]
    what = [f"shop.{job.function}", "--code", "src", "--output-mode", job.mode, *schemas]
    return _asked(what, [job], before, after, folder)


def check_program(jobs: Sequence[Drawn], before: str, after: str, folder: Path) -> tuple[list[Answer], int]:
    """Ask the command about a program whose queries they are; give the answer on each and the exit code."""
    described = [job.described for job in jobs]
    answer = _asked(["src/shop/drawn.py"], jobs, before, after, folder, ["--", *described])
    return answer["queries"] if len(jobs) > 1 else [answer], answer["exit_code"]


def _asked(
    what: Sequence[str], jobs: Sequence[Job], before: str, after: str, folder: Path, arguments: Sequence[str] = ()
) -> Answer:
    folder.mkdir(parents=True, exist_ok=True)
    options = []
    for job in jobs:
        for stream in job.streams:
            file = folder / f"{stream}.jsonl"
            file.write_text("".join(f"{line}\n" for line in job.lines(stream)))
            options += ["--sample", f"{stream}={file}"]
    options += [
        option for job in jobs for each in job.event_times.items() for option in ("--event-time", "=".join(each))
    ]
    options += [option for each in jobs[0].conf.items() for option in ("--conf", "=".join(each))]
    options += ["--from", before, "--to", after, "--batches", str(ARRIVALS)]
    options += ["--no-silent-streams", "--no-repeat-rows", "--json", "-o", str(folder / "check")]
    command = [str(Path(sys.executable).with_name("conformance")), "check", *what, *options, *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"{jobs[0].name}: exit code {done.returncode}, no answer: {done.stderr[-2000:]}")
    answer: Answer = {**json.loads(done.stdout), "exit_code": done.returncode}
    return answer


def rows_of(answer: Answer) -> str:
    """In the words of `Plain.rows`."""
    change = answer["change"]
    if change is None or change["meaning"] != "metric":
        return str(answer["rows"])
    return "less state" if answer["rows"] == "same" else "metrics"


def met_in(answer: Answer) -> set[str]:
    """In the words of `Resumed.met`."""
    found = answer["checkpoints"]
    return {"fails everywhere" if one["fails_anyway"] else one["outcome"] for one in found} - {"no answer"}


def met_by(resumed: Iterable[Resumed]) -> set[str]:
    return {each.met for each in resumed} - {"no answer"}


def disagreements(plain: Plain, answer: Answer) -> Iterator[str]:
    """Each way in which the verdict is not what plain PySpark does; where that differs from run to run, the columns are named that do."""
    if plain.rows == "unknown" and any(_NOT_FIXED in line for line in answer["notTried"]):
        return
    if rows_of(answer) != plain.rows:
        yield f"rows: {plain.rows}, check says {rows_of(answer)}"
    if bool(answer["columns"]) == plain.same_columns:
        yield f"columns: {'same' if plain.same_columns else 'other'}, check says {answer['columns'] or 'same'}"
    yield from _lost(plain, answer)
    if answer["answer"] != right_answer(plain):
        yield f"answer: {right_answer(plain)}, check says {answer['answer']}"
    if "exit_code" in answer:
        yield from wrong_exit_code([plain], answer["exit_code"])
    yield from _checkpoints(plain, answer)
    yield from _reasons(plain, answer)
    yield from _workarounds(plain, answer)


_NOT_FIXED = "not compared, since the sample does not fix it: "


def _lost(plain: Plain, answer: Answer) -> Iterator[str]:
    """Each version of which a row is lost is named with what dropped how many; the others are not."""
    said = {each["spark"]: each for each in answer["lost"]}
    versions = ((answer["from"], plain.lost[0]), (answer["to"], plain.lost[1]))
    for version, lost in versions:
        of_version = said.get(version, {"late": [], "without_event_time": None})
        late: Counter[str] = Counter()
        for operator, number in (_DROPPED.findall(each)[0] for each in of_version["late"]):
            late[operator] += int(number.replace(",", ""))
        dropped: Counter[str] = Counter()
        for name, number in lost.late.items():
            dropped[_KINDS.get(name, name)] += number
        if late != dropped:
            yield f"late on {version}: {dict(dropped)}, check says {dict(late)}"
        if bool(lost.untimed) != bool(of_version["without_event_time"]):
            yield f"without event time on {version}: {lost.untimed}, check says {of_version['without_event_time']}"
        if of_version.get("out", lost.out) != lost.out:
            yield f"out on {version}: {lost.out}, check says {of_version['out']}"


_DROPPED = re.compile(r"the (?:(?:first|second|third|operator) )?(.+) dropped ([\d,]+) late ")
_KINDS = {
    "stateStoreSave": "aggregation",
    "sessionWindowStateStoreSaveExec": "session windows",
    "symmetricHashJoin": "join",
    "dedupe": "deduplication",
    "dedupeWithinWatermark": "deduplication",
}
"""Operator, as Spark's progress names it → what ``check`` calls it."""


def wrong_exit_code(queries: Iterable[Plain], code: int) -> Iterator[str]:
    """The code is that of a query, and 0 only if it is that of all."""
    right = {EXIT_CODES.get(right_answer(plain), 1) for plain in queries}
    if code not in (right - {0} or {0}):
        yield f"exit code: {_listed(map(str, right))}, check gives {code}"


EXIT_CODES = {"same": 0, "fails": 2, "unknown": 3}
"""Of an answer; 1 of all others."""


def right_answer(plain: Plain) -> str:
    """What ``answer`` of the JSON document should be."""
    if plain.rows == "unknown" and "refused" in met_by(plain.checkpoints):
        return "refused"
    if plain.rows in ("fails", "unknown"):
        return plain.rows
    if plain.rows not in ("same", "less state") or not plain.same_columns:
        return "differs"
    if not met_by(plain.checkpoints) <= {"resumed"}:
        return "refused"
    return "lost" if any(each.late or each.untimed for each in plain.lost) else "same"


def _checkpoints(plain: Plain, answer: Answer) -> Iterator[str]:
    met, said = met_by(plain.checkpoints), met_in(answer)
    errors = {name for each in plain.checkpoints for name in each.errors}
    if plain.errors[0] != plain.errors[1]:
        # The error of a row comes after a checkpoint or before it; which, depends on how the sample is divided.
        errors.update(plain.errors)
        met, said = met - {"resumed"}, said - {"resumed"}
    if not met:
        # No row came after any, where ``check`` sends one much later, if there is a time for it.
        said = said - {"resumed"}
    if not said and answer["checkpoints"]:
        met = met - {"resumed"}
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
