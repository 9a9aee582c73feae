"""Where cases come from: half of them drawn anew, half of them changes of cases that reached something new."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from conformance.strategies.cases import Generated, changed, generated
from conformance.strategies.families import chosen

_MOST_ROUNDS = 1_000_000
"""Of one seed; rounds of the next have other seeds."""
_A_ROUND = 12
"""Cases in a round: more make one example of Hypothesis's too long."""


class Drawing:
    """Draws cases, the same ones for the same seed as long as the same ones are remembered.

    Args:
        families: what they are about; the usual ones where there are none.
        seed: any number.

    Raises:
        NoSuchFamily: one of the families.
    """

    def __init__(self, families: Sequence[str], seed: int) -> None:
        self._families = chosen(families)
        self._seed = seed
        self._rounds = 0
        self._remembered: list[Generated] = []

    def remember(self, one: Generated) -> None:
        """Let changes of this case be drawn from now on."""
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
        """Some cases that have nothing to do with each other.

        Hypothesis makes most of its examples by changing the one before. So all of these are drawn in one example, the second:
        the first is always the simplest there is.
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
        # An example that grows too long is broken off: what was drawn until then is there all the same.
        return max(rounds[1:], key=len, default=[])
