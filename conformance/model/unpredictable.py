"""What the model does not know, said by name instead of guessed."""

from __future__ import annotations


class Unpredictable(Exception):
    """The query uses a construct whose outcome the model does not know.

    Attributes:
        construct: its name: ``transformWithState``, ``function soundex``.
    """

    def __init__(self, construct: str) -> None:
        super().__init__(f"the model does not know {construct}")
        self.construct = construct
