"""The base of all errors that a user causes."""

from __future__ import annotations

from typing import ClassVar


class WrongUsage(ValueError):
    """Options, names or files that the user gave are wrong; a command ends with exit code 2."""

    exit_code: ClassVar[int] = 2
