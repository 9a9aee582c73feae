"""The base of all errors that are not verdicts about an engine."""

import errno
import os
import re
from typing import ClassVar

_OF_THE_MACHINE = re.compile(
    "|".join(
        os.strerror(code)
        for code in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    )
    # What a JVM says in words of its own.
    + "|[Cc]ould not (?:reserve|allocate)|[Ii]nsufficient memory|unable to create (?:new )?native thread|No usable temporary directory"
)


def machine_cause(text: str) -> str | None:
    """The last line of a program in which it says that this machine, or a limit of this process, is at fault; None without it."""
    lines = (line.strip() for line in reversed(text.splitlines()))
    return next((line.removeprefix("Caused by: ") for line in lines if _OF_THE_MACHINE.search(line)), None)


class HarnessError(RuntimeError):
    """The machine, the network, an installation or the harness itself failed; exit code 3.

    The text is complete: what was needed, what was found, and what to do about it.
    """

    exit_code: ClassVar[int] = 3
