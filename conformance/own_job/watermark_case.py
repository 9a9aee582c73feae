"""Builds a case in Python: a function or another job of one's own, its streams, and steps with what they must show."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from conformance.core.case import Case
from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.language.reader import case_from
from conformance.language.source import InvalidCase
from conformance.own_job.case_run import CaseResult, run_case
from conformance.own_job.job_case import FUNCTION

Job: TypeAlias = Callable[..., Any] | str | Mapping[str, Json]
"""A function of the session and a DataFrame for each stream, which returns a DataFrame; or what `call` says in the case language."""


CaseRunner: TypeAlias = Callable[["WatermarkCase", "str | None"], CaseResult]
"""Runs a case that was built on a version; raises `NotAsExpected` if the result is not as expected."""


class NotACase(WrongUsage):
    """The calls do not make a case; the message says which step is wrong and how to fix it."""


def run_alone(case: WatermarkCase, spark: str | None) -> CaseResult:
    """Run a case in an engine of its own; see `run_case` for errors."""
    if case.recorded:
        raise NotACase("expect_recorded() needs a test to write beside: use the pytest fixture watermark_case")
    code = [case.function.folder] if case.function.folder is not None else []
    return run_case(case.checked_case(), spark=spark or "newest", allow_code=True, code=code)


@dataclass(frozen=True)
class Function:
    """A function of a module, or what else a case can call, as engines find it."""

    name: str
    called: Json
    """What `call` says."""
    folder: Path | None = None
    """Where its module is; None if only the folders of the project's code say it."""
    streams: tuple[str, ...] | None = None
    """The parameters after the session; None if it takes any number."""

    @classmethod
    def of(cls, function: Job) -> Function:
        """Find how an engine, which is another process, imports the function; raise NotACase if it cannot."""
        if isinstance(function, str):
            if FUNCTION.fullmatch(function) is None:
                raise NotACase(
                    f'{function!r} is not module:function; name a program as {{"program": "jobs/clicked.py"}}, a main method as '
                    '{"main": "acme.Main"}'
                )
            return cls(function, function)
        if isinstance(function, Mapping):
            names = [str(function[kind]) for kind in ("program", "main", "jvm") if kind in function]
            return cls(names[0] if names else "SQL", _plain(function))
        name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", "")
        file = getattr(sys.modules.get(module), "__file__", None)
        if not name.isidentifier() or file is None or module == "__main__":
            raise NotACase(
                f"{name or function!r}: an engine must be able to import the function: "
                "define it with `def` at the top level of a module, and import it from there"
            )
        path = Path(file).resolve()
        package = len(module.split(".")) - (0 if path.name == "__init__.py" else 1)
        parameters = list(inspect.signature(function).parameters.values())
        takes_any = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
        streams = tuple(parameter.name for parameter in parameters[1:] if parameter.kind is not parameter.VAR_KEYWORD)
        named = f"{module}:{name}"
        return cls(named, named, path.parents[package], None if takes_any else streams)


@dataclass(frozen=True)
class WatermarkCase:
    """A case on a job of one's own. Every method returns another case, so a beginning can be shared.

    Attributes:
        function: the query under test.
        streams: stream → DDL schema, in the order in which a function takes them.
        steps: as in the YAML.
        keys: other top-level keys of the case language: ``outputMode``, ``conf``, ``trigger``.
        recorded: whether the expectations are those of a recorded file.
    """

    function: Function
    streams: Mapping[str, str]
    steps: tuple[Mapping[str, Json], ...] = ()
    keys: Mapping[str, Json] = field(default_factory=dict)
    recorded: bool = False
    runner: CaseRunner = field(default=run_alone, repr=False, compare=False)
    _not_run: dict[int, WatermarkCase] = field(default_factory=dict, repr=False, compare=False)
    """The cases with this dictionary that no other case continues, and that were not run, by the ids of their objects."""

    def __post_init__(self) -> None:
        self._not_run[id(self)] = self

    def _derived(self, **changes: Any) -> WatermarkCase:
        self._not_run.pop(id(self), None)
        return replace(self, **changes)

    def add(self, /, **rows: Sequence[Sequence[Any]]) -> WatermarkCase:
        """Rows that arrive in one micro-batch: ``add(orders=[("12:01", "ada", 1.5)])``; then the engine runs until idle.

        Args:
            rows: by stream, in the order of its columns. A value is as in the case language; dates, times and decimals may also
                be Python's. A stream that is missing has nothing new.
        """
        return self._with_step({"add": _plain(rows)})

    def idle(self) -> WatermarkCase:
        """Nothing arrives; the engine runs until idle."""
        return self._with_step({"idle": {}})

    def restart(self, how: str = "graceful") -> WatermarkCase:
        """Stop the query, and start it again from its checkpoint; ``how``: ``graceful``, ``crash-before-commit`` or ``kill``."""
        return self._with_step({"restart": how})

    def expect(self, **expected: Any) -> WatermarkCase:
        """What the last step must show, in the keys of the case language: ``expect(rows=[], watermark="11:51", dropped=1)``.

        A step without it, or without ``rows``, must emit no rows.

        Raises:
            NotACase: there is no step, or it has an expectation already.
        """
        if not self.steps:
            raise NotACase("expect(…) is about the step before it: call add(…), idle() or restart() first")
        *before, last = self.steps
        if "expect" in last:
            raise NotACase(f"step {len(self.steps)} has an expectation already: give all its keys in one expect(…)")
        if self.recorded:
            raise NotACase("expect(…) and expect_recorded() exclude each other: remove one")
        return self._derived(steps=(*before, {**last, "expect": _plain(expected)}))

    def expect_recorded(self) -> WatermarkCase:
        """Compare every step with what ``pytest --conformance-update`` has recorded, in a test; NotACase if a step has an expectation."""
        if any("expect" in step for step in self.steps):
            raise NotACase("expect(…) and expect_recorded() exclude each other: remove one")
        return self._derived(recorded=True)

    def output_mode(self, mode: str) -> WatermarkCase:
        """``append``, ``update`` or ``complete``; ``append`` without this."""
        return self._derived(keys={**self.keys, "outputMode": mode})

    def conf(self, settings: Mapping[str, str | int | bool]) -> WatermarkCase:
        """Spark SQL settings of the case, laid over those of earlier calls."""
        return self._derived(keys={**self.keys, "conf": {**self.keys.get("conf", {}), **settings}})

    def run(self, spark: str | None = None) -> CaseResult:
        """Run the case.

        Args:
            spark: a version (``3.5.9``), a line (``3.5``), ``newest`` or ``installed``; None for the newest that runs here or, with
                the pytest fixture, for the version of the test.

        Raises:
            NotAsExpected: what Spark did is not as expected.
            NotACase, WrongUsage: the case or the version is wrong.
        """
        return self.runner(self, spark)

    def written(self) -> dict[str, Json]:
        """The case, structured like its YAML."""
        call = {"call": self.function.called, "with": list(self.streams)}
        return {
            "title": f"{self.function.name} does what is expected",
            "strength": "observed",
            "streams": dict(self.streams),
            "query": [call],
            **self.keys,
            "steps": [dict(step) for step in self.steps],
        }

    def case(self) -> Case:
        """The case, as the reader of the case language makes it; NotACase names every problem, and its step."""
        id = re.sub("[:/]", ".", self.function.name.removesuffix(".py"))
        try:
            # There is no file, so no finding has a line.
            return case_from(self.written(), id, steps_as_lines=True).model_copy(update={"lines": {}})
        except InvalidCase as invalid:
            problems = (
                (f"step {problem.line}: " if problem.line else "", problem.message) for problem in invalid.problems
            )
            raise NotACase("\n".join(map("".join, problems))) from None

    def checked_case(self) -> Case:
        """The case, which must expect something; NotACase if it expects nothing, or has a problem."""
        if not any("expect" in step for step in self.steps):
            raise NotACase(
                f"{self.function.name}: the case expects nothing: "
                "say what with expect(…), or let pytest --conformance-update write it down with expect_recorded()"
            )
        return self.case()

    def _with_step(self, step: Mapping[str, Json]) -> WatermarkCase:
        return self._derived(steps=(*self.steps, step))


def watermark_case(build: Job, /, **streams: str) -> WatermarkCase:
    """A case on a job of one's own, to which steps are added.

    Args:
        build: ``build(spark, orders, …)``, at the top level of a module that engines can import; or what `call` says in the case
            language: ``"module:function"``, ``{"program": "jobs/clicked.py", "arguments": ["--day", "1"]}``, ``{"main": "acme.Main"}``,
            ``{"sql": ["SELECT …"]}`` or ``{"jvm": "acme.Jobs.clicked"}``.
        streams: the DDL schema of each stream, by the name of its parameter, source or table.

    Raises:
        NotACase: an engine cannot import the function, or it takes other streams.
    """
    function = Function.of(build)
    if function.streams is None:
        return WatermarkCase(function, dict(streams))
    wanted = f"{function.name} takes the streams {', '.join(function.streams) or '(none)'}"
    for name in streams:
        if name not in function.streams:
            raise NotACase(f"{wanted}, not {name}: name each schema as the parameter")
    if missing := [name for name in function.streams if name not in streams]:
        such = f'such as {missing[0]}="time TIMESTAMP, n INT"'
        raise NotACase(f"{wanted}: give the schema of {', '.join(missing)}, {such}")
    return WatermarkCase(function, {name: streams[name] for name in function.streams})


def _plain(value: Any) -> Json:
    """A Python value as the YAML has it; NotACase if YAML has no such value."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return moment.isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | int | float | Decimal):
        return value
    what = f"{value!r} is a {type(value).__name__}"
    raise NotACase(f"{what}, which no case can hold: write a text, a number, a date, a list")
