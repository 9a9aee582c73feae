"""Which targets have a state store provider."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.core.versions import StateStore
from harness.errors import HarnessError
from harness.targets.target import Target


class NoSuchStore(HarnessError):
    """No target has the state store provider."""

    def __init__(self, store: StateStore) -> None:
        super().__init__(f"No chosen version has the state store {store.name!r}; Spark {store.versions} has it.")
        self.store = store


def having(store: StateStore, targets: Sequence[Target]) -> tuple[Target, ...]:
    """The targets that have this state store provider, in the same order.

    Raises:
        NoSuchStore: none has it.
    """
    found = tuple(target for target in targets if store.on(target.version))
    if not found:
        raise NoSuchStore(store)
    return found
