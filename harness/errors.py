"""The base of all errors that are not verdicts about an engine."""

from __future__ import annotations

from typing import ClassVar


class HarnessError(RuntimeError):
    """The machine, the network, an installation or the harness itself failed; exit code 3.

    The text is complete: what was needed, what was found, and what to do about it.
    """

    exit_code: ClassVar[int] = 3
