"""How many cases each piece of ``conformance/model/catalyst`` buys: cases that the model no longer predicts rightly without it.

    python -m benchmarks.catalyst_pieces

One run over all cases and versions finds the cases in which a piece does anything; these run again with the piece switched off. A case
counts if the model then disagrees with it, or no longer predicts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from conformance.core.case import Case
from conformance.model.catalyst.spark_plan import SparkPlan
from conformance.oracle.cross_check import CrossCheck, cross_check
from conformance.suite import discovery
from harness.targets.targets import Targets

Function = Callable[..., Any]
_CATALYST = "conformance.model.catalyst"


@dataclass(frozen=True)
class Piece:
    """A function of the imitation, and what takes its place when the piece is off."""

    name: str
    places: tuple[str, ...]
    """Where the function is called from, as ``module.name``."""
    off: Function
    acts: Callable[[Any, Any], bool] = lambda first, result: bool(result != first)
    """Whether a call did anything, by its first argument and its result."""


def _same(first: Any, *_: Any, **__: Any) -> Any:
    return first


def _as_iterable(*_: Any) -> Iterator[Any]:
    return iter(())


PIECES = (
    Piece("filters placed", (f"{_CATALYST}.spark_plan.optimized",), _same),
    Piece(
        "filters inferred by joins", (f"{_CATALYST}.optimizer.inferred",), _as_iterable, lambda _, found: bool(found)
    ),
    Piece("empty sides of joins", (f"{_CATALYST}.spark_plan.with_empty_sides",), _same),
    Piece(
        "constants of the present plan",
        ("conformance.model.joins.constant_of", "conformance.model.aggregation.constant_of"),
        lambda *_: None,
        lambda _, found: found is not None,
    ),
    Piece("types of state", (f"{_CATALYST}.spark_plan.SparkPlan.check_reads_state_of",), lambda *_: None),
    Piece("NOT NULL columns of state", (f"{_CATALYST}.spark_plan.SparkPlan.check_not_null",), lambda *_: None),
    Piece(
        "stores of another operator",
        (f"{_CATALYST}.spark_plan.SparkPlan.opens_store_of_another",),
        lambda *_, **__: False,
        lambda _, found: bool(found),
    ),
)


@contextmanager
def _replaced(piece: Piece, by: Callable[[Function], Function]) -> Iterator[None]:
    with ExitStack() as stack:
        for place in piece.places:
            owner, name = place.rsplit(".", 1)
            function = (
                getattr(SparkPlan, name)
                if owner.endswith("SparkPlan")
                else getattr(__import__(owner, fromlist=[name]), name)
            )
            stack.enter_context(patch(place, by(function)))
        yield


def _watched(function: Function, piece: Piece, acted: set[str]) -> Function:
    def watched(first: Any, *rest: Any, **named: Any) -> Any:
        try:
            result = function(first, *rest, **named)
        except Exception:
            acted.add(piece.name)
            raise
        if isinstance(result, Iterator):
            result = tuple(result)
        if not isinstance(first, SparkPlan) and piece.acts(first, result):
            acted.add(piece.name)
        return result

    return watched


def main() -> None:
    """Print the table."""
    versions = [target.version for target in Targets.load().entries]
    cases = discovery.load(None).cases
    usual: dict[str, CrossCheck] = {}
    concerned: dict[str, list[Case]] = {piece.name: [] for piece in PIECES}
    with ExitStack() as stack:
        acted: set[str] = set()
        for piece in PIECES:
            stack.enter_context(_replaced(piece, lambda function, piece=piece: _watched(function, piece, acted)))
        for case in cases:
            acted.clear()
            usual[case.id] = cross_check([case], versions)
            for name in acted:
                concerned[name].append(case)
    print("| piece | cases in which it acts | cases it buys | which (up to six) |\n|---|---|---|---|", flush=True)
    for piece in sorted(PIECES, key=lambda piece: len(concerned[piece.name])):
        bought = []
        with _replaced(piece, lambda _, piece=piece: piece.off):
            for case in concerned[piece.name]:
                without = cross_check([case], versions)
                before = usual[case.id]
                if (
                    without.disagreements
                    or without.not_predicted != before.not_predicted
                    or without.cells != before.cells
                ):
                    bought.append(case.id)
        names = ", ".join(bought[:6])
        print(f"| {piece.name} | {len(concerned[piece.name])} | {len(bought)} | {names} |", flush=True)


if __name__ == "__main__":
    main()
