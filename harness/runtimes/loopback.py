"""Whether an address is this machine's own, so that whoever listens there sees its files."""

from __future__ import annotations

from urllib.parse import urlsplit

_NAMES = ("127.0.0.1", "localhost", "::1")


def is_loopback(url: str) -> bool:
    """``spark://localhost:7077`` and ``sc://[::1]:15002`` are."""
    return urlsplit(url).hostname in _NAMES
