"""Which targets have a state store provider."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.core.state_stores import StateStore
from harness.errors import HarnessError
from harness.targets.target import Target


class NoSuchStore(HarnessError):
    """None of the targets has the state store provider.

    Attributes:
        store: the provider that was asked for.
    """

    def __init__(self, store: StateStore) -> None:
        super().__init__(
            f"No version that was asked for has the state store {store.name!r}: Spark {store.versions} has it."
        )
        self.store = store


def having(store: StateStore, targets: Sequence[Target]) -> tuple[Target, ...]:
    """The targets whose Spark has this state store provider, in their order.

    Raises:
        NoSuchStore: none of them has it.
    """
    found = tuple(target for target in targets if store.on(target.version))
    if not found:
        raise NoSuchStore(store)
    return found
