"""What a case is found by besides its title: tickets, operators, functions, settings, metrics and error classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from conformance.core import metrics
from conformance.core.case import Case, Expectation
from conformance.policies.case import PolicyCase
from reports.analysis.equivalence import Behaviour

_FUNCTION = re.compile(r"(\w+)\(")
_TICKET = re.compile(r"SPARK-\d+")


def search_words(case: Case | PolicyCase | None, behaviours: Iterable[Behaviour]) -> str:
    """Each word once, in lower case, separated by spaces.

    Args:
        case: None if it was not found.
        behaviours: of the case, on all versions.
    """
    found = [word for one in behaviours for word in _of_behaviour(one)]
    if case is not None:
        found += _TICKET.findall(" ".join(case.links))
    if isinstance(case, Case):
        found += _of_case(case)
    return " ".join(dict.fromkeys(word.lower() for word in found))


def _of_case(case: Case) -> Iterator[str]:
    yield f"{case.output_mode}-mode"
    yield from case.conf
    for operation in case.operations():
        yield operation.name
        yield from _FUNCTION.findall(repr(operation.arguments))
    for step in case.steps:
        if step.expect is not None:
            yield from _metrics(step.expect)


def _metrics(expected: Expectation) -> Iterator[str]:
    if expected.dropped is not None:
        yield metrics.DROPPED.rpartition(".")[2]
    if expected.state is not None:
        yield "numRowsTotal"
    if expected.event_time is not None:
        yield "eventTime"
    yield from (key.rpartition(".")[2] for key in expected.progress or {})


def _of_behaviour(behaviour: Behaviour) -> Iterator[str]:
    for cell in behaviour.cells:
        entry = cell.differs
        if entry is not None:
            yield from _TICKET.findall(f"{entry.link} {entry.introduced_by} {entry.because}")
    seen = behaviour.shown.observation
    for step in seen.steps if seen is not None else ():
        if step.error is not None:
            yield from step.error.classes
