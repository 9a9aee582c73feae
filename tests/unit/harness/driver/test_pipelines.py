"""What of the run of a pipeline by Spark's own runner needs no JVM: which sample a read gets, what is renamed, and what a refusal says."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from harness.driver import pipelines
from harness.driver.jobs.program import ProgramSource
from harness.driver.pipelines import _key, _OfDlt, _Pipeline


@dataclass(frozen=True)
class Flow:
    name: str
    target: str


@dataclass(frozen=True)
class Table:
    name: str


class Registry:
    """What the runner gives definitions to."""

    def __init__(self):
        self.outputs, self.flows = [], []

    def register_output(self, output):
        self.outputs.append(output)

    def register_flow(self, flow):
        if flow.name == "bad":
            raise ValueError("no streaming query")
        self.flows.append(flow)


class Reader:
    def __init__(self, said=()):
        self.said = tuple(said)

    def _with(self, *said):
        return Reader((*self.said, said))

    def schema(self, ddl):
        return self._with("schema", ddl)

    def options(self, **_):
        return self

    def json(self, folder):
        return self._with("json", folder).said

    def table(self, name):
        return self._with("table", name).said


def source(name, format="json", **options):
    return {"name": name, "format": format, "options": options}


ASKED = {
    "sources": [source("orders", path="/in"), source("orders_2", path="/in"), source("top", "table", path="shop.top")],
    "schemas": {"orders": "a INT", "orders_2": "a INT", "top": "b INT"},
    "sampled": {"raw": "raw_sample"},
    "flows": {"raw_flow": "raw", "sums": "sums"},
}


@pytest.fixture
def cli(monkeypatch):
    monkeypatch.setattr(pipelines.program, "_change_pyspark", lambda: None)
    return SimpleNamespace(
        SparkConnectGraphElementRegistry=Registry, register_definitions=None, handle_pipeline_events=None
    )


@pytest.fixture
def pipeline(cli, monkeypatch):
    session = SimpleNamespace(readStream=Reader())
    folders = {stream: f"/work/{stream}" for stream in ASKED["schemas"]}
    made = _Pipeline(ASKED, cli, session, folders)
    monkeypatch.setattr(pipelines, "_OfDlt", lambda *_: SimpleNamespace(names=dict, definitions=[]))
    cli.run = lambda *_, **__: None
    made.run(None)
    return made


def test_two_reads_of_one_source_get_its_samples_in_order_and_every_later_one_the_last(pipeline):
    read = [pipeline._read(ProgramSource("x", "json", path="/in", options={})) for _ in range(3)]
    assert [said[-1] for said in read] == [
        ("json", "/work/orders"),
        ("json", "/work/orders_2"),
        ("json", "/work/orders_2"),
    ]
    assert read[0][0] == ("schema", "a INT")


def test_a_table_without_a_sample_and_one_that_a_flow_fills_are_read_as_tables(pipeline):
    def read(path):
        return pipeline._read(ProgramSource("x", "table", path=path, options={}))

    assert read("shop.top") == (("schema", "b INT"), ("json", "/work/top"))
    assert read("shop.others") == (("table", "shop.others"),)
    assert read("shop.`sums`") == (("table", "shop.`sums`"),)


@pytest.mark.parametrize(
    ("element", "renamed"),
    [
        (Table("raw"), Table("raw_sample")),
        (Table("sums"), Table("sums")),
        (Flow("raw", "raw"), Flow("raw_sample", "raw_sample")),
        # The name of a flow that has one stays.
        (Flow("raw_flow", "raw"), Flow("raw_flow", "raw_sample")),
        (Flow("raw", "sums"), Flow("raw", "sums")),
    ],
)
def test_the_definition_of_a_table_whose_rows_a_sample_has_is_of_a_table_of_its_own(pipeline, element, renamed):
    assert pipeline._renamed(element) == renamed


def test_a_flow_that_the_runner_does_not_take_is_named_and_ends_the_run(pipeline):
    registry = Registry()
    pipeline._register_flow(registry, Flow("sums", "sums"))
    with pytest.raises(ValueError, match="no streaming query"):
        pipeline._register_flow(registry, Flow("bad", "sums"))
    assert registry.flows == [Flow("sums", "sums")]
    assert pipeline.refusal == "the flow bad: no streaming query"


def event(message):
    return {"pipeline_event_result": SimpleNamespace(event=SimpleNamespace(message=message))}


def test_the_first_event_of_a_failure_is_the_refusal(pipeline):
    pipeline._hear([event("Flow sums is RUNNING."), {"other": None}, event("Failed to resolve flow: sums.")])
    pipeline._hear([event("Run has FAILED.")])
    assert pipeline.refusal == "Failed to resolve flow: sums."


def test_a_source_is_known_by_its_format_and_options_in_any_order():
    assert _key("json", {"a": "1", "b": "2"}) == _key("json", {"b": "2", "a": "1"})
    assert _key("json", {"a": "1"}) != _key("csv", {"a": "1"})


class Decorators:
    """``pyspark.pipelines``, which records what is defined."""

    def __init__(self):
        self.said = []

    def _defines(self, what, **named):
        def decorator(function):
            self.said.append((what, named, function()))
            return function

        return decorator

    def table(self, **named):
        return self._defines("table", **named)

    def temporary_view(self, **named):
        return self._defines("view", **named)

    def append_flow(self, **named):
        return self._defines("flow", **named)

    def create_streaming_table(self, name):
        self.said.append(("create", name))


@pytest.fixture
def dlt(monkeypatch):
    decorators = Decorators()
    monkeypatch.setattr(pipelines, "import_module", lambda _: decorators)
    of_dlt = _OfDlt(SimpleNamespace(), {"sums": "sums", "more": "sums"})
    return of_dlt, decorators


def test_what_a_module_defines_with_dlt_is_defined_as_pyspark_does_once_all_files_are_read(dlt):
    of_dlt, decorators = dlt
    of_dlt._add_view("clean", lambda: "a view")
    of_dlt._add("sums", lambda: "a stream")
    of_dlt._add("batch", lambda: "no stream")
    of_dlt._create("sums")
    of_dlt._add_flow("more", "sums", lambda: "another stream")
    assert decorators.said == []
    for definition in of_dlt.definitions:
        definition()
    # The batch table is missing: the runner gets only flows that were tried as queries.
    assert decorators.said == [
        ("view", {"name": "clean"}, "a view"),
        ("table", {"name": "sums"}, "a stream"),
        ("create", "sums"),
        ("flow", {"target": "sums", "name": "more"}, "another stream"),
    ]


def test_an_expectation_that_drops_rows_holds_though_it_comes_after_the_table(dlt, monkeypatch):
    of_dlt, decorators = dlt
    monkeypatch.setattr(pipelines, "kept_rows", lambda function, kept: (function(), tuple(kept)))
    of_dlt._add("sums", lambda: "a stream")
    of_dlt._kept["sums"] = ["amount > 0"]
    for definition in of_dlt.definitions:
        definition()
    assert decorators.said == [("table", {"name": "sums"}, ("a stream", ("amount > 0",)))]
