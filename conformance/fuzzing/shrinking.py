"""Shrinks a case: applies reductions, each of which removes or simplifies one thing, as long as it still shows the difference."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise
from typing import TypeAlias

from conformance.core.case import Case
from conformance.core.data import Json
from conformance.core.intervals import parse_interval
from conformance.core.operations import GroupBy, Join, Operation, read_operation, read_pipeline
from conformance.core.roles import Role
from conformance.core.spark_types import DataType, parse_schema
from conformance.core.values import NotAValue, canonical, show
from conformance.language import case_from
from conformance.language.printing import printed
from conformance.language.source import InvalidCase
from conformance.query.syntax import NotReadable, expression, window_call
from conformance.query.syntax import written as sql_of
from conformance.strategies.traces import rows_of

WrittenCase: TypeAlias = dict[str, Json]
Reduction: TypeAlias = Callable[[WrittenCase], Iterator[WrittenCase]]

_TIMESTAMP = DataType("timestamp")
_DAY_US = 86_400_000_000
_ROUND_US = (3_600_000_000, 600_000_000, 60_000_000, 10_000_000, 1_000_000, 1_000)
_NEAR_US = 1_000_000
_DELAYS = ("0 seconds", "1 second", "10 seconds", "1 minute", "10 minutes", "1 hour")
_DEFAULTS = {"outputMode": "append", "trigger": "default"}
_SIMPLEST: Mapping[str, tuple[Json, ...]] = {"string": ("a", "b"), "int": (1, 2), "bigint": (1, 2)}

Cost: TypeAlias = tuple[int, int, int, int, int, str]


def cost(written: WrittenCase) -> Cost:
    """The size of a case to a reader: steps, rows, operations and settings, then the text."""
    text = printed({key: value for key, value in written.items() if key != "title"})
    operations = len([*_operations(written)])
    settings = len(written.get("conf", {})) + sum(written.get(key, usual) != usual for key, usual in _DEFAULTS.items())
    rows = sum(len(rows) + 1 for _, _, rows in arrivals(written))
    return len(written["steps"]), rows, operations, settings, len(text), text


def _fewer_steps(written: WrittenCase) -> Iterator[WrittenCase]:
    steps = written["steps"]
    size = len(steps)
    while size >= 1:
        for first in range(len(steps) - size, -1, -1):
            if left := [*steps[:first], *steps[first + size :]]:
                yield _tidy({**written, "steps": left})
        size //= 2


def _merged_steps(written: WrittenCase) -> Iterator[WrittenCase]:
    steps = written["steps"]
    for place, (step, other) in enumerate(pairwise(steps)):
        if "add" in step and "add" in other:
            names = dict.fromkeys([*step["add"], *other["add"]])
            both = {name: [*rows_of(step["add"].get(name, [])), *rows_of(other["add"].get(name, []))] for name in names}
            yield {**written, "steps": [*steps[:place], {"add": both}, *steps[place + 2 :]]}


def _fewer_arrivals(written: WrittenCase) -> Iterator[WrittenCase]:
    """Remove the rows of a stream in a micro-batch, a micro-batch of a backlog, or a backlog of one."""
    for number, step in enumerate(written["steps"]):
        for at, entry in enumerate(step.get("backlog", ())):
            entries = step["backlog"]
            yield _with_step(written, number, {"backlog": [*entries[:at], *entries[at + 1 :]]})
            if len(entries) == 1:
                yield _with_step(written, number, {"add": entry})
        if "backlog" in step:
            yield _with_step(written, number, {"add": step["backlog"][0]})
    for path, name, _ in [*arrivals(written)]:
        changed = deepcopy(written)
        del _at(changed, path)[name]
        yield changed


def _fewer_rows(written: WrittenCase) -> Iterator[WrittenCase]:
    for path, name, rows in [*arrivals(written)]:
        if not isinstance(_at(written, path)[name], list):
            yield _replaced(written, path, name, rows)
        if rows:
            yield _replaced(written, path, name, [])
        for place in range(len(rows)):
            yield _replaced(written, path, name, [*rows[:place], *rows[place + 1 :]])


def _simpler_query(written: WrittenCase) -> Iterator[WrittenCase]:
    for pipeline in _simpler(written["query"]):
        yield _tidy({**written, "query": pipeline})
    for number, step in enumerate(written["steps"]):
        restart = step.get("restart")
        if isinstance(restart, Mapping) and "query" in restart.get("change", {}):
            for pipeline in _simpler(restart["change"]["query"]):
                change = {**restart["change"], "query": pipeline}
                yield _with_step(written, number, {"restart": {**restart, "change": change}})
    # Remove an operation that all queries of the case share from all of them at once.
    queries = [*_pipelines(written)]
    if len(queries) > 1:
        for operation in queries[0][1:]:
            changed = deepcopy(written)
            for query in _pipelines(changed):
                if operation in query:
                    query.remove(operation)
            yield _tidy(changed)


def _simpler(pipeline: Sequence[Json]) -> Iterator[list[Json]]:
    for place in range(len(pipeline) - 1, 0, -1):
        yield [*pipeline[:place], *pipeline[place + 1 :]]
    for place, written in enumerate(pipeline):
        operation = read_operation(written)
        for smaller in _simpler_operation(operation):
            yield [*pipeline[:place], smaller.wire(), *pipeline[place + 1 :]]
        for part, value in operation.values():
            if part.role is Role.OTHER_PIPELINE:
                # Keep only the other side.
                yield [*value.wire(), *pipeline[place + 1 :]]
                for nested in _simpler(value.wire()):
                    yield [*pipeline[:place], {**written, part.key: nested}, *pipeline[place + 1 :]]
            elif part.role is Role.VIEWS:
                for name, view in value.items():
                    for nested in _simpler(view.wire()):
                        views = {**written[part.key], name: nested}
                        yield [*pipeline[:place], {**written, part.key: views}, *pipeline[place + 1 :]]


def _simpler_operation(operation: Operation) -> Iterator[Operation]:
    for part, value in operation.values():
        if part.role not in (Role.COLUMNS, Role.EXPRESSIONS, Role.SORT_ORDERS):
            continue
        may_be_empty = part.role is Role.EXPRESSIONS and not part.least
        if len(value) > 1 or (value and may_be_empty):
            for place in range(len(value)):
                yield operation.with_values(**{part.name: (*value[:place], *value[place + 1 :])})
        for place, item in enumerate(value):
            if plain := _with_tumbling_window(item):
                yield operation.with_values(**{part.name: (*value[:place], plain, *value[place + 1 :])})
    match operation:
        case GroupBy():
            yield replace(operation, agg=("count(*) AS n",))
        case Join(how=how, on=on):
            if how not in (None, "inner"):
                yield replace(operation, how="inner")
            conditions = on.split(" AND ")
            for place in range(len(conditions)) if len(conditions) > 1 else ():
                yield replace(operation, on=" AND ".join([*conditions[:place], *conditions[place + 1 :]]))


def _with_tumbling_window(text: str) -> str | None:
    """The expression with tumbling windows only; None if it has no others."""
    try:
        tree = expression(text).copy()
    except NotReadable:
        return None
    calls = [call for call in map(window_call, tree.walk()) if call and len(call.expressions) > 2]
    for call in calls:
        call.set("expressions", call.expressions[:2])
    return sql_of(tree) if calls else None


def _simpler_settings(written: WrittenCase) -> Iterator[WrittenCase]:
    for name in written.get("conf", {}):
        conf = {key: value for key, value in written["conf"].items() if key != name}
        yield {key: value for key, value in {**written, "conf": conf}.items() if key != "conf" or conf}
    for key, usual in _DEFAULTS.items():
        if written.get(key, usual) != usual:
            yield {**written, key: usual}
        if key in written:
            yield {name: value for name, value in written.items() if name != key}


def _simpler_steps(written: WrittenCase) -> Iterator[WrittenCase]:
    for number, step in enumerate(written["steps"]):
        if (restart := step.get("restart")) is None:
            continue
        how = restart["how"] if isinstance(restart, Mapping) else restart
        if isinstance(restart, Mapping):
            yield _with_step(written, number, {"restart": how})
            if "add" in restart:
                yield _with_step(written, number, {"add": restart["add"]})
        if how != "graceful":
            yield _with_step(written, number, {"restart": "graceful"})


def _fewer_columns(written: WrittenCase) -> Iterator[WrittenCase]:
    named = json.dumps([*_pipelines(written)])
    for stream, ddl in written["streams"].items():
        columns = [part.strip() for part in ddl.split(",")]
        for place, column in enumerate(columns):
            if len(columns) == 1 or re.search(rf"\b{re.escape(column.split()[0])}\b", named):
                continue
            changed = deepcopy(written)
            changed["streams"][stream] = ", ".join([*columns[:place], *columns[place + 1 :]])
            for path, name, rows in [*arrivals(changed)]:
                if name == stream:
                    left = [[*row[:place], *row[place + 1 :]] for row in rows]
                    changed = _replaced(changed, path, name, left)
            yield changed


def _moved_to_epoch(written: WrittenCase) -> Iterator[WrittenCase]:
    """Shift the whole trace by days to 1970-01-01, and to noon on that day."""
    times = [*_times(written)]
    if times:
        days = min(times) // _DAY_US
        hours = (min(times) % _DAY_US - _DAY_US // 2) // 3_600_000_000
        for shift in (days * _DAY_US + hours * 3_600_000_000, days * _DAY_US):
            if shift:
                yield _with_times(written, lambda at, shift=shift: at - shift)  # type: ignore[misc]


def _simpler_delays(written: WrittenCase) -> Iterator[WrittenCase]:
    """Replace a delay; also move the rows that were one delay behind others to the new distance."""
    for delay in sorted({value for operation in _operations(written) for _, value in operation.values(Role.DELAY)}):
        for simpler in _DELAYS:
            if simpler == delay:
                continue
            changed = deepcopy(written)
            for query in _pipelines(changed):
                query[:] = read_pipeline(query).changed(partial(_with_delay, delay, simpler)).wire()
            yield changed
            long, short = parse_interval(delay).delay_us, parse_interval(simpler).delay_us
            times = [*_times(written)]
            behind = {at for at in times if any(abs(other - long - at) <= _NEAR_US for other in times)}
            if behind:
                nearer = {at: at + long - short for at in behind}
                yield _with_times(changed, lambda at, nearer=nearer: nearer.get(at, at))  # type: ignore[misc]


def _with_delay(delay: str, other: str, operation: Operation) -> Operation:
    for part, value in operation.values(Role.DELAY):
        if value == delay:
            operation = operation.with_values(**{part.name: other})
    return operation


def _simpler_times(written: WrittenCase) -> Iterator[WrittenCase]:
    """Replace a time by a rounder one or that of another row; equal times stay equal."""
    times = sorted({*_times(written)})
    for time in reversed(times):
        rounder = [time // unit * unit + up for unit in _ROUND_US for up in (0, unit)]
        for other in dict.fromkeys([*times, *rounder]):
            if len(show(other)) <= len(show(time)) and other != time:
                yield _with_times(written, lambda at, time=time, other=other: other if at == time else at)  # type: ignore[misc]


def _simpler_values(written: WrittenCase) -> Iterator[WrittenCase]:
    schemas = {name: parse_schema(ddl) for name, ddl in written["streams"].items()}
    for path, name, rows in [*arrivals(written)]:
        for number, row in enumerate(rows):
            for place, field in enumerate(schemas[name].fields):
                for plain in _SIMPLEST.get(field.type.name, ()):
                    if row[place] != plain:
                        changed = [*row[:place], plain, *row[place + 1 :]]
                        yield _replaced(written, path, name, [*rows[:number], changed, *rows[number + 1 :]])


def _pipelines(written: WrittenCase) -> Iterator[list[Json]]:
    yield written["query"]
    for step in written["steps"]:
        restart = step.get("restart")
        if isinstance(restart, Mapping) and "query" in restart.get("change", {}):
            yield restart["change"]["query"]


def _operations(written: WrittenCase) -> Iterator[Operation]:
    return chain.from_iterable(read_pipeline(query).walk() for query in _pipelines(written))


Path: TypeAlias = tuple[str | int, ...]


def arrivals(written: Mapping[str, Json]) -> Iterator[tuple[Path, str, list[Json]]]:
    """Every arrival: its path in the case, its stream and its rows."""
    for number, step in enumerate(written["steps"]):
        places: list[tuple[Path, Mapping[str, Json]]] = []
        if "add" in step:
            places.append((("steps", number, "add"), step["add"]))
        for at, entry in enumerate(step.get("backlog", ())):
            places.append((("steps", number, "backlog", at), entry))
        if isinstance(step.get("restart"), Mapping) and "add" in step["restart"]:
            places.append((("steps", number, "restart", "add"), step["restart"]["add"]))
        for path, arrival in places:
            for name, arriving in arrival.items():
                yield path, name, [*rows_of(arriving)]


def _at(written: WrittenCase, path: Path) -> Json:
    place: Json = written
    for part in path:
        place = place[part]
    return place


def _replaced(written: WrittenCase, path: Path, name: str, rows: Json) -> WrittenCase:
    changed = deepcopy(written)
    _at(changed, path)[name] = rows
    return changed


def _with_step(written: WrittenCase, number: int, step: Json) -> WrittenCase:
    return _tidy({**written, "steps": [*written["steps"][:number], step, *written["steps"][number + 1 :]]})


def _tidy(written: WrittenCase) -> WrittenCase:
    read = {stream for query in _pipelines(written) for stream in read_pipeline(query).streams()}
    if read == set(written["streams"]):
        return written
    changed = deepcopy(written)
    changed["streams"] = {name: ddl for name, ddl in written["streams"].items() if name in read}
    for path, name, _ in [*arrivals(written)]:
        if name not in read:
            del _at(changed, path)[name]
    return changed


def _times(written: WrittenCase) -> Iterator[int]:
    for _, _, rows in arrivals(written):
        for row in rows:
            yield from (at for value in row if (at := _instant(value)) is not None)


def _with_times(written: WrittenCase, other: Callable[[int], int]) -> WrittenCase:
    changed = deepcopy(written)
    for path, name, rows in [*arrivals(written)]:
        placed = _at(changed, path)
        if isinstance(placed[name], list):
            placed[name] = [[_moved(value, other) for value in row] for row in rows]
        else:
            parts = placed[name]["partitions"]
            placed[name] = {"partitions": [[[_moved(value, other) for value in row] for row in part] for part in parts]}
    return changed


def _moved(value: Json, other: Callable[[int], int]) -> Json:
    at = _instant(value)
    return value if at is None else show(other(at))


def _instant(value: Json) -> int | None:
    """The instant of a value; None if it is not one. Keys of generated rows are not instants."""
    try:
        return int(canonical(value, _TIMESTAMP)) if isinstance(value, str) else None
    except NotAValue:
        return None


REDUCTIONS: tuple[Reduction, ...] = (
    _fewer_steps,
    _merged_steps,
    _fewer_arrivals,
    _fewer_rows,
    _simpler_query,
    _simpler_settings,
    _simpler_steps,
    _fewer_columns,
    _moved_to_epoch,
    _simpler_delays,
    _simpler_times,
    _simpler_values,
)
"""Each yields smaller cases of one kind; those with the largest gain come first."""


StillDiffers: TypeAlias = Callable[[Sequence[Case]], Sequence[bool]]
"""For each case, whether it still shows the difference."""


def shrunk(
    written: WrittenCase,
    differs: StillDiffers,
    *,
    at_once: int = 1,
    smaller: Callable[[WrittenCase], None] = lambda _: None,
) -> WrittenCase:
    """A case that no single reduction makes smaller without losing the difference, which ``smaller`` gets on the way.

    ``at_once``: how many cases to check at a time: as many as engines run in parallel.
    """
    tried: set[str] = set()

    def untried(candidates: Iterable[WrittenCase], than: WrittenCase) -> Iterator[tuple[int, WrittenCase, Case]]:
        limit = cost(than)
        for place, candidate in enumerate(candidates):
            if cost(candidate) >= limit or (text := printed(candidate)) in tried:
                continue
            tried.add(text)
            with suppress(InvalidCase):
                yield place, candidate, case_from(candidate, "smaller")

    def first(candidates: Iterable[WrittenCase], than: WrittenCase) -> tuple[int, WrittenCase] | None:
        left = untried(candidates, than)
        while batch := [*islice(left, at_once)]:
            shown = differs([case for _, _, case in batch])
            for (place, candidate, _), still in zip(batch, shown, strict=True):
                if still:
                    return place, candidate
        return None

    while True:
        before = written
        for reduction in REDUCTIONS:
            done = 0
            # After a success, continue at the same place.
            while success := first(islice(reduction(written), done, None), written):
                place, written = success
                done += place
                smaller(written)
        if written is before:
            return written
