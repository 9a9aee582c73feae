"""Builds a DataFrame from the operations of a case. Each operation is one method, named after the DataFrame method."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from .errors import NotPermitted, method
from .jobs.own_code import AuthorCode, drop_views
from .jobs.program import LEFT_OUT, ProgramSource
from .permission import check_statement
from .state_functions import ROW_PROCESSORS, STATE_FUNCTIONS, STATEFUL_PROCESSORS, check_packages

_SETTING = re.compile(r"SET\s+`?([\w.]+)`?\s*=", re.IGNORECASE)
Operation = Dict[str, Any]
_PREFIX = "do_"

_DIRECTION = re.compile(r"\s+(asc|desc)(?:\s+nulls\s+(first|last))?\s*$", re.IGNORECASE)


class UnknownOperation(Exception):
    """The request has an operation that this driver does not support."""


Read = Callable[[str, Optional[str]], Any]
"""Makes the DataFrame of a stream, from its name in the case and that of its source, if it has one."""


def build(operations: list[Operation], read: Read, session: Any, code: AuthorCode | None = None) -> Any:
    """Build a DataFrame from a pipeline. ``read``: called once for a stream; ``code``: of ``call``, None if calling is not allowed."""
    return _Builder(read, session, code).pipeline(operations)


@contextmanager
def delayed(session: Any, delay: str | None) -> Iterator[None]:
    """In the block give each watermark this delay in place of its own; None for its own. Cases beside this one would get it, too."""
    if delay is None:
        yield
        return
    frame = type(session.range(0))
    own = frame.withWatermark
    frame.withWatermark = lambda frame, eventTime, delayThreshold: own(frame, eventTime, delay)  # noqa: ARG005, N803
    try:
        yield
    finally:
        frame.withWatermark = own


class _Builder:
    def __init__(self, read: Read, session: Any, code: AuthorCode | None) -> None:
        self._read = read
        self._frames: Dict[Tuple[str, Optional[str]], Any] = {}
        self._session = session
        self._code = code

    def pipeline(self, operations: list[Operation]) -> Any:
        frame = None
        for operation in operations:
            name = next(iter(operation))
            if name not in OPERATIONS:
                raise UnknownOperation("this driver has no operation {}".format(name))
            frame = getattr(self, _PREFIX + name)(frame, operation)
        return frame

    def do_from(self, _: Any, operation: Operation) -> Any:
        return self._stream(operation["from"], operation.get("name"))

    def _stream(self, stream: str, name: str | None = None) -> Any:
        if (stream, name) not in self._frames:
            self._frames[stream, name] = self._read(stream, name)
        return self._frames[stream, name]

    def do_withWatermark(self, frame: Any, operation: Operation) -> Any:  # noqa: N802
        column, delay = operation["withWatermark"]
        return frame.withWatermark(column, delay)

    def do_where(self, frame: Any, operation: Operation) -> Any:
        return frame.where(operation["where"])

    def do_dropna(self, frame: Any, operation: Operation) -> Any:
        arguments = operation["dropna"]
        return frame.dropna(arguments.get("how", "any"), arguments.get("thresh"), arguments.get("subset"))

    def do_select(self, frame: Any, operation: Operation) -> Any:
        return frame.select(*[_expr(text) for text in operation["select"]])

    def do_withColumn(self, frame: Any, operation: Operation) -> Any:  # noqa: N802
        name, text = operation["withColumn"]
        return frame.withColumn(name, _expr(text))

    def do_drop(self, frame: Any, operation: Operation) -> Any:
        return frame.drop(*operation["drop"])

    def do_alias(self, frame: Any, operation: Operation) -> Any:
        return frame.alias(operation["alias"])

    def do_groupBy(self, frame: Any, operation: Operation) -> Any:  # noqa: N802
        grouped = frame.groupBy(*[_expr(text) for text in operation["groupBy"]])
        return grouped.agg(*[_expr(text) for text in operation["agg"]])

    def do_join(self, frame: Any, operation: Operation) -> Any:
        other, how = self.pipeline(operation["join"]), operation.get("how", "inner").lower()
        return frame.join(other, _expr(operation["on"]), how)

    def do_union(self, frame: Any, operation: Operation) -> Any:
        return frame.union(self.pipeline(operation["union"]))

    def do_distinct(self, frame: Any, operation: Operation) -> Any:
        return frame.distinct() if operation["distinct"] else frame

    def do_dropDuplicates(self, frame: Any, operation: Operation) -> Any:  # noqa: N802
        names = operation["dropDuplicates"]
        return frame.dropDuplicates(names) if names else frame.dropDuplicates()

    def do_dropDuplicatesWithinWatermark(self, frame: Any, operation: Operation) -> Any:  # noqa: N802
        names = operation["dropDuplicatesWithinWatermark"]
        drop = method(frame, "dropDuplicatesWithinWatermark")  # since 3.5
        return drop(names) if names else drop()

    def do_applyInPandasWithState(self, frame: Any, operation: Operation) -> Any:  # noqa: N802
        arguments = operation["applyInPandasWithState"]
        chosen = STATE_FUNCTIONS[arguments["with"]]
        apply = method(frame.groupBy(*arguments["by"]), "applyInPandasWithState")  # since 3.4
        check_packages()
        mode, timeout = arguments.get("outputMode", "append"), arguments.get("timeout", "NoTimeout")
        return apply(chosen.function, chosen.emits, chosen.keeps, mode, timeout)

    def do_transformWithState(self, frame: Any, operation: Operation) -> Any:  # noqa: N802
        arguments = operation["transformWithState"]
        in_pandas = arguments.get("inPandas", True)
        processor = (STATEFUL_PROCESSORS if in_pandas else ROW_PROCESSORS)[arguments["with"]]
        if "state" in arguments:
            processor = processor.keeping(arguments["state"])
        # Since 4.0 and 4.1.
        name = "transformWithStateInPandas" if in_pandas else "transformWithState"
        transform = method(frame.groupBy(*arguments["by"]), name)
        check_packages("google.protobuf")
        initial = arguments.get("initialState")
        return transform(
            processor,
            processor.emits,
            arguments.get("outputMode", "append"),
            arguments.get("timeMode", "None"),
            self._statement(initial).groupBy(*arguments["by"]) if initial else None,
            arguments.get("eventTimeColumn", ""),
        )

    def do_orderBy(self, frame: Any, operation: Operation) -> Any:  # noqa: N802
        return frame.orderBy(*[ordering(text) for text in operation["orderBy"]])

    def do_limit(self, frame: Any, operation: Operation) -> Any:
        return frame.limit(operation["limit"])

    def do_sql(self, frame: Any, operation: Operation) -> Any:
        # All frames are built before any view is made: a view inside one of them may have the name of another.
        views = {name: self.pipeline(nested) for name, nested in operation.get("views", {}).items()}
        views[operation["as"]] = frame
        for name, view in views.items():
            view.createOrReplaceTempView(name)
        return self._statement(operation["sql"])

    def _statement(self, text: str) -> Any:
        if self._code is None:
            check_statement(self._session, text)
        return self._session.sql(text)

    def do_call(self, frame: Any, operation: Operation) -> Any:
        if self._code is None:
            raise NotPermitted("the query calls Python code of its author")
        called = operation["call"]
        if isinstance(called, dict) and "sql" in called:
            return self._statements(called["sql"], operation["with"], called.get("watermarks", {}))
        if isinstance(called, dict) and "jvm" in called:
            return self._code.method(
                called["jvm"], self._session, {name: self._stream(name) for name in operation["with"]}
            )
        if isinstance(called, dict):
            return self._code.query(called, self._session, partial(self._source, operation["with"]))
        frames = [self._stream(stream) for stream in operation["with"]] if "with" in operation else [frame]
        return self._code.frame(called, self._session, *frames)

    def _statements(self, texts: list[str], streams: list[str], watermarks: Dict[str, list[str]]) -> Any:
        """Execute statements over temporary views of streams. Return the DataFrame of the last one."""
        drop_views(self._session)  # those of an earlier start of the query
        for stream in streams:
            frame = self._stream(stream)
            if stream in watermarks:
                frame = frame.withWatermark(*watermarks[stream])
            frame.createOrReplaceTempView(stream)
        return [self._session.sql(text) for text in texts if not _is_left_out(text)][-1]

    def _source(self, streams: list[str], source: ProgramSource) -> Any:
        if source.name not in streams:
            known = ", ".join(streams)
            raise ValueError("the program reads {}, and the streams of the case are {}".format(source.name, known))
        return self._stream(source.name, source.given)


OPERATIONS = frozenset(name[len(_PREFIX) :] for name in vars(_Builder) if name.startswith(_PREFIX))
"""The names of the operations that it can do."""


def _is_left_out(statement: str) -> bool:
    """Whether it makes a setting that is left out, as in a program."""
    setting = _SETTING.match(statement)
    return setting is not None and setting.group(1) in LEFT_OUT


def _expr(text: str) -> Any:
    from pyspark.sql import functions

    return functions.expr(text)


def ordering(text: str) -> Any:
    """A sort order, ``total DESC NULLS LAST``: an expression and at its end the direction, ascending if there is none."""
    written = _DIRECTION.search(text)
    if written is None:
        return _expr(text)
    column = _expr(text[: written.start()])
    direction, nulls = written.group(1).lower(), written.group(2)
    return getattr(column, "{}_nulls_{}".format(direction, nulls.lower()) if nulls else direction)()
