"""The reading of a query of which only the plan is known, because own code built it.

The plan is the text that ``explain(extended=True)`` prints, the only form in which every version from 3.0 on gives it. The names of
the operators are those of Spark's ``statefulOperators.scala`` and ``StreamingSymmetricHashJoinExec``, the same from 3.0 to 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.query.reading import (
    Aggregation,
    Deduplication,
    Join,
    JoinKind,
    Limit,
    Operator,
    QueryReading,
    StateFunction,
    Union,
    Watermark,
    Window,
)

PHYSICAL_PLAN = "== Physical Plan =="
"""The head of the part of an extended plan that says what runs."""

_NODE = re.compile(r"^(?P<indent>[\s:+-]*)(?:\*\s*\(\d+\)\s*)?(?P<name>[A-Za-z]\w*)(?P<arguments>.*)$")
_JOIN_KIND = re.compile(r"\b(Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti)\b")
_JOIN_KINDS: Mapping[str, JoinKind] = {
    "LeftOuter": "leftOuter",
    "RightOuter": "rightOuter",
    "FullOuter": "fullOuter",
    "LeftSemi": "leftSemi",
    "LeftAnti": "leftAnti",
}
_WATERMARK = re.compile(r"(?P<column>[^\s,]+)#\d+[^,]*(?:<.*>)?, (?P<delay>.*)")
_JOINS_WITH_TABLES = ("BroadcastHashJoin", "BroadcastNestedLoopJoin", "ShuffledHashJoin", "SortMergeJoin")
_STATE_FUNCTIONS = re.compile(r"(FlatMapGroups(InPandas)?|MapGroups)WithState|TransformWithState\w*")


@dataclass(frozen=True)
class PlanNode:
    """An operator of a plan."""

    name: str
    arguments: str
    """As they are printed."""
    children: tuple[PlanNode, ...]

    def upwards(self) -> Iterator[PlanNode]:
        """Every operator in the order in which rows pass them."""
        for child in self.children:
            yield from child.upwards()
        yield self


def physical_plan(text: str) -> tuple[PlanNode, ...]:
    """The roots of the physical plan in an extended plan; a printed plan has one."""
    lines = (_NODE.match(line) for line in text.rpartition(PHYSICAL_PLAN)[2].splitlines())
    nodes = [(len(line["indent"]), line["name"], line["arguments"]) for line in lines if line]
    return tuple(_trees(nodes))


def _trees(nodes: list[tuple[int, str, str]]) -> Iterator[PlanNode]:
    while nodes:
        indent, name, arguments = nodes[0]
        below = next((at for at, node in enumerate(nodes) if at and node[0] <= indent), len(nodes))
        yield PlanNode(name, arguments, tuple(_trees(nodes[1:below])))
        nodes = nodes[below:]


def read_plan(text: str) -> QueryReading:
    """Read a query from its extended plan, which shows neither its sources nor its functions."""
    return QueryReading(tuple(of for root in physical_plan(text) for node in root.upwards() for of in _operators(node)))


def _operators(node: PlanNode) -> Iterator[Operator]:
    match node.name:
        case "StateStoreSave" | "SessionWindowStateStoreSave":
            keys = tuple(node.arguments.partition("[")[2].partition("]")[0].split(", "))
            windows = [Window(None, "", None, None, 0, (), filtered=False) for key in keys if key.startswith("window#")]
            if node.name.startswith("Session"):
                windows = [Window("session", "", None, None, 0, (), filtered=False)]
            yield Aggregation(keys, tuple(windows))
        case "StreamingSymmetricHashJoin":
            yield Join(_join_kind(node), "")
        case "StreamingDeduplicate" | "StreamingDeduplicateWithinWatermark":
            yield Deduplication((), within_watermark=node.name.endswith("Watermark"))
        case "Union":
            yield Union()
        case "EventTimeWatermark":
            # From 4.1 on, the id of the operator comes first.
            printed = _WATERMARK.search(node.arguments)
            yield Watermark(None, printed["column"] if printed else "", printed["delay"] if printed else "")
        case "StreamingGlobalLimit":
            yield Limit()
        case name if name in _JOINS_WITH_TABLES:
            yield Join(_join_kind(node), "", stateful=False)
        case name if _STATE_FUNCTIONS.fullmatch(name):
            yield StateFunction(name, "")


def _join_kind(node: PlanNode) -> JoinKind:
    # Behind the lists of keys, in which a column may have any name.
    printed = _JOIN_KIND.search(re.sub(r"\[[^\]]*\]", "", node.arguments))
    return _JOIN_KINDS.get(printed[1], "inner") if printed else "inner"
