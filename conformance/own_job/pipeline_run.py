"""A declarative pipeline run by Spark's own runner: each flow has the rows that it has as a query, or others, or the runner refuses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from conformance.core.data import Json
from conformance.judging.verdict import Status
from conformance.language.streams import KAFKA
from conformance.own_job.job_case import Flow, OwnQuery
from conformance.own_job.many_rows import lines_of
from conformance.own_job.sample import Sample
from conformance.own_job.sample_arrivals import arrivals, too_many_for_a_case
from conformance.own_job.sql_file import for_the_runner, is_sql_file
from conformance.own_job.trial import QueryAnswer
from conformance.own_job.verdict import JobVerdict
from conformance.runner.resources import EngineUse, working_folder
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes.own_code import OwnCode
from harness.runtimes.pipelines import PipelineRequest, PipelineSeen, run_pipeline
from harness.targets.targets import Target
from reports.results.status import MARKS, Statement

_LONGEST = 300
"""Characters of a refusal that are shown."""
QueryWithSamples: TypeAlias = tuple[OwnQuery, Sequence[Sample]]


def run(
    files: Sequence[Path],
    database: str,
    queries: Sequence[QueryWithSamples],
    batches: int,
    targets: Sequence[Target],
    use: EngineUse,
    on_progress: ProgressCallback,
) -> list[PipelineSeen]:
    """Run a pipeline by the runner of each version that has it: once for each micro-batch of its samples, as its flows ran as queries."""
    request = _request(files, database, queries, batches, use)

    def seen(target: Target) -> PipelineSeen:
        if isinstance(request, str) or not target.pipelines:
            return PipelineSeen(lacking=request if isinstance(request, str) else "its pyspark has no such runner")
        try:
            with working_folder(use.work) as root:
                return run_pipeline(target, request, root, use.runtime, 4 * use.concurrency.step_timeout, on_progress)
        except HarnessError as error:
            return PipelineSeen(lacking=str(error))

    return [*map(seen, targets)]


def _request(
    files: Sequence[Path], database: str, queries: Sequence[QueryWithSamples], batches: int, use: EngineUse
) -> PipelineRequest | str:
    """What to ask of the runner; or why it cannot be tried."""
    flows = [(query.flow, samples) for query, samples in queries if query.flow is not None]
    if not files or any(file.suffix not in (".py", ".sql") for file in files):
        return "it takes files ending in .py or .sql, and no notebook"
    if use.runtime.elsewhere or use.runtime.jars or use.runtime.packages:
        return "only with engines of this machine in local mode, without --jar and --package"
    if any(source.format == KAFKA for flow, _ in flows for source in flow.sources):
        return "its topics are not there"
    if too_many_for_a_case(sample for _, own in flows for sample in own):
        return "its samples have too many rows"
    targets = {flow.name: flow.target for flow, _ in flows}
    sources, tables, schemas = list[dict[str, Json]](), dict[str, str](), dict[str, str]()
    arriving, sampled = dict[str, list[str]](), dict[str, str]()
    for flow, samples in flows:
        for source in flow.sources:
            sources += [source.model_dump(include={"name", "format", "options"})]
            tables |= {source.name: source.options["path"]} if source.format == "table" else {}
        sending = [sample for sample in samples if sample.rows]
        parts = [each.rows for each in arrivals(sending, batches) if each.rows]
        for sample in sending:
            table = tables.get(sample.stream, "" if flow.sources else sample.stream)
            table, stream = table.replace("`", "").rpartition(".")[2], sample.stream
            if table in targets.values():
                stream = sampled[table] = f"{table}_of_its_flows"
            lines = [b"".join(lines_of(rows.get(sample.stream, ()), sample.schema)).decode() for rows in parts]
            if arriving.setdefault(stream, lines) != lines:
                return f"flows get the rows of {sample.stream} in other micro-batches than each other"
            schemas[stream] = sample.schema.ddl
    texts = (for_the_runner(file, sampled) if is_sql_file(file.name) else file.read_text() for file in files)
    return PipelineRequest(
        definitions={f"{at}/{file.name}": text for at, (file, text) in enumerate(zip(files, texts, strict=True))},
        folders=[str(folder) for folder in (use.runtime.own_code or OwnCode(())).folders],
        database=database,
        conf=use.runtime.conf,
        schemas=schemas,
        sources=[source for at, source in enumerate(sources) if source not in sources[:at]],
        created=[
            stream for stream in schemas if stream not in {*tables, *sampled.values(), *(s["name"] for s in sources)}
        ],
        sampled=sampled,
        flows=targets,
        arrivals=[
            {stream: lines[at] for stream, lines in arriving.items() if lines[at : at + 1] not in ([], [""])}
            for at in range(max(map(len, arriving.values())))
        ],
    )


def beside(answers: Sequence[QueryAnswer], ran: Sequence[PipelineSeen]) -> Iterator[QueryAnswer]:
    """Yield the answers about the flows as queries, each with what the runner of each version did."""
    for answer in answers:
        if (flow := answer.query.flow) is not None:
            into = [each for each in answers if each.query.flow is not None and each.query.flow.target == flow.target]
            yield replace(answer, by_runner=tuple(_statements(flow, ran, [each.verdict for each in into])))
        else:
            yield answer


def _statements(flow: Flow, ran: Sequence[PipelineSeen], into: Sequence[JobVerdict]) -> Iterator[Statement]:
    """Say what the runners did with a flow; ``into``: the verdicts on all flows into its table as queries."""
    left_out = {name for verdict in into for name in verdict.left_out}
    tables = [seen.tables.get(flow.target) for seen in ran]
    filled = [_rows(table.columns, table.rows, left_out) if table is not None else None for table in tables]
    for side, (seen, rows) in enumerate(zip(ran, filled, strict=True)):
        observed = [verdict.wholes[side].observation for verdict in into]
        as_query, ended = Counter[str](), all(each is not None and each.complete for each in observed)
        for each in filter(None, observed):
            emitted = [row for batch in each.batches for row in batch.rows]
            as_query += _rows([column.name for column in each.columns], emitted, left_out)
        kind: Status = "conforms" if rows == as_query and ended else "unsupported"
        details: tuple[str, ...] = ()
        if seen.lacking is not None:
            what = f"not tried: {seen.lacking}"
        elif rows is None:
            said = " ".join((seen.error or "").split())
            kind = "violates" if side == 1 and filled[0] is not None else kind
            what = f"refused {said[:_LONGEST]}{'…' * (len(said) > _LONGEST)}"
        elif not ended:
            what = f"{rows.total()} rows; not compared, since as a query it does not get to its end"
        elif rows == as_query:
            what = f"same rows as a query has, {rows.total()}{f', all flows into {flow.target}' * (len(into) > 1)}"
        else:
            kind = "violates" if side == 1 and filled[0] != rows else "bug"
            other = (rows - as_query, "only the runner"), (as_query - rows, "only a query")
            details = tuple(f"{who}: {row}" for more, who in other for row in sorted(more)[:1])
            what = f"other rows than a query has, {rows.total()} in place of {as_query.total()}"
        name = f"the flow {flow.name} by Spark's runner of pipelines on {(into[0].before, into[0].after)[side].title}"
        yield Statement(kind, MARKS[kind].glyph, f"{name}: {what}", details)


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Json]], left_out: Collection[str]) -> Counter[str]:
    """Count rows by their JSON, without null, and with the elements of arrays in any order; ``left_out``: columns that no rows fix."""
    named = ({name: _sorted(row[at]) for at, name in enumerate(columns) if name not in left_out} for row in rows)
    return Counter(json.dumps({k: v for k, v in row.items() if v is not None}, sort_keys=True) for row in named)


def _sorted(value: Json) -> Json:
    return sorted(map(_sorted, value), key=json.dumps) if isinstance(value, list | tuple) else value
