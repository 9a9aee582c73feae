"""Stream-stream joins: matches, null rows, and the state of each side. Sources: SPARK-22136, "Join Operations" of the guide."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.model.catalyst.spark_plan import constant_of
from conformance.model.columns import Attribute, Row, Value
from conformance.model.errors import Unpredictable
from conformance.model.expressions import Expression, all_of, conjuncts, evaluate
from conformance.model.join_bounds import PRESERVED, Equality, KeyBound, bounds, equalities
from conformance.model.lateness import compared_row, event_time_among, is_evicted, late_and_fresh
from conformance.model.operators import OperatorContext, OperatorResult
from conformance.model.plan import Join
from conformance.model.rules import Rules

JoinKey = tuple[Value, ...]


@dataclass(frozen=True)
class StoredRow:
    """A row in the state of a side: its values in column order, and whether it has matched."""

    values: tuple[Value, ...]
    matched: bool


JoinState = Mapping[str, Mapping[JoinKey, tuple[StoredRow, ...]]]
"""Side, ``left`` or ``right`` → key → its rows."""

EMPTY: JoinState = {"left": {}, "right": {}}
_OTHER = {"left": "right", "right": "left"}


def join(
    node: Join,
    left: Sequence[Row],
    right: Sequence[Row],
    state: JoinState,
    context: OperatorContext,
    visible: frozenset[int],
) -> OperatorResult:
    """One micro-batch of a join: the left rows against the state of the right side, then the right rows against the left state.

    Of the columns of both sides only the visible ones are left in the plan.
    """
    run = _JoinRun(node, state, context)
    fresh: dict[str, list[Row]] = {}
    late = []
    for (name, columns), rows in zip(run.columns.items(), (left, right), strict=True):
        time = event_time_among([column for column in columns if column.id in visible], context.rules)
        late_rows, fresh[name] = late_and_fresh(rows, time, context)
        late += [compared_row(row, columns, time, context.late_ms) for row in late_rows]
    emitted = [*run.arrive("left", fresh["left"]), *run.arrive("right", fresh["right"])]
    if context.rules.outer_emits_null_row == "once, if no partner is in the state":
        run.match_with_what_is_stored()
    gone = []
    for name, columns in run.columns.items():
        for row, matched, time in run.evict(name):
            gone.append(compared_row(row, columns, time, context.evicting_ms))
            if name in PRESERVED[node.how] and (not matched or context.rules.outer_emits_null_row == "always"):
                emitted.append(run.with_nulls(name, row))
    if context.rules.outer_emits_null_row == "if unmatched, each batch":
        emitted += run.unmatched()
    kept = run.state()
    return OperatorResult(
        rows=_with_current_constants(emitted, node, context),
        state=kept,
        state_rows=sum(len(rows) for side in kept.values() for rows in side.values()),
        late=tuple(late),
        dropped=len(late),
        evicted=tuple(gone),
        updated=len(fresh["left"]) + len(fresh["right"]),
        removed=len(gone),
        shown=tuple(
            compared_row(run.row(name, stored), run.columns[name], None, context.evicting_ms)
            for name, side in kept.items()
            for rows in side.values()
            for stored in rows
        ),
    )


def _with_current_constants(rows: list[Row], node: Join, context: OperatorContext) -> list[Row]:
    """The rows with constant columns from the plan of this micro-batch, on versions that do so (SPARK-47840)."""
    constants = {
        column.id: evaluate(constant, {})
        for side in node.children
        for column in side.columns
        if (constant := constant_of(column.id, side, context.silent, context.rules)) is not None
    }
    if not constants or context.rules.constant_columns_of_joins == "of the state":
        return rows
    if node.how != "inner":
        raise Unpredictable("a constant column of an outer join")
    return [{**row, **constants} for row in rows]


def check_runs(node: Join, silent: frozenset[str], rules: Rules) -> None:
    """Raises ``Refused`` if the condition has no equality, and ``Unpredictable`` if a key is a constant on a version with SPARK-47840."""
    pairs = [pair for pair in equalities(node) if not pair.null_safe or rules.null_safe_keys != "are none"]
    constant = [_has_constant(pair, node, silent, rules) for pair in pairs]
    lost = all(constant) and node.how in ("inner", "leftSemi")
    if not pairs or (lost and rules.constant_columns_of_joins == "of the present plan"):
        raise rules.refusal("join without equality")
    if any(constant) and rules.constant_keys == "of the present plan":
        raise Unpredictable("a constant key of a join")


def _has_constant(pair: Equality, node: Join, silent: frozenset[str], rules: Rules) -> bool:
    """Whether a constant replaces a key, so that the equality is lost (`FoldablePropagation`)."""
    return any(
        key.kind == "column" and constant_of(key.value, side, silent, rules) is not None
        for key, side in ((pair.left, node.left), (pair.right, node.right))
    )


class _JoinRun:
    """The sides of a join during a micro-batch."""

    def __init__(self, node: Join, state: JoinState, context: OperatorContext) -> None:
        self._node = node
        self._context = context
        self._rules = context.rules
        self._equal = equalities(node)
        self._alone, self._rest = _condition_parts(node, self._equal)
        self.columns = {"left": node.left.columns, "right": node.right.columns}
        self._sides = {name: {key: list(rows) for key, rows in side.items()} for name, side in state.items()}
        self._bounds = dict(zip(self.columns, bounds(node), strict=True))

    def state(self) -> JoinState:
        return {name: {key: tuple(rows) for key, rows in side.items() if rows} for name, side in self._sides.items()}

    def row(self, name: str, stored: StoredRow) -> Row:
        return dict(zip((column.id for column in self.columns[name]), stored.values, strict=True))

    def arrive(self, name: str, rows: Sequence[Row]) -> Iterator[Row]:
        """Match each row with the state of the other side, and store it."""
        alone = self._alone[name]
        for row in rows:
            if not evaluate(alone, row):
                if self._rules.rows_that_cannot_match != "come out at once":
                    self._store(name, self._key(name, row), row, matched=False)
                elif name in PRESERVED[self._node.how]:
                    yield self.with_nulls(name, row)
                continue
            key = self._key(name, row)
            pairs = list(self._matches(name, key, row))
            yield from pairs
            semi_is_done = self._node.how == "leftSemi" and name == "left" and bool(pairs)
            if not semi_is_done and (not self._is_evicted(name, key, row) or self._rules.stores_rows_that_go_at_once):
                self._store(name, key, row, matched=bool(pairs))

    def _matches(self, name: str, key: JoinKey, row: Row) -> Iterator[Row]:
        other = _OTHER[name]
        # Other joins filter rows with a null key; a full outer join stores them and finds them by their bytes.
        if None in key and self._node.how != "fullOuter":
            return
        stored_rows = self._sides[other].get(key, [])
        semi = self._node.how == "leftSemi"
        for place, stored in enumerate(list(stored_rows)):
            self._context.effort.add()
            theirs = self.row(other, stored)
            if not evaluate(self._rest, {**theirs, **row}):
                continue
            if semi and (name == "left" or not stored.matched):
                if name == "left":
                    yield row
                    return
                yield theirs
            elif not semi:
                yield {**theirs, **row}
            stored_rows[place] = replace(stored, matched=True)
        if semi and name == "right" and self._rules.semi_forgets_matched_rows:
            stored_rows[:] = [stored for stored in stored_rows if not stored.matched]

    def _store(self, name: str, key: JoinKey, row: Row, *, matched: bool) -> None:
        values = tuple(row[column.id] for column in self.columns[name])
        self._sides[name].setdefault(key, []).append(StoredRow(values, matched))

    def match_with_what_is_stored(self) -> None:
        """Take a row for matched if it has a partner in the state now, not if it ever had one."""
        sides = {name: {key: list(rows) for key, rows in side.items()} for name, side in self._sides.items()}
        for name, other in _OTHER.items():
            for key, stored_rows in self._sides[name].items():
                stored_rows[:] = [
                    replace(
                        stored,
                        matched=None not in key
                        and any(
                            evaluate(self._rest, {**self.row(other, theirs), **self.row(name, stored)})
                            for theirs in sides[other].get(key, [])
                        ),
                    )
                    for stored in stored_rows
                ]

    def evict(self, name: str) -> list[tuple[Row, bool, Attribute | None]]:
        """Evict rows: each with whether it had matched, and the column that decided."""
        gone = []
        bound = self._bounds[name]
        ids = {column.id for column in self.columns[name]}
        decided = bound.column if bound is not None and bound.column.id in ids else None
        for key, stored_rows in self._sides[name].items():
            kept: list[StoredRow] = []
            over: list[StoredRow] = []
            for stored in stored_rows:
                (over if self._is_evicted(name, key, self.row(name, stored)) else kept).append(stored)
            stored_rows[:] = kept
            if self._rules.evicted_rows_share_a_buffer and over:
                over = [replace(stored, values=over[-1].values) for stored in over]
            gone += [(self.row(name, stored), stored.matched, decided) for stored in over]
        return gone

    def unmatched(self) -> list[Row]:
        return [
            self.with_nulls(name, self.row(name, stored))
            for name in PRESERVED[self._node.how]
            for stored_rows in self._sides[name].values()
            for stored in stored_rows
            if not stored.matched
        ]

    def with_nulls(self, name: str, row: Row) -> Row:
        return {**dict.fromkeys(column.id for column in self.columns[_OTHER[name]]), **row}

    def _key(self, name: str, row: Row) -> JoinKey:
        return tuple(_key_value(pair, name, row, self._rules) for pair in self._equal)

    def _is_evicted(self, name: str, key: JoinKey, row: Row) -> bool:
        bound = self._bounds[name]
        if bound is None:
            return False
        watermark_ms = self._context.evicting_ms
        if isinstance(bound, KeyBound):
            return is_evicted(key[bound.place], bound.column, watermark_ms, self._rules)
        time = row[bound.column.id]
        return time is not None and self._rules.join_state_goes(
            time, bound.state_watermark_ms(watermark_ms, self._rules)
        )


def _key_value(pair: Equality, side: str, row: Row, rules: Rules) -> Value:
    """The value of a key. That of ``<=>`` is not null: Spark joins on ``coalesce(key, <default>)`` and ``key IS NULL``."""
    value = evaluate(pair.left if side == "left" else pair.right, row)
    return (value is None, value) if pair.null_safe and rules.null_safe_keys == "match nulls" else value


def _condition_parts(node: Join, equal: Sequence[Equality]) -> tuple[Mapping[str, Expression], Expression]:
    """The conditions on each side alone, and the rest of the condition without the equalities."""
    pairs = {frozenset((pair.left, pair.right)) for pair in equal}
    rest = [
        part
        for part in conjuncts(node.condition)
        if not (part.kind == "call" and part.name in ("=", "<=>") and frozenset(part.args) in pairs)
    ]
    alone = {}
    for name, side in (("left", node.left), ("right", node.right)):
        own = [part for part in rest if part.references and part.references <= {column.id for column in side.columns}]
        alone[name] = all_of(own)
        rest = [part for part in rest if part not in own]
    return alone, all_of(rest)
