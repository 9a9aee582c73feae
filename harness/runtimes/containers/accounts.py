"""Which user of an image a driver runs as: one that is not root, and that the image can name."""

from __future__ import annotations

from dataclasses import dataclass

_OFFICIAL = 185
"""Of the user ``spark`` in Apache's images."""


@dataclass(frozen=True)
class Account:
    """A line of ``/etc/passwd``."""

    name: str
    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"


def accounts(passwd: str) -> tuple[Account, ...]:
    """The accounts in the text of an ``/etc/passwd``; lines that are none are passed over."""
    found = []
    for line in passwd.splitlines():
        parts = line.split(":")
        if len(parts) >= 4 and parts[2].isdigit() and parts[3].isdigit():
            found.append(Account(parts[0], int(parts[2]), int(parts[3])))
    return tuple(found)


def choose(passwd: str, configured: str) -> Account | None:
    """The image's own user, else ``spark``, else ``nobody``; None where the image names nobody but root.

    Hadoop's login asks the system for the user's name and fails without one, so a number that ``/etc/passwd`` does not
    know will not do. Images of Spark 3.1 and 3.2 run as such a number, those of 3.3 as root.

    Args:
        passwd: the text of the image's ``/etc/passwd``.
        configured: the user in the image's configuration: empty, ``spark``, ``185`` or ``185:0``.
    """
    known = [account for account in accounts(passwd) if account.uid != 0]
    own = configured.partition(":")[0]
    preferences = (
        lambda account: own in (account.name, str(account.uid)),
        lambda account: account.uid == _OFFICIAL,
        lambda account: account.name == "nobody",
    )
    return next((account for fits in preferences for account in known if fits(account)), None)
