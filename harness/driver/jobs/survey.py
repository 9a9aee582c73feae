"""Says what a program of the author's does: which sources it reads, and which queries it starts. It runs with streams without rows."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional

from ..backend import Backend
from ..errors import describe
from ..permission import analysed_plan
from ..request import StreamRequest
from . import program
from .own_code import AuthorCode, AuthorFailed, refused_at
from .query_starts import no_starts

_STREAM = re.compile(r"\bStreaming\w*Relation")
"""What reads a stream, in an analysed plan."""


class _NoSchema(BaseException):
    """Nobody says which columns a source has. No ``Exception``, which a program may catch."""


class NotHeld(Exception):
    """The program reads a stream in a way in which no sample can take its place."""


class Survey:
    """``message``: a ``ProgramRequest`` of the host."""

    def __init__(self, backend: Backend, message: Dict[str, Any]) -> None:
        self._backend = backend
        self._directory = message["directory"]
        self._called = message["program"]
        self._schemas = message["schemas"]
        self._conf = message["conf"]
        self._record = message.get("record", 0)
        self._recorded: Dict[str, Dict[str, Any]] = {}
        self._code = AuthorCode(message["code"], backend.sends_functions)
        self._sources: List[program.ProgramSource] = []
        self._ddl: Dict[str, Optional[str]] = {}

    def answer(self) -> Dict[str, Any]:
        """The fields of the host's ``ProgramSeen``."""
        self._session = self._backend.new_session()
        error, started, passed_over = None, [], {}
        try:
            for key, value in self._conf.items():
                self._session.conf.set(key, value)
            try:
                with no_starts(self._session):
                    run = self._code.program(self._called, self._session, self._read)
                started, passed_over = run.started, run.passed_over
                queries = [self._query(query) for query in started]
            except AuthorFailed as failed:
                # Only the survey itself knows of columns that nobody does.
                error = None if isinstance(failed.error, _NoSchema) else dict(vars(failed.mistake))
                queries = []
            except Exception as refused:
                error, queries = dict(vars(refused_at(refused, self._code.folders))), []
        finally:
            self._backend.end_session(self._session)
            self._backend.files.discard(self._directory)
        self._code.check_starts()
        sources = [
            {
                "name": s.name,
                "format": s.format,
                "ddl": self._ddl.get(s.name),
                "options": {**(s.options or {}), **({"path": s.path} if s.path is not None else {})},
                "at": s.at,
                **self._recorded.get(s.name, {}),
            }
            for s in self._sources
        ]
        return {"sources": sources, "queries": queries, "error": error, "passedOver": passed_over}

    def _read(self, source: program.ProgramSource) -> Any:
        self._sources.append(source)
        schema = source.known_schema
        self._ddl[source.name] = None if schema is None else self._text(schema)
        if self._record:
            self._recorded[source.name] = self._first_rows(source)
        columns = self._schemas.get(source.name) or self._ddl[source.name]
        if columns is None:
            raise _NoSchema(source.name)
        streams = {source.name: StreamRequest(columns, 1)}
        arrivals = self._backend.arrivals(self._directory + "/streams", streams, None)
        return arrivals.read(self._session.readStream, source.name)

    def _first_rows(self, source: program.ProgramSource) -> Dict[str, Any]:
        """The first rows of the source itself, each as JSON; or why they cannot be read."""
        try:
            # A program of Python has a working directory.
            folders = self._code.folders if "main" in self._called else []
            frame = program.read_once(self._session, source, next(iter(folders), os.getcwd()))
            self._ddl[source.name] = self._ddl[source.name] or self._text(frame.schema)
            return {"rows": program.as_json(frame.limit(self._record))}
        except Exception as error:
            return {"unread": describe(error, "run")["message"].strip().splitlines()[0]}

    def _text(self, schema: Any) -> str:
        if isinstance(schema, str):
            schema = self._session.createDataFrame([], schema).schema
        return program.ddl(schema)

    def _query(self, query: program.Started) -> Dict[str, Any]:
        plan = analysed_plan(self._session, query.frame)
        held = {s.name: "/streams/{}]".format(s.name) for s in self._sources}
        for line in plan.splitlines():
            if _STREAM.search(line) and not any(place in line for place in held.values()):
                raise NotHeld(
                    "a query reads a stream that cannot be held, such as STREAM in SQL: read it with readStream, where a sample takes its "
                    "place"
                )
        reads = [name for name, place in held.items() if place in plan]
        return {
            "name": query.name,
            "outputMode": query.output_mode,
            "trigger": query.trigger,
            "sink": query.sink,
            "at": query.at,
            "reads": reads,
            "options": query.options,
        }
