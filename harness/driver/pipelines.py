"""``python -m driver.pipelines WORK [KEY=VALUE …]``: run a declarative pipeline by Spark's own runner, once for each arrival of samples.

Reads ``WORK/pipeline.json`` and writes ``WORK/answer.json``, as ``harness.runtimes.pipelines`` says. Sources with samples read their files.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Dict, List

from .arrivals import JSON_OPTIONS
from .jobs import program
from .jobs.flows import Flows, Function, kept_rows
from .jobs.modules import importable, made
from .jobs.threads import belonging_to
from .session import SESSION_SETTINGS


def answer(work: str, settings: Dict[str, str]) -> Dict[str, Any]:
    """The rows of each target, or the first flow that the runner refuses, and why."""
    from .values import encode_row

    asked = json.loads(Path(work, "pipeline.json").read_text(encoding="utf-8"))
    cli: Any = import_module("pyspark.pipelines.cli")
    # The catalog of this process outlasts the runs, which have a session each. With a Hive metastore 4.1 refuses WATERMARK in SQL.
    session = _session({**settings, "spark.sql.warehouse.dir": work + "/warehouse"})
    for key, value in {**SESSION_SETTINGS, **asked["conf"]}.items():
        session.conf.set(key, value)
    session.sql("CREATE DATABASE IF NOT EXISTS `{}`".format(asked["database"]))
    folders = {stream: "{}/streams/{}".format(work, stream) for stream in asked["schemas"]}
    for stream, folder in folders.items():
        os.makedirs(folder)
        if stream in asked["created"]:
            table = "`{}`.`{}` ({})".format(asked["database"], stream, asked["schemas"][stream])
            session.sql("CREATE TABLE {} USING json LOCATION '{}'".format(table, folder))
    sys.path[:0] = asked["folders"]
    pipeline = _Pipeline(asked, cli, session, folders)
    for number, arrival in enumerate(asked["arrivals"], 1):
        for stream, lines in arrival.items():
            Path(folders[stream], "{:06d}.json".format(number)).write_text(lines, encoding="utf-8")
        try:
            pipeline.run(Path(work, "project", "spark-pipeline.yml"))
        except Exception as error:
            said = pipeline.refusal or str(error)
            for table, own in asked["sampled"].items():
                said = said.replace(own, table)
            return {"error": "in run {}: {}".format(number, said)}
    tables = {}
    for target in asked["flows"].values():
        frame = session.table("`{}`.`{}`".format(asked["database"], asked["sampled"].get(target, target)))
        tables[target] = {"columns": frame.columns, "rows": [encode_row(row, frame.schema) for row in frame.collect()]}
    return {"tables": tables}


def _session(settings: Dict[str, str]) -> Any:
    """A session of a Connect server in this process's JVM, which only this process can use."""
    from pyspark import SparkConf, SparkContext

    token = os.environ.setdefault("SPARK_CONNECT_AUTHENTICATE_TOKEN", os.urandom(16).hex())
    conf = SparkConf().setMaster("local[2]").setAppName("pipeline").setAll([*settings.items()])
    conf.set("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin").set("spark.ui.enabled", "false")
    conf.set("spark.connect.grpc.binding.port", "0").set("spark.connect.grpc.binding.address", "127.0.0.1")
    context = SparkContext(conf=conf.set("spark.connect.authenticate.token", token))
    service = getattr(context._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    sessions = import_module("pyspark.sql.connect.session").SparkSession
    port = getattr(service, "MODULE$").localPort()
    return sessions.builder.remote("sc://localhost:{}/;token={}".format(port, token)).create()


class _Pipeline:
    """``folders``: stream → its files."""

    def __init__(self, asked: Dict[str, Any], cli: Any, session: Any, folders: Dict[str, str]) -> None:
        self._asked, self._cli, self._session, self._folders = asked, cli, session, folders
        self._registry = cli.SparkConnectGraphElementRegistry
        self._originals = cli.register_definitions, self._registry.register_output, self._registry.register_flow
        cli.register_definitions, cli.handle_pipeline_events = self._register, self._hear
        program._change_pyspark()

    def run(self, spec: Path) -> None:
        self._left: Dict[str, List[str]] = {}
        for source in self._asked["sources"]:
            self._left.setdefault(_key(source["format"], source["options"]), []).append(source["name"])
        self.refusal = ""
        own = program.ProgramRun(self._session, self._read, lambda: None)
        self._of_dlt = _OfDlt(own, self._asked["flows"])
        with belonging_to(program=own), importable(made("dlt", self._of_dlt.names())):
            self._cli.run(spec, full_refresh=[], full_refresh_all=False, refresh=[], dry=False)

    def _hear(self, results: Any) -> None:
        for result in results:
            message = result["pipeline_event_result"].event.message if "pipeline_event_result" in result else ""
            if "Failed to resolve flow: " in message or "has FAILED" in message:
                self.refusal = self.refusal or message

    def _register(self, spec: Path, registry: Any, *others: Any) -> None:
        definitions, output, flow = self._originals
        self._registry.register_output, self._registry.register_flow = output, flow
        with self._cli.graph_element_registration_context(registry):
            for table, stream in self._asked["sampled"].items():
                import_module("pyspark.pipelines").table(name=table)(lambda stream=stream: self._sample(stream))
            self._registry.register_output = lambda registry, of: output(registry, self._renamed(of))
            self._registry.register_flow = lambda registry, of: self._register_flow(registry, of)
        definitions(spec, registry, *others)
        with self._cli.graph_element_registration_context(registry):
            for definition in self._of_dlt.definitions:
                definition()

    def _register_flow(self, registry: Any, flow: Any) -> None:
        try:
            self._originals[2](registry, self._renamed(flow))
        except Exception as error:
            self.refusal = "the flow {}: {}".format(flow.name, error)
            raise

    def _renamed(self, element: Any) -> Any:
        """The definition of a table or flow; that of a sampled table is of its own table."""
        names = {key: getattr(element, key, None) for key in ("name", "target")}
        if names["target"] not in (None, names["name"]):
            del names["name"]  # of a flow that has one
        own = {key: self._asked["sampled"][name] for key, name in names.items() if name in self._asked["sampled"]}
        return dataclasses.replace(element, **own)

    def _sample(self, stream: str) -> Any:
        with belonging_to(program=None, code=None):
            reader = self._session.readStream.schema(self._asked["schemas"][stream]).options(**JSON_OPTIONS)
            return reader.json(self._folders[stream])

    def _read(self, source: program.ProgramSource) -> Any:
        path = {"path": source.path} if source.path is not None else {}
        names = self._left.get(_key(source.format, {**(source.options or {}), **path}), [])
        table = (source.path or "").replace("`", "").rpartition(".")[2]
        if source.format == "table" and (table in self._asked["flows"].values() or not names):
            return self._session.readStream.table(source.path)
        return self._sample(names.pop(0) if len(names) > 1 else names[0])


def _key(format: str, options: Dict[str, str]) -> str:
    return json.dumps([format, options], sort_keys=True)


class _OfDlt(Flows):
    """What files define with ``dlt``, as ``pyspark.pipelines`` does. ``streaming``: the flows that read a stream, with their targets."""

    def __init__(self, run: Any, streaming: Dict[str, str]) -> None:
        super().__init__(run)
        self._streaming = streaming
        self._pipelines = import_module("pyspark.pipelines")
        self.definitions: List[Callable[[], Any]] = []
        """To be called once all files are read, since an expectation may stand above a table."""

    def _add(self, name: str, function: Function) -> None:
        if name in self._streaming:
            self._define(self._pipelines.table(name=name), function, name)

    def _add_view(self, name: str, function: Function) -> None:
        self._define(self._pipelines.temporary_view(name=name), function, name)

    def _add_flow(self, name: str, target: str, function: Function) -> None:
        self._define(self._pipelines.append_flow(target=target, name=name), function, target)

    def _create(self, name: str, **about: Any) -> None:
        super()._create(name, **about)
        self.definitions.append(lambda: self._pipelines.create_streaming_table(name))

    def _define(self, decorator: Any, function: Function, target: str) -> None:
        self.definitions.append(lambda: decorator(lambda: kept_rows(function, self._kept.get(target, ()))))


if __name__ == "__main__":
    hidden = json.loads(os.environ.pop("CONFORMANCE_SETTINGS", "{}"))
    answered = answer(sys.argv[1], dict(hidden, **dict(setting.split("=", 1) for setting in sys.argv[2:])))
    Path(sys.argv[1], "answer.json").write_text(json.dumps(answered), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)
