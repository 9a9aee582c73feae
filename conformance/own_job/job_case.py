"""Writes the cases that try one's own job: with its samples as they arrive, with silent streams, with options of its sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.core.case import Case, Expectation, Restart, RunSource
from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.observation import Observation
from conformance.core.output_file import FileKind, any_content, write_file
from conformance.core.wording import counted, unknown
from conformance.language.printing import printed
from conformance.language.source import MAX_BYTES
from conformance.language.streams import FILES, KAFKA
from conformance.own_job.many_rows import lines_of
from conformance.own_job.sample import Sample
from conformance.own_job.sample_arrivals import (
    ENDS_COME_AGAIN,
    FAR_AHEAD_COMES,
    SampleArrival,
    arrivals,
    too_many_for_a_case,
)
from conformance.query.reading import PHYSICAL_PLAN
from conformance.suite import discovery
from conformance.suite.record_expectations import fill_in_expectations
from conformance.variants.catalogue import from_kafka
from harness.engine.protocol import SourceSeen
from reports.results.status import Statement

BATCHES = 3
"""Micro-batches that a sample is divided into: two before the restart, so that the checkpoint has state that was evicted from."""
SILENT = "-silent"
"""What the name of a case ends with whose streams are silent in turn."""
OTHER_PARTITIONS = "-partitions"
"""What the name of a case ends with whose session gets another number of shuffle partitions at the restart."""
OPTIONS = "-options-of-"
"""What the name of a case contains in which options of the sources act; the source of these follows."""
UNFIT = "-unfit"
"""What the name of a case ends with in which rows come that do not parse, divide or fit."""
WAITING_FILES = 12
"""Into how many files a sample is divided that wait when a query starts."""
WAITING_COMMITS = 4
"""The same of a table, in commits; two more come while it runs."""
CHANGES = ("skipChangeCommits", "ignoreChanges", "readChangeFeed")
"""The options of Delta that say what to do with a commit that changes rows."""
FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class ActingOptions:
    """Options of the sources of a query that act where its streams have this source."""

    source: RunSource
    streams: Mapping[str, Mapping[str, Json]]
    """What each of the streams has beside its schema in a case."""
    shown: str
    """``latestFirst=true, maxFilesPerTrigger=1 of orders``"""


@dataclass(frozen=True)
class OwnQuery:
    """A query of one's own, as a case writes it."""

    title: str
    called: Json
    """What `call` says."""
    stem: str
    """The name of its case's file, without the suffix."""
    output_mode: str = "append"
    trigger: str = "default"
    only: tuple[str, ...] = ()
    """The streams that it reads, of those that its job gets; empty if it reads all."""
    statements: tuple[Statement, ...] = ()
    """What of it is not tried, for its verdict."""
    changes: tuple[str, ...] = ()
    """What its program asks for otherwise on the later version."""
    options: tuple[ActingOptions, ...] = ()
    """Options of its sources that can act in a trial of their own."""
    sink: str = ""
    """What its program writes to: ``parquet``, ``kafka``; empty if that is not known."""
    flow: Flow | None = None
    """The flow of a declarative pipeline that it is."""


@dataclass(frozen=True)
class Flow:
    """A flow of a declarative pipeline, as Spark's runner of pipelines knows it."""

    name: str
    target: str
    sources: tuple[SourceSeen, ...] = ()
    """All sources of its program, in order."""


def of_flow(name: str, batch: str = "") -> tuple[Statement, ...]:
    """What is not tried of a flow as a query; ``batch``: the tables of its pipeline that no stream fills."""
    what = f"the flow {name} ran as a query in append mode with availableNow, as Spark's runner of pipelines starts it"
    left = "its table and expectations are not tried, but those that drop rows do, as a filter does"
    tried = Statement("unsupported", "–", f"{what}: {left}")
    others = Statement("unsupported", "–", f"not tried, since no streaming query of Spark fills it: {batch}")
    return (tried, *([others] if batch else []))


def own_function(text: str, output_mode: str = "append") -> OwnQuery:
    """The query of ``module:function``, of the session and a DataFrame for each sample; WrongUsage for other texts."""
    if FUNCTION.fullmatch(text) is None:
        how = "write module:function or file:function, such as jobs/totals.py:build"
        raise WrongUsage(f"{text!r} is not a function: {how}")
    return OwnQuery(text, text, text.replace(":", "."), output_mode)


def check_function(function: str, streams: Sequence[str], folders: Iterable[Path]) -> tuple[str, ...]:
    """Refuse (WrongUsage) a function that cannot be called with these streams in order; returns those with other names than parameters.

    Reads the text of the module and runs nothing; what the text does not show, such as a module elsewhere, is left to Python.
    """
    module, _, name = function.partition(":")
    places = [folder.joinpath(*module.split(".")) for folder in folders]
    files = [at for place in places for at in (place.with_suffix(".py"), place / "__init__.py") if at.is_file()]
    try:
        text = files[0].read_text(encoding="utf-8-sig") if files else ""
        defined = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    except (SyntaxError, ValueError):
        return ()
    if name not in defined:
        if (
            text
            and re.search(rf"\b{name}\b|__getattr__|__dict__|import \*|globals|locals|vars|setattr|exec|eval", text)
            is None
        ):
            raise WrongUsage(f"{files[0]}: {unknown('function', name, defined)}")
        return ()
    given = defined[name].args
    parameters = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    at, listed = f"{files[0]}:{defined[name].lineno}: {name}({', '.join(parameters)})", ", ".join(streams)
    if given.vararg is None and not len(parameters) - len(given.defaults) <= len(streams) + 1 <= len(parameters):
        takes = counted(max(len(parameters) - 1, 0), "DataFrame")
        raise WrongUsage(f"{at} takes the session and {takes}; {counted(len(streams), 'stream')} given: {listed}")
    named = parameters[1 : len(streams) + 1]
    if sorted(named) == sorted(streams) and named != [*streams]:
        why = f"the streams are given in another order, {listed}, and each goes to the parameter in its place"
        raise WrongUsage(f"{at}: {why}")
    pairs = zip(streams, named, strict=False)
    return tuple(f"{stream} is the parameter {other}" for stream, other in pairs if stream != other)


def write_job(
    job: OwnQuery,
    samples: Sequence[Sample],
    folder: Path,
    *,
    batches: int = BATCHES,
    silent: bool = False,
    again: bool = False,
    partitions: bool = False,
    unfit: bool = False,
    closing: int = 1,
) -> Case:
    """Write the case that tries a job with these samples, without expectations.

    If the rows are too many for a case, it has the first of each micro-batch; the others are in `rows_in_files`.

    Args:
        samples: of all its streams; one without rows sends nothing.
        batches, silent, again, unfit, closing: see `arrivals`.
        partitions: whether the session has another number of shuffle partitions after the restart.

    Raises:
        CannotWriteFile: see `conformance.core.output_file`.
        InvalidCase: a sample has values that no case may have.
    """
    sending = [sample for sample in samples if sample.rows]
    few = not too_many_for_a_case(sending)
    arriving = arrivals(sending, batches, silent=silent, again=again, unfit=unfit and few, closing=closing)
    two: dict[str, Json]
    three: dict[str, Json]
    two, three = ({"spark.sql.shuffle.partitions": number} if partitions else {} for number in (2, 3))
    steps = (_step(arrival, all_rows=few, conf=three) for arrival in arriving)
    ending = OTHER_PARTITIONS if partitions else UNFIT if unfit else SILENT if silent else ""
    return _write(job, samples, steps, folder, ending, conf=two)


def rows_in_files(
    samples: Sequence[Sample],
    folder: Path,
    *,
    batches: int,
    silent: bool = False,
    again: bool = False,
    closing: int = 1,
) -> dict[int, dict[str, str]]:
    """Write the rows of `write_job` that are too many for a case; returns number of a step → stream → file with them."""
    files: dict[int, dict[str, str]] = {}
    sending = {sample.stream: sample for sample in samples if sample.rows}
    if not too_many_for_a_case(sending.values()):
        return files
    arriving = arrivals([*sending.values()], batches, silent=silent, again=again, closing=closing)
    for number, arrival in enumerate(arriving, 1):
        for stream, rows in arrival.rows.items():
            path = folder / f"{stream}-{number}{SILENT if silent else ''}.jsonl"
            with path.open("wb") as file:
                file.writelines(lines_of(rows, sending[stream].schema))
            files.setdefault(number, {})[stream] = str(path)
    return files


def write_options(job: OwnQuery, samples: Sequence[Sample], folder: Path, acting: ActingOptions) -> Case:
    """Write the case in which options of the sources act; see `write_job` for errors.

    Files wait when the query starts. Of topics and tables, some is there when the query starts, and the rest comes while it runs.
    Where options are about commits that change rows, all rows of the tables are written again before the restart.
    """
    sending = [sample for sample in samples if sample.rows]
    wait, later = {FILES: (WAITING_FILES, 0), KAFKA: (0, 2)}.get(acting.source, (WAITING_COMMITS, 2))
    arriving = [*arrivals(sending, wait + later)]
    own = [{stream: [*map(list, rows)] for stream, rows in each.rows.items()} for each in arriving if each.rows]
    ahead = [own.pop()] if arriving[-1].name == FAR_AHEAD_COMES else []
    waiting = [{"name": f"{len(own[:wait])} files or commits wait", "backlog": own[:wait]}] if wait else []
    changes = any(key in CHANGES for keys in acting.streams.values() for key in keys)
    restart: Json = {"how": "graceful", "rewritten": True} if changes else "graceful"
    rest = [*({"add": each} for each in own[wait:]), {"restart": restart}]
    steps = [*waiting, *rest, *({"name": FAR_AHEAD_COMES, "add": each} for each in ahead)]
    return _write(job, samples, steps, folder, f"{OPTIONS}{acting.source}", declared=acting.streams)


def write_sample(
    job: OwnQuery, samples: Sequence[Sample], folder: Path, *, batches: int, every_us: int | None = None
) -> Case:
    """Write the case in which nothing but the rows of the samples arrives; see `arrivals`, and `write_job` for errors."""
    sending = [sample for sample in samples if sample.rows]
    arriving = [
        arrival
        for arrival in arrivals(sending, batches, every_us=every_us)
        if arrival.rows and arrival.name != FAR_AHEAD_COMES
    ]
    return _write(job, samples, (_step(arrival, all_rows=True, conf={}) for arrival in arriving), folder)


def write_resumption(job: OwnQuery, samples: Sequence[Sample], folder: Path) -> Case:
    """Write the case of a query that resumes a checkpoint: a micro-batch without rows reads its state, then the samples arrive.

    The samples stand in the order of the sources; one without rows is a silent stream. See `write_job` for errors.
    """
    # Without a micro-batch the query would start and never look at its state.
    read = job.only or [sample.stream for sample in samples]
    steps: list[Json] = [{"name": "it reads its state", "add": {stream: [] for stream in read}}]
    if rows := {sample.stream: [*map(list, sample.rows)] for sample in samples if sample.rows}:
        steps.append({"name": "the sample arrives", "add": rows})
    return _write(job, samples, steps, folder)


def with_expectations(case: Case, folder: Path, observation: Observation) -> Case:
    """The same case, in the same file, expecting what was observed; see `fill_in_expectations` for errors."""
    file = folder / case.path.name
    text = fill_in_expectations(file.read_text(encoding="utf-8"), case, observation, replace=True)
    # That its rows come from topics is not in the file.
    return _written(file, text).model_copy(update={"id": case.id, "topics": case.topics})


def _write(
    job: OwnQuery,
    samples: Sequence[Sample],
    steps: Iterable[Json],
    folder: Path,
    ending: str = "",
    conf: dict[str, Json] | None = None,
    declared: Mapping[str, Mapping[str, Json]] | None = None,
) -> Case:
    """Write a case; ``declared``: what streams have beside a schema."""
    streams: dict[str, Json] = {sample.stream: sample.schema.ddl for sample in samples}
    streams |= {name: {"schema": streams[name], **own} for name, own in (declared or {}).items()}
    written = {
        "title": f"{job.title} gives the same rows",
        "strength": "observed",
        "streams": streams,
        "query": [{"call": job.called, "with": list(streams)}],
        "outputMode": job.output_mode,
        **({"trigger": job.trigger} if job.trigger != "default" else {}),
        **({"conf": conf} if conf else {}),
        "steps": [*steps],
    }
    text = printed(written)
    if len(text.encode()) > MAX_BYTES:
        take = "take fewer with --rows, or shorter ones"
        raise WrongUsage(f"these rows make a case of more than {MAX_BYTES:,} bytes: {take}")
    return _written(folder / f"{job.stem}{ending}.yaml", text)


def _step(arrival: SampleArrival, *, all_rows: bool, conf: dict[str, Json]) -> dict[str, Json]:
    """Write a step; ``conf``: what a restart changes."""
    if not arrival.rows:
        restart: Json = {"how": "graceful", "change": {"conf": conf}} if conf else "graceful"
        return {"name": arrival.name, "restart": restart}
    rows = {stream: [list(row) for row in rows[: None if all_rows else 1]] for stream, rows in arrival.rows.items()}
    return {"name": arrival.name, "add": rows}


def _written(file: Path, text: str) -> Case:
    write_file(file, text, FileKind("a case", any_content))
    loaded = discovery.valid([file])
    (case,) = loaded.cases
    return case


def telling_plan(case: Case) -> Case:
    """The same case, whose engine tells the plan of the first step, since that expects something of it."""
    first = case.steps[0].model_copy(update={"expect": Expectation(plan=(PHYSICAL_PLAN,))})
    return case.model_copy(update={"steps": (first, *case.steps[1:])})


def is_silent(case: Case) -> bool:
    """Whether `write_job` wrote the case with ``silent``."""
    return SILENT in case.id


def through_topics(case: Case) -> Iterator[Case]:
    """The same case with rows from topics, if it can have them, with an id of its own, since runs keep answers by the id of their case."""
    return (variant.case.model_copy(update={"id": f"{case.id}-topics"}) for variant in from_kafka(case))


def first_handoffs(case: Case) -> tuple[int, ...]:
    """The steps before which a checkpoint is handed over in any case, in the order in which they are worth most."""
    restarts = [step.number for step in case.steps if isinstance(step.action, Restart)]
    if is_silent(case):
        # Before a stream is silent, and once one has been.
        return tuple(number for restart in restarts for number in (restart, restart + 2))
    late = [step.number for step in case.steps if step.name in (FAR_AHEAD_COMES, ENDS_COME_AGAIN)]
    return tuple(number for number in (*restarts, *late) if number > 1)
