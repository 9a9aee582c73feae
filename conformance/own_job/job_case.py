"""The case of a job: its function, and what arrives from its samples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, get_args

from conformance.core.case import Case, OutputMode
from conformance.core.errors import WrongUsage
from conformance.core.observation import Observation
from conformance.core.output_file import FileKind, any_content, write_file
from conformance.language.printing import printed
from conformance.own_job.micro_batches import Arrival, arrivals
from conformance.own_job.sample import Sample
from conformance.query.plan import PHYSICAL_PLAN
from conformance.suite import discovery
from conformance.suite.record_expectations import fill_in_expectations

Json: TypeAlias = Any

FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
MODES: tuple[str, ...] = get_args(OutputMode)
_CASE_FILE = FileKind("a case", any_content)


class NotAFunction(WrongUsage):
    """The text does not name a function."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a function: write module:function, such as acme_jobs.totals:build")
        self.text = text


@dataclass(frozen=True)
class Job:
    """A query of one's own."""

    function: str
    """``module:function``; it takes the session and a DataFrame for each sample, in order."""
    output_mode: str = "append"
    conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if FUNCTION.fullmatch(self.function) is None:
            raise NotAFunction(self.function)

    @property
    def name(self) -> str:
        """``acme_jobs.totals.build``; safe as a file name."""
        return self.function.replace(":", ".")


def write_job(job: Job, samples: Sequence[Sample], folder: Path, *, batches: int = 4) -> Case:
    """Write the case that tries a job with these samples, without expectations.

    Args:
        folder: where its file is written, named after the function.
        batches: micro-batches of the sample, at least 2.

    Raises:
        CannotWriteFile: see `conformance.core.output_file`.
        InvalidCase: a sample has values that no case may have.
    """
    file = folder / f"{job.name}.yaml"
    write_file(file, printed(_written(job, samples, arrivals(samples, batches))), _CASE_FILE)
    return _read(file)


def write_resumption(job: Job, samples: Sequence[Sample], folder: Path) -> Case:
    """Write the case of a query that resumes a checkpoint: a micro-batch without rows reads its state, then the samples arrive.

    Args:
        samples: of each stream, in the order of the sources; a sample without rows is a silent stream.

    Raises:
        CannotWriteFile, InvalidCase: as ``write_job``.
    """
    file = folder / f"{job.name}.yaml"
    rows = {sample.stream: sample.rows for sample in samples if sample.rows}
    # Without a micro-batch the query would start and never look at its state.
    nothing: dict[str, Json] = {sample.stream: [] for sample in samples}
    arriving = [{"name": "the sample arrives", "add": {stream: [*map(list, some)] for stream, some in rows.items()}}]
    written = {
        **_about(job, samples),
        "steps": [{"name": "it reads its state", "add": nothing}, *(arriving if rows else [])],
    }
    write_file(file, printed(written), _CASE_FILE)
    return _read(file)


def with_expectations(case: Case, folder: Path, observation: Observation) -> Case:
    """The same case, in the same file, expecting what was observed.

    Raises:
        WrongUsage: see `fill_in_expectations`.
    """
    file = folder / f"{case.id.rpartition('/')[2]}.yaml"
    write_file(
        file, fill_in_expectations(file.read_text(encoding="utf-8"), case, observation, replace=True), _CASE_FILE
    )
    return _read(file)


def _written(job: Job, samples: Sequence[Sample], arriving: Sequence[Arrival]) -> dict[str, Json]:
    return {**_about(job, samples), "steps": [_step(number, arrival) for number, arrival in enumerate(arriving)]}


def _about(job: Job, samples: Sequence[Sample]) -> dict[str, Json]:
    """Everything but the steps."""
    streams = {sample.stream: sample.schema.ddl for sample in samples}
    conf = {"conf": dict(job.conf)} if job.conf else {}
    return {
        "title": f"{job.function} gives the same rows",
        "strength": "observed",
        "streams": streams,
        "query": [{"call": job.function, "with": list(streams)}],
        "outputMode": job.output_mode,
        **conf,
    }


def _step(number: int, arrival: Arrival) -> dict[str, Json]:
    if not arrival.rows:
        return {"name": arrival.name, "restart": "graceful"}
    rows = {stream: [list(row) for row in rows] for stream, rows in arrival.rows.items()}
    # The engine tells the plan of a step that expects something of it.
    plan = {} if number else {"expect": {"plan": [PHYSICAL_PLAN]}}
    return {"name": arrival.name, "add": rows, **plan}


def _read(file: Path) -> Case:
    loaded = discovery.load([file])
    loaded.raise_for_problems()
    (case,) = loaded.cases
    return case
