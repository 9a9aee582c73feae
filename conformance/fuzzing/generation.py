"""Generates cases: half of them new, half of them mutations of cases that covered something new."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from conformance.strategies.cases import Generated, changed, generated
from conformance.strategies.families import chosen

_MOST_ROUNDS = 1_000_000
"""Per seed, so that the rounds of two seeds never share one."""
_A_ROUND = 12
"""Cases per round: more would make a Hypothesis example too long."""


class Drawing:
    """Generates cases: the same ones for the same seed, as long as the same cases are remembered.

    Args:
        families: what the cases are about; the default families if empty.
        seed: any number.

    Raises:
        NoSuchFamily: a family does not exist.
    """

    def __init__(self, families: Sequence[str], seed: int) -> None:
        self._families = chosen(families)
        self._seed = seed
        self._rounds = 0
        self._remembered: list[Generated] = []

    def remember(self, one: Generated) -> None:
        """Also generate mutations of this case from now on."""
        self._remembered.append(one)

    @property
    def remembered(self) -> int:
        return len(self._remembered)

    def some(self, count: int) -> list[Generated]:
        """The next cases."""
        drawn = generated(self._families)
        if self._remembered:
            drawn = st.one_of(drawn, changed(tuple(self._remembered)))
        found: list[Generated] = []
        while len(found) < count:
            found += self._round(drawn, min(_A_ROUND, count - len(found)))
        return found

    def _round(self, drawn: st.SearchStrategy[Generated], count: int) -> list[Generated]:
        """Some unrelated cases.

        Hypothesis generates most examples by mutating the previous one, so all cases are drawn in one example: the second,
        because the first is always the simplest possible.
        """
        rounds: list[list[Generated]] = []
        number = self._seed * _MOST_ROUNDS + self._rounds
        self._rounds += 1

        @seed(number)
        @settings(
            max_examples=2,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data())
        def collect(data: st.DataObject) -> None:
            rounds.append([])
            while len(rounds[-1]) < count:
                rounds[-1].append(data.draw(drawn))

        collect()
        # Hypothesis aborts an example that grows too long; the cases drawn until then are still there.
        return max(rounds[1:], key=len, default=[])
