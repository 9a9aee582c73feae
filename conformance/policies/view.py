"""What ``conformance policies`` and ``conformance explain --policy`` show of a case: its readings, and the tables of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table
from rich.text import Text

from conformance.core.case import Case
from conformance.policies import tables
from conformance.policies.case import PolicyCase
from conformance.policies.catalogue import POLICIES, comparable, delay_of
from conformance.policies.from_case import trace_of
from conformance.policies.reading import Reading, read
from conformance.policies.trace import Trace

ALL = "all"


@dataclass(frozen=True)
class View:
    """Readings of one trace."""

    trace: Trace
    readings: Sequence[Reading]

    def renderables(self) -> Iterator[Group | Table | Text]:
        """For a rich console: the table of the one reading, or the tables of all side by side, and what was assumed."""
        if len(self.readings) == 1:
            yield tables.one(self.readings[0])
        else:
            yield from tables.beside(self.readings)
        for assumption in self.trace.assumptions:
            yield Text(assumption, style="dim")


def view(case: Case | PolicyCase, policy: str | None = None) -> View:
    """A case read under watermark policies.

    Args:
        case: for Spark, whose first watermark gives the trace and the delay; or on a policy.
        policy: a name of ``known.POLICIES``, or ``all``; where absent, that of the case, and ``spark`` for a case for Spark.
            Another policy than the case's own waits as long as that does.

    Raises:
        NoTrace: no trace can be made of the case.
        UnknownPolicy: there is no policy of that name.
    """
    if isinstance(case, Case):
        made = trace_of(case)
        trace, delay, own = made.trace, made.delay, None
    else:
        own = case.rules()
        trace, delay = case.trace, max(0, delay_of(own))
    wanted = policy or ("spark" if own is None else own.name)
    names = list(POLICIES) if wanted == ALL else [wanted]
    rules = [own if own is not None and name == own.name else comparable(name, delay) for name in names]
    return View(trace, tuple(read(trace, one) for one in rules))
