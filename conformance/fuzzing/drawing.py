"""Where cases come from: half of them drawn anew, half of them changes of cases that reached something new."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from conformance.strategies.cases import Generated, changed, generated
from conformance.strategies.families import chosen

_MOST_DRAWN = 100_000
"""Of one seed; batches of the next have other seeds."""


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
        self._batches = 0
        self._remembered: list[Generated] = []

    def remember(self, one: Generated) -> None:
        """Let changes of this case be drawn from now on."""
        self._remembered.append(one)

    @property
    def remembered(self) -> int:
        return len(self._remembered)

    def some(self, count: int) -> list[Generated]:
        """The next cases."""
        found: list[Generated] = []
        drawn = generated(self._families)
        if self._remembered:
            drawn = st.one_of(drawn, changed(tuple(self._remembered)))
        number = self._seed * _MOST_DRAWN + self._batches
        self._batches += 1

        @seed(number)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(drawn)
        def collect(one: Generated) -> None:
            found.append(one)

        collect()
        return found
