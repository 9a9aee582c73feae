"""Stands for ``pyspark.pipelines`` and ``dlt``: the streaming flows of a declarative pipeline are the queries of a program.

Spark's runner starts each in append mode with ``availableNow``, into its table (``StreamingTableWrite``, SPARK-51727). A view of the
pipeline is a part of each query that reads it; a table of the pipeline that another flow reads is a source, whose rows a sample has.
"""

from __future__ import annotations

import inspect
import os
import re
import tokenize
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from .glue import NotInATrial
from .modules import importable, made

_MODULES = ("dlt", "pyspark.pipelines")
_IMPORTED = re.compile(r"^[ \t]*(?:import\s+(?:dlt|pyspark\.pipelines)\b|from\s+(?:dlt|pyspark\.pipelines)\s+import\b"
                       r"|from\s+pyspark\s+import\s.*\bpipelines\b)", re.M)  # fmt: skip
_ABOUT = frozenset(
    "cluster_by cluster_by_auto comment format partition_cols path private row_filter schema table_properties temporary".split()
)
"""What a decorator says of a table, and not of the query that fills it."""

_KEPT = "_kept_by_conformance"
"""The attribute of a function with the conditions of the rows that its expectations keep."""

Function = Callable[[], Any]


class _Flow(NamedTuple):
    name: str
    target: str
    function: Function


def defines(file: str) -> bool:
    """Whether a program defines a pipeline. Its runner gives it ``spark``, as a notebook's platform does."""
    with tokenize.open(file) as opened:
        return _IMPORTED.search(opened.read()) is not None


class Flows:
    """What a program defines, until its flows are started. ``run``: a ``ProgramRun``."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._flows: List[_Flow] = []
        self._batch: List[str] = []
        self._tables: List[str] = []
        self._kept: Dict[str, List[str]] = {}
        """Table → the conditions of the rows that its expectations keep."""

    def start(self) -> None:
        """Start each flow that reads a stream; name those that read none in the options of the first query."""
        for flow in self._flows:
            frame = self._frame(flow.function, self._kept.get(flow.target, ()))
            if frame is None or not frame.isStreaming:
                self._batch.append(flow.name)
                continue
            writer = frame.writeStream
            newer = "availableNow" in inspect.signature(writer.trigger).parameters  # from 3.3 on
            code = flow.function.__code__
            noted = {
                "queryName": flow.name,
                "trigger": "availableNow" if newer else "once",
                "at": "{}:{}".format(os.path.basename(code.co_filename), code.co_firstlineno),
                "options": {"flow": flow.target},
            }
            self._run.start(writer, noted, "table", {})
        if self._batch and self._run.started:
            self._run.started[0].options["batch"] = ", ".join(self._batch)

    def _frame(self, function: Function, kept: Sequence[str] = ()) -> Any:
        """What a flow reads, None if it is the content of a table of the pipeline, which nothing has filled; ``kept``: by its table."""
        try:
            return kept_rows(function, kept)
        except Exception as error:
            words = re.findall(r"\w+", str(error).partition("\n")[0])
            if "AnalysisException" in type(error).__name__ and set(words) & set(self._tables) and "found" in str(error):
                return None
            raise

    def names(self) -> Dict[str, Any]:
        """The names of the modules."""
        names = {
            "table": self._decorator(self._add),
            "materialized_view": self._decorator(lambda name, _: self._batch.append(name)),
            "view": self._decorator(self._add_view),
            "temporary_view": self._decorator(self._add_view),
            "append_flow": self._append_flow,
            "create_streaming_table": self._create,
            "create_streaming_live_table": self._create,
            "create_sink": lambda *_, **__: None,
            **{name: self._of_changes(name) for name in _OF_CHANGES},
            **{"expect" + more: _expecting("drop" in more) for more in _EXPECT},
            "read": self._read,
            "read_stream": lambda name: self._run.session.readStream.table(name),
        }
        known = sorted(names)

        def other(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            what = "{} of a declarative pipeline is not in a trial, which has {}: write the flow's query without it"
            raise NotInATrial(what.format(name, ", ".join(known)))

        return dict(names, __getattr__=other, __all__=known)

    def _read(self, name: str) -> Any:
        view = self._run.view(name)
        return self._run.session.read.table(name) if view is None else view

    def _of_changes(self, name: str) -> Callable[..., None]:
        return lambda target, *_, **__: self._batch.append("{} ({})".format(target, name))

    def _create(self, name: str, *, expect_all_or_drop: Optional[Dict[str, str]] = None, **_: Any) -> None:
        self._tables.append(name)
        self._kept[name] = [*(expect_all_or_drop or {}).values()]

    def _add_view(self, name: str, function: Function) -> None:
        self._run.add_view(name, lambda: self._frame(function))

    def _add(self, name: str, function: Function) -> None:
        self._tables.append(name)
        self._flows.append(_Flow(name, name, function))

    def _decorator(self, add: Callable[[str, Function], Any]) -> Callable[..., Any]:
        def decorate(query_function: Optional[Function] = None, *, name: Optional[str] = None, **about: Any) -> Any:
            _check(about)

            def outer(function: Function) -> Function:
                add(name or function.__name__, function)
                return function

            return outer if query_function is None else outer(query_function)

        return decorate

    def _append_flow(self, *, target: str, name: Optional[str] = None, once: bool = False, **about: Any) -> Any:
        _check(about)

        def outer(function: Function) -> Function:
            own = name or function.__name__
            if once:
                self._batch.append(own)
            else:
                self._add_flow(own, target, function)
            return function

        return outer

    def _add_flow(self, name: str, target: str, function: Function) -> None:
        self._flows.append(_Flow(name, target, function))


_OF_CHANGES = (
    "create_auto_cdc_flow create_auto_cdc_from_snapshot_flow apply_changes apply_changes_from_snapshot".split()
)
"""What Databricks alone does with the changes of a source."""
_EXPECT = ("", "_all", "_or_drop", "_all_or_drop", "_or_fail", "_all_or_fail")


def kept_rows(function: Function, kept: Sequence[str]) -> Any:
    """The rows of a flow or view that its own expectations keep, and these conditions."""
    frame = function()
    for condition in (*getattr(function, _KEPT, ()), *kept):
        frame = frame.where(condition)
    return frame


def _expecting(drops: bool) -> Callable[..., Any]:
    """The decorator of an expectation, of a name and a condition, or of several, of a dictionary; those that drop rows are filters."""

    def expectation(*said: Any, **named: Any) -> Callable[[Function], Function]:
        first, *others = (*said, *named.values())
        conditions = [*first.values()] if isinstance(first, dict) else others

        def outer(function: Function) -> Function:
            if drops:
                vars(function).setdefault(_KEPT, []).extend(conditions)
            return function

        return outer

    return expectation


def _check(about: Dict[str, Any]) -> None:
    """Raise ``NotInATrial`` for settings of one flow, which all queries of a session would get; ``TypeError`` for other names."""
    if about.pop("spark_conf", None):
        raise NotInATrial("spark_conf of a flow is not in a trial: leave it out, and give the setting with --conf")
    strange = sorted(set(about) - _ABOUT)
    if strange:
        raise TypeError("got an unexpected keyword argument {!r}".format(strange[0]))


@contextmanager
def shim(run: Any) -> Iterator[Flows]:
    """Let the program of a run import both modules; what it defines stands in what this yields."""
    flows = Flows(run)
    with importable(*(made(name, flows.names()) for name in _MODULES)):
        yield flows
