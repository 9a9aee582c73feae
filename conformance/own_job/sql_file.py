"""One's own SQL, a file of statements over temporary views of the streams, whose last one is the query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.intervals import NotAnInterval, parse_interval
from conformance.core.wording import counted, unknown
from conformance.own_job.job_case import Flow, OwnQuery, of_flow
from conformance.own_job.sample import Sample
from conformance.query.syntax import NotReadable, SqlStatement, conditions_of, query_of_flow, statements, tables_read

_VIEW = re.compile(r"CREATE (?:OR REPLACE )?(?:TEMP|TEMPORARY) VIEW (?:IF NOT EXISTS )?(\w+) AS\b", re.I)
_OF_A_PIPELINE = re.compile(
    r"(?:CREATE (?:OR \w+ )?(?:(?:PRIVATE|TEMP|TEMPORARY) )*(?P<kind>STREAMING|LIVE|MATERIALIZED VIEW|FLOW)"
    r"(?: (?:LIVE )?(?P<what>TABLE|VIEW))?(?: IF NOT EXISTS)? (?P<name>[\w.]+)|APPLY CHANGES|AUTO CDC)\b",
    re.I,
)
_INTO = re.compile(r"(?:\b(APPLY CHANGES|AUTO CDC) )?\bINTO (\S+)", re.I)
"""The target of a flow, and what Databricks alone does with the changes of a source."""
_BEGINS_A_QUERY = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_MOST_BYTES = 1_000_000


def is_sql_file(text: str) -> bool:
    return text.endswith(".sql")


def defines_pipeline(path: str) -> bool:
    """Whether a file of SQL can be read and defines tables or flows of a declarative pipeline."""
    try:
        return any(map(_of_a_pipeline, statements(Path(path).read_text(encoding="utf-8-sig"))))
    except (OSError, ValueError):
        return False


class NoFlow(WrongUsage):
    """A file of a declarative pipeline has no flow that reads a stream."""


@dataclass(frozen=True)
class SqlFile:
    path: str
    parts: tuple[SqlStatement, ...]
    """Temporary views and settings, and at the end the query."""
    output_mode: str = "append"
    watermarks: Mapping[str, tuple[str, str]] | None = None
    """Stream → the column of its event time, and the delay."""

    flow: str | None = None
    """Its name, if the query is a flow of a declarative pipeline."""
    batch: tuple[str, ...] = ()
    """The other tables of the pipeline, which no stream fills."""
    target: str = ""
    """The table that the flow fills."""

    @classmethod
    def read(cls, path: str, output_mode: str = "append") -> tuple[SqlFile, ...]:
        """Read a file: a query behind temporary views and settings, or each flow of a declarative pipeline.

        Raises WrongUsage: it cannot be read, or is neither.
        """
        try:
            with Path(path).open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
            parts = statements(content.decode())
        except OSError as error:
            raise WrongUsage(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:
            why = "a text or a comment in it has no end" if isinstance(error, NotReadable) else "it is not UTF-8"
            raise WrongUsage(f"{path}: {why}") from None
        if len(content) > _MOST_BYTES:
            raise WrongUsage(f"{path} has more than {_MOST_BYTES:,} bytes")
        if not parts:
            raise WrongUsage(f"{path} has no statement: the last one must be the query whose rows are compared")
        if any(map(_of_a_pipeline, parts)):
            return cls._flows(path, parts, output_mode)
        for statement in parts[:-1]:
            if _view(statement) is None and statement.words[0].upper() != "SET":
                raise WrongUsage(
                    f"{path}:{statement.line}: {_shown(statement)} is neither CREATE TEMPORARY VIEW name AS … nor SET, which alone may "
                    "stand before the query"
                )
        if parts[-1].words[0].upper() not in _BEGINS_A_QUERY:
            raise WrongUsage(
                f"{path}:{parts[-1].line}: {_shown(parts[-1])} is not a query: the last statement is that whose rows are compared, a SELECT"
            )
        return (cls(path, parts, output_mode),)

    @classmethod
    def _flows(cls, path: str, parts: Iterable[SqlStatement], output_mode: str) -> tuple[SqlFile, ...]:
        before, flows, batch = list[SqlStatement](), dict[str, tuple[SqlStatement, ...]](), list[str]()
        targets, kept = dict[str, str](), dict[str, tuple[str, ...]]()
        for statement in parts:
            part, query, words = _of_a_pipeline(statement), query_of_flow(statement.text), _upper(statement)
            kind, what, name = (part[key] or "" for key in ("kind", "what", "name")) if part else ("", "", "")
            kind = kind.upper()
            if part is None and (_view(statement) or words[0] == "SET"):
                before.append(statement)
                continue
            into = _INTO.search(_head(statement))
            if into and into[1]:
                batch.append(f"{into[2]} ({into[1]})")
                continue
            if not name or (kind == "FLOW" and "INSERT" not in words):
                raise WrongUsage(
                    f"{path}:{statement.line}: {_shown(statement)} in a declarative pipeline is not tried: leave it out"
                )
            target = into[2] if into and kind == "FLOW" else name
            kept[name] = (*kept.get(target, ()), *conditions_of(statement.text))
            if query is not None and kept[name]:
                query = f"SELECT * FROM ({query}\n) WHERE {' AND '.join(kept[name])}"
            if query is not None and what.upper() == "VIEW" and kind in ("LIVE", "STREAMING"):
                before.append(
                    _rewritten(statement, f"CREATE OR REPLACE TEMPORARY VIEW {name.rpartition('.')[2]} AS {query}")
                )
            elif query is not None and kind in ("STREAMING", "FLOW") and "ONCE" not in words[:9]:
                flows[name] = (*before, _rewritten(statement, query))
                targets[name] = target
            elif query is not None:
                batch.append(name)
        if not flows:
            raise NoFlow(f"{path}: no stream fills a table of this pipeline, so nothing is tried: read a STREAM")
        if output_mode != "append":
            raise WrongUsage(f"{path}: a flow of a declarative pipeline appends: omit the output mode {output_mode}")
        return tuple(cls(path, own, flow=name, batch=tuple(batch), target=targets[name]) for name, own in flows.items())

    @property
    def query(self) -> OwnQuery:
        watermarks = {stream: [*column_and_delay] for stream, column_and_delay in (self.watermarks or {}).items()}
        called: dict[str, Json] = {"sql": [statement.text for statement in self.parts]}
        called |= {"watermarks": watermarks} if watermarks else {}
        stem = Path(self.path).stem
        if self.flow is None:
            return OwnQuery(self.path, called, stem, self.output_mode)
        title, stem = f"{self.path}, flow {self.flow}", f"{stem}-{self.flow}"
        said, flow = of_flow(self.flow, ", ".join(self.batch)), Flow(self.flow, self.target)
        return OwnQuery(title, called, stem, trigger="availableNow", statements=said, flow=flow)

    def read_by_it(self, samples: Iterable[Sample]) -> tuple[Sample, ...]:
        """Return the samples of the streams that the statements read; all, if that cannot be told."""
        read = [tables_read(part.text) for part in self.parts if part.words[0].upper() != "SET"]
        names = {name.lower() for tables in read for name in tables or ()}
        return tuple(sample for sample in samples if None in read or sample.stream.lower() in names)

    def notes(self) -> tuple[str, ...]:
        """What the user may have forgotten."""
        if self.watermarks or any("WATERMARK" in map(str.upper, part.words) for part in self.parts):
            return ()
        return (f"{self.path}: no stream has a watermark; --watermark STREAM='10 minutes' gives it one",)

    def check_streams(self, streams: Sequence[str]) -> None:
        """Raise WrongUsage, which says what to give, unless these are the streams that the statements read."""
        views, wanted, certain = set[str](), dict[str, str](), True
        given = {stream.lower() for stream in streams}
        for statement in self.parts:
            read = tables_read(statement.text) if statement.words[0].upper() != "SET" else frozenset[str]()
            certain &= read is not None
            for name in sorted(name for name in read or () if name.lower() not in views):
                wanted[name.lower()] = name
                if name.lower() not in given and streams:
                    known = [*streams, *sorted(views)]
                    raise WrongUsage(
                        f"{self.path}:{statement.line}: {unknown('table', name, known)}: give --sample {name}=FILE if it is a stream"
                    )
            if view := _view(statement):
                views.add(view.lower())
        if not streams:
            lines = [f"  --sample {name}={name}.jsonl" for name in wanted.values()]
            what = f"{self.path} reads {counted(len(wanted), 'table')}; give a sample of each:"
            none = f"{self.path} reads no table that is known: read a stream by its name, as FROM orders, and give --sample orders=FILE"
            raise WrongUsage("\n".join([what, *lines]) if lines else none)
        if certain and (unread := [stream for stream in streams if stream.lower() not in wanted]):
            raise WrongUsage(f"{self.path} does not read {unread[0]}; it reads {', '.join(wanted.values()) or 'none'}")

    def with_watermarks(self, delays: Mapping[str, str], samples: Iterable[Sample]) -> SqlFile:
        """Add watermarks (``10 minutes`` by stream) on the event times of samples; WrongUsage if a stream lacks sample or event time."""
        by_stream = {sample.stream: sample for sample in samples}
        watermarks = {}
        for stream, delay in delays.items():
            if stream not in by_stream:
                raise WrongUsage(f"--watermark: {unknown('stream', stream, by_stream)}")
            fields, number = by_stream[stream].schema.fields, by_stream[stream].event_time
            # A silent stream has a schema only, and no column by which its rows are divided.
            times = fields[number:] if isinstance(number, int) else [f for f in fields if f.type.name == "timestamp"]
            if (column := next(iter(times), None)) is None:
                raise WrongUsage(f"--watermark: {stream} has no event time: give it by --event-time {stream}=COLUMN")
            try:
                parse_interval(delay)
            except NotAnInterval:
                raise WrongUsage(f"--watermark: {delay!r} is not a delay: write {stream}='10 minutes'") from None
            watermarks[stream] = (column.name, delay)
        return replace(self, watermarks=watermarks)


def for_the_runner(path: Path, renamed: Mapping[str, str]) -> str:
    """The file of a pipeline as Spark's own runner reads it, without properties of its tables and spellings of Databricks alone.

    ``renamed``: target → the table that its flows fill in its place.
    """
    written, kept = list[str](), dict[str, tuple[str, ...]]()
    for statement in statements(path.read_text(encoding="utf-8-sig")):
        part, into = _of_a_pipeline(statement), _INTO.search(_head(statement))
        query, kind = query_of_flow(statement.text, streams=True), (part["kind"] or "").upper() if part else ""
        if part is None or not part["name"]:
            written += [statement.text] if part is None else []
            continue
        target = into[2] if into and kind == "FLOW" else part["name"]
        name = part["name"].removeprefix("LIVE.")
        kept[name] = (*kept.get(target, ()), *conditions_of(statement.text))
        if query is not None and kept[name]:
            query = f"SELECT * FROM ({query}\n) WHERE {' AND '.join(kept[name])}"
        own = renamed.get(target, target)
        if kind == "FLOW":
            once = "ONCE " if "ONCE" in _upper(statement)[:9] else ""
            written.append(f"CREATE FLOW {name} AS INSERT {once}INTO {own} BY NAME {query}")
        else:
            is_view = (part["what"] or "").upper() == "VIEW"
            what = "TEMPORARY VIEW" if is_view else "STREAMING TABLE"
            if kind == "MATERIALIZED VIEW" or (kind == "LIVE" and not is_view):
                what = "MATERIALIZED VIEW"
            written.append(f"CREATE {what} {own}" + (f" AS {query}" if query is not None else ""))
    return "".join(f"{text};\n" for text in written)


def _of_a_pipeline(statement: SqlStatement) -> re.Match[str] | None:
    return _OF_A_PIPELINE.match(_head(statement))


def _head(statement: SqlStatement) -> str:
    """How a statement begins, with names of several parts whole."""
    return " ".join(statement.words[:20]).replace(" . ", ".")


def _upper(statement: SqlStatement) -> list[str]:
    return [word.upper() for word in statement.words]


def _rewritten(statement: SqlStatement, text: str) -> SqlStatement:
    (made,) = statements(text)
    return made._replace(line=statement.line)


def _view(statement: SqlStatement) -> str | None:
    """The name of the temporary view that a statement makes."""
    made = _VIEW.match(" ".join(statement.words[:10]))
    return made[1] if made else None


def _shown(statement: SqlStatement) -> str:
    return " ".join(statement.words[:4]) + (" …" if len(statement.words) > 4 else "")
