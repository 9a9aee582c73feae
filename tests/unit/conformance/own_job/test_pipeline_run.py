"""What Spark's own runner of pipelines is asked, and what is said of its answer beside that of a flow as a query."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.own_job import pipeline_run
from conformance.own_job.job_case import Flow, OwnQuery, own_function
from conformance.own_job.sample import Sample
from conformance.own_job.trial import QueryAnswer, Trial
from conformance.runner.resources import EngineUse
from harness.engine.protocol import SourceSeen
from harness.errors import HarnessError
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.pipelines import Filled, PipelineRequest, PipelineSeen
from harness.scheduling.kept_engines import KeptEngines
from harness.targets.targets import Targets
from tests.support.miniature.two_versions import NEW, OLD, TwoVersions
from tests.unit.conformance.own_job.test_job_run import sample_in
from tests.unit.conformance.own_job.test_trial import Listener

RAW = SourceSeen(name="events", format="json", ddl=None, options={"path": "/in"}, at="flows.py:1")
OF_TABLE = SourceSeen(name="events_2", format="table", ddl=None, options={"path": "lake.`raw`"})


def asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    queries: Sequence[tuple[OwnQuery, Sequence[Sample]]],
    file: str = "flows.py",
    options: RuntimeOptions | None = None,
    seen: PipelineSeen | HarnessError | None = None,
) -> tuple[list[PipelineRequest], list[PipelineSeen]]:
    """Ask 3.5 and 4.3, and return what each runner was asked and what came out."""
    requests: list[PipelineRequest] = []

    def run(target, request, *_):
        assert str(target.version).startswith("4.3")
        requests.append(request)
        if isinstance(seen, HarnessError):
            raise seen
        return seen or PipelineSeen()

    monkeypatch.setattr(pipeline_run, "run_pipeline", run)
    path = tmp_path / file
    path.write_text("CREATE STREAMING TABLE big AS SELECT * FROM STREAM raw" if file.endswith(".sql") else "import dlt")
    targets = [Targets.load().choose([line]).targets[0] for line in ("3.5", "4.3")]
    use = EngineUse(runtime=options or RuntimeOptions())
    return requests, pipeline_run.run([path], "lake", queries, 2, targets, use, print)


def flow(name: str, target: str, *sources: SourceSeen) -> OwnQuery:
    return replace(own_function("jobs:build"), flow=Flow(name, target, sources))


def test_the_runner_gets_the_rows_of_each_micro_batch_and_the_tables_of_the_pipeline_have_those_of_their_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = sample_in(tmp_path)
    first, second = flow("fills", "raw", RAW, OF_TABLE), flow("sums", "sums", RAW, OF_TABLE)
    again = replace(orders, stream="events_2")
    (request,), (old, _) = asked(tmp_path, monkeypatch, [(first, [orders]), (second, [again])])
    assert old.lacking == "its pyspark has no such runner"
    assert [source["name"] for source in request.sources] == ["events", "events_2"]
    assert (request.sampled, request.created) == ({"raw": "raw_of_its_flows"}, [])
    assert request.flows == {"fills": "raw", "sums": "sums"}
    assert request.schemas == dict.fromkeys(("events", "raw_of_its_flows"), orders.schema.ddl)
    rows = [[json.loads(line) for line in each["events"].splitlines()] for each in request.arrivals]
    assert sum(map(len, rows[:2])) == len(orders.rows)
    assert len(rows) == 3  # the row much later
    assert all(each["events"] == each["raw_of_its_flows"] for each in request.arrivals)


def test_a_table_beside_a_pipeline_of_sql_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = replace(sample_in(tmp_path), stream="raw")
    (request,), _ = asked(tmp_path, monkeypatch, [(flow("big", "big"), [sample])], "flows.sql")
    assert (request.created, request.sampled) == (["raw"], {})
    assert request.definitions == {"0/flows.sql": "CREATE STREAMING TABLE big AS SELECT * FROM STREAM raw;\n"}


@pytest.mark.parametrize(
    ("file", "options", "says"),
    [
        ("flows.ipynb", RuntimeOptions(), "no notebook"),
        ("flows.py", RuntimeOptions(runtime="container"), "only with engines of this machine"),
    ],
)
def test_what_the_runner_cannot_be_asked_is_said_in_its_place(tmp_path, monkeypatch, file, options, says) -> None:
    requests, ran = asked(tmp_path, monkeypatch, [(flow("f", "t", RAW), [sample_in(tmp_path)])], file, options)
    assert requests == []
    assert all(seen.lacking is not None and says in seen.lacking for seen in ran)


def test_a_source_whose_topic_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = SourceSeen(name="events", format="kafka", ddl=None, options={"subscribe": "events"})
    requests, ran = asked(tmp_path, monkeypatch, [(flow("f", "t", topic), [sample_in(tmp_path)])])
    assert (requests, ran[1].lacking) == ([], "its topics are not there")


def test_rows_that_two_flows_get_in_other_micro_batches_are_not_tried(tmp_path, monkeypatch) -> None:
    orders = sample_in(tmp_path)
    queries = [(flow("a", "a", RAW), [orders]), (flow("b", "b", RAW), [replace(orders, rows=orders.rows[:2])])]
    assert asked(tmp_path, monkeypatch, queries)[1][1].lacking == (
        "flows get the rows of events in other micro-batches than each other"
    )


def test_a_runner_that_ends_without_an_answer_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = [(flow("f", "t", RAW), [sample_in(tmp_path)])]
    assert asked(tmp_path, monkeypatch, one, seen=HarnessError("it ended"))[1][1].lacking == "it ended"


@pytest.fixture(scope="module")
def as_query(tmp_path_factory: pytest.TempPathFactory) -> QueryAnswer:
    folder = tmp_path_factory.mktemp("query")
    with closing(KeptEngines(TwoVersions(folder, {}))) as kept:
        trial = Trial(OLD, NEW, EngineUse(kept=kept), 3, True, True, "files", lambda _: None, Listener())
        return trial.answer(flow("sums", "sums", RAW), [sample_in(folder)], folder / "check", "conformance check")


def filled(answer: QueryAnswer, more: Sequence[object] = ()) -> PipelineSeen:
    observation = answer.verdict.wholes[0].observation
    assert observation is not None
    columns = [column.name for column in reversed(observation.columns)]
    rows = [[*reversed(row)] for batch in observation.batches for row in batch.rows]
    return PipelineSeen(tables={"sums": Filled(columns=columns, rows=[*rows, *([more] if more else [])])})


REFUSED = PipelineSeen(error="in run 1: the flow sums: [TABLE_OR_VIEW_NOT_FOUND]\n  no such table")
LACKING = PipelineSeen(lacking="its pyspark has no such runner")


def said(answer: QueryAnswer, *ran: PipelineSeen) -> tuple[list[tuple[str, str]], int, str]:
    (beside,) = pipeline_run.beside([answer], ran)
    statements = [(each.kind, each.text.partition(": ")[2]) for each in beside.by_runner]
    assert all(each in [*beside.statements] for each in beside.by_runner)
    return statements, beside.exit_code, beside.conclusion.answer


def test_the_rows_of_the_runner_are_compared_by_column_with_those_of_the_query(as_query: QueryAnswer) -> None:
    same = filled(as_query)
    number = len(same.tables["sums"].rows)
    alike = ("conforms", f"same rows as a query has, {number}")
    assert number > 1
    assert said(as_query, same, same) == ([alike, alike], as_query.exit_code, as_query.conclusion.answer)
    lacks = ("unsupported", "not tried: its pyspark has no such runner")
    assert said(as_query, LACKING, same)[0] == [lacks, alike]


def test_other_rows_or_a_refusal_on_the_later_version_alone_fail(as_query: QueryAnswer) -> None:
    same, other = filled(as_query), filled(as_query, [7] * len(filled(as_query).tables["sums"].columns))
    (_, (kind, text)), code, answer = said(as_query, same, other)
    assert (kind, code, answer) == ("violates", 1, "differs")
    assert text.startswith("other rows than a query has")
    (_, refused), code, answer = said(as_query, same, REFUSED)
    what = "refused in run 1: the flow sums: [TABLE_OR_VIEW_NOT_FOUND] no such table"
    assert (refused, code, answer) == (("violates", what), 1, "differs")
    assert [kind for kind, _ in said(as_query, other, other)[0]] == ["bug", "bug"]
    assert said(as_query, REFUSED, REFUSED)[0] == [("unsupported", what)] * 2
    assert said(as_query, LACKING, other)[1] == 1
