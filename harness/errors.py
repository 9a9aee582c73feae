"""What goes wrong around a run: a missing Java, an index that does not answer. Never a verdict about an engine."""

from __future__ import annotations

from typing import ClassVar


class HarnessError(RuntimeError):
    """The machine, the network or an installation does not give what a target needs.

    Its text is complete: what was wanted, what was found, and what to do about it.
    """

    exit_code: ClassVar[int] = 3
