"""The analysed plan of a job: its watermarks, its first operator that keeps state, and the places whose rows an engine is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from conformance.core.intervals import NotAnInterval, parse_interval
from conformance.core.observation import Observation
from conformance.query.reading import (
    PHYSICAL_PLAN,
    PlanCall,
    PlanNode,
    analyzed_plan,
    expressions,
    physical_plan,
    read_calls,
    watermark_of,
)

TITLES = {
    "Aggregate": "the aggregation",
    "Deduplicate": "the deduplication",
    "Distinct": "the deduplication",
    "DeduplicateWithinWatermark": "the deduplication",
    "Join": "the join",
}
"""The operators that keep state, but for those with functions of the author's → what each is."""
_ATTRIBUTE = re.compile(r"[^\s,()\[\]{}]+?#\d+")
_ID = re.compile(r"#\d+")
_NUMBER = re.compile(r"#\d+L?(-T\d+ms)?")
_EVENT_TIME = re.compile(r"[^(]*#\d+L?-T\d+ms")
_GROUPING = (
    "StateStoreSave",
    "SessionWindowStateStoreSave",
    "StreamingDeduplicate",
    "StreamingDeduplicateWithinWatermark",
)
"""The operators of a physical plan that keep state by key, beside functions ``…WithState``."""
_COLLECTS = re.compile(r"(?<!sort_array\()(?<!array_sort\()\b(collect_list|collect_set|array_agg)\(")


class OperatorInput(NamedTuple):
    """An input of an operator, as the driver finds it: the operator's name, its number among those of this name from the top, and the
    number of the input."""

    operator: str
    number: int
    child: int = 0

    def __str__(self) -> str:
        return " ".join(map(str, self))


WHOLE = OperatorInput("Query", 0)
"""In place of an input: what the query itself emits."""


@dataclass(frozen=True)
class PlanWatermark:
    input: OperatorInput
    """Its rows before the watermark."""
    column: str
    delay: str
    expression: str
    """What gives the column; its name if the source has it."""
    node: PlanNode

    @property
    def delay_ms(self) -> int | None:
        """The delay; None if it is no interval."""
        try:
            return parse_interval(self.delay).delay_ms
        except NotAnInterval:
            return None


@dataclass(frozen=True)
class JobPlan:
    text: str
    """An extended plan, or the message of an error with a plan."""

    @classmethod
    def of(cls, seen: Observation) -> JobPlan:
        """Return the first plan that an engine told; without one, a plan without operators."""
        return cls(next((step.plan for step in seen.steps if step.plan), ""))

    @cached_property
    def nodes(self) -> tuple[PlanNode, ...]:
        """The operators from the top."""
        return tuple(node for root in analyzed_plan(self.text) for node in root.downwards())

    @cached_property
    def watermarks(self) -> tuple[PlanWatermark, ...]:
        made = list[PlanWatermark]()
        for number, node in enumerate(self._named("EventTimeWatermark")):
            read = watermark_of(node)
            marked = re.search(rf"{re.escape(read.column)}#\d+", node.arguments)
            expression = _made_by(node, marked[0]) if marked else read.column
            made.append(PlanWatermark(OperatorInput(node.name, number), read.column, read.delay, expression, node))
        return tuple(made)

    @property
    def delay_ms(self) -> int | None:
        """The longest delay; None without a watermark."""
        return max((mark.delay_ms for mark in self.watermarks if mark.delay_ms is not None), default=None)

    @cached_property
    def in_no_order(self) -> frozenset[str]:
        """The columns with an array whose order Spark does not promise: ``collect_list`` or ``collect_set`` makes it, or what it comes of.

        Source: the note of both functions in Spark's documentation of SQL functions: "The function is non-deterministic because the
        order of collected results depends on the order of the rows which may be non-deterministic after a shuffle."
        """
        return self.columns_by(_COLLECTS.search)

    def columns_by(self, makes: Callable[[str], object]) -> frozenset[str]:
        """Return the columns with an expression for which ``makes`` is true, or made of such a column."""
        numbers, names = set[str](), set[str]()
        for node in reversed(self.nodes):
            for text in expressions(node.arguments):
                made, _, column = text.rstrip("] ").rpartition(" AS ")
                if makes(made) or not numbers.isdisjoint(_ID.findall(made)):
                    numbers.update(_ID.findall(column))
                    names.add(without_numbers(column))
        return frozenset(names)

    @cached_property
    def stateful(self) -> tuple[PlanNode, ...]:
        """The operators that keep state, from the top."""
        nodes = tuple(node for node in self.nodes if node.name in TITLES or "WithState" in node.name)
        if PHYSICAL_PLAN not in self.text:
            return tuple(node for node in nodes if node.name != "Join" or all(map(_is_stream, node.children)))

        grouping = [node for node in self._physical if node.name in _GROUPING or "WithState" in node.name]

        def of_tables(node: PlanNode) -> bool:
            """The analysed plan of a query that ran does not tell tables from streams; the physical one has those of streams only."""
            of_kind = [other for other in nodes if (other.name == "Join") == (node.name == "Join")]
            keeping = self.joins if node.name == "Join" else grouping
            unmarked = not all(map(self.marks, node.children)) and bool(self.watermarks)
            return len(keeping) < len(of_kind) and (unmarked or not keeping)

        return tuple(node for node in nodes if not of_tables(node))

    @cached_property
    def _physical(self) -> tuple[PlanNode, ...]:
        return tuple(node for root in physical_plan(self.text) for node in root.downwards())

    @cached_property
    def joins(self) -> tuple[PlanNode, ...]:
        """The joins of streams in the physical plan."""
        return tuple(node for node in self._physical if node.name == "StreamingSymmetricHashJoin")

    @cached_property
    def first(self) -> PlanNode | None:
        """The operator that keeps state and whose rows come from no other such operator; None unless there is exactly one."""
        lowest = [node for node in self.stateful if not self.is_above_state(node)]
        return lowest[0] if len(lowest) == 1 else None

    def is_above_state(self, node: PlanNode) -> bool:
        """Return whether rows of an operator come from another one that keeps state."""
        return any(other in self.stateful for other in _below(node))

    def inputs(self, node: PlanNode) -> tuple[OperatorInput, ...]:
        number = next(at for at, other in enumerate(self._named(node.name)) if other is node)
        return tuple(OperatorInput(node.name, number, child) for child in range(len(node.children)))

    def marks(self, side: PlanNode) -> tuple[PlanWatermark, ...]:
        """Return the watermarks among an operator and those below it."""
        return tuple(mark for mark in self.watermarks if any(node is mark.node for node in side.downwards()))

    def _named(self, name: str) -> Iterator[PlanNode]:
        return (node for node in self.nodes if node.name == name)


_CHANCE = frozenset({"rand", "randn", "randstr", "random", "shuffle", "uniform", "uuid"})
CLOCK = "current_batch_timestamp"
"""What a plan shows of each function that asks the clock."""


def not_fixed(plan: str, other: str = "") -> Iterator[PlanCall]:
    """Yield the calls in a plan that ask chance or the clock; a seed that the plan of another version has too is one of the author's."""
    seeded = {call.text for call in read_calls(plan)} & {call.text for call in read_calls(other)}
    for call in read_calls(plan):
        if call.function == CLOCK or (call.function in _CHANCE and call.text not in seeded):
            yield call


def keys_of(node: PlanNode) -> tuple[str, ...]:
    """Return the keys of an aggregation or the columns of a deduplication, as they are printed."""
    first, depth = node.arguments.strip(), 0
    for at, sign in enumerate(first):
        depth += (sign == "[") - (sign == "]")
        if not depth:
            return _listed(first[: at + 1])
    return ()


def is_event_time(key: str) -> bool:
    """Return whether a printed key is a column with a watermark, or a window of it: an expression of it has none."""
    return _EVENT_TIME.fullmatch(key) is not None


def without_numbers(text: str) -> str:
    return _NUMBER.sub("", text)


def _listed(text: str) -> tuple[str, ...]:
    """Return the expressions of a list in brackets."""
    return tuple(item.strip() for item in "\0".join(expressions(text))[1:-1].split("\0") if item.strip())


def _is_stream(side: PlanNode) -> bool:
    return any(node.name.startswith("Streaming") for node in side.downwards())


def _below(node: PlanNode) -> Iterator[PlanNode]:
    for child in node.children:
        yield from child.downwards()


def _made_by(node: PlanNode, column: str) -> str:
    """Return the expression that gives a column, through projections that rename it."""
    for below in _below(node):
        for text in _listed(below.arguments.strip()) if below.name == "Project" else ():
            made, sign, name = text.rpartition(" AS ")
            if sign and re.fullmatch(rf"{re.escape(column)}L?(-T\d+ms)?", name):
                if not _ATTRIBUTE.fullmatch(made):
                    return without_numbers(made)
                column = made
    return without_numbers(column)
