"""Nothing can be written where a case's files are to be."""

from __future__ import annotations


class StorageFails(Exception):
    """``url``: where; ``why``: as the file system says it."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__("nothing can be written to {}: {}".format(url, why))
