"""The addresses of pages and of places on them, in a folder of files or in one file, and of sources elsewhere.

Pages have keys: ``index``, ``matrix``, ``behaviours``, ``about``, ``compare/3.5.9..4.3.0``, ``case/late-drops/x``.
"""

import hashlib
import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Self, TypeAlias
from urllib.parse import quote, urlsplit

_TICKET = re.compile(r"SPARK-[0-9]+")
_TICKETS = "https://issues.apache.org/jira/browse/"


@dataclass(frozen=True)
class SourceLink:
    """A source with its label and, if it has one, its link."""

    label: str
    href: str | None
    """The address, http or https; None for a name."""

    @classmethod
    def of(cls, text: str) -> Self:
        if _TICKET.fullmatch(text):
            return cls(text, _TICKETS + text)
        if not text.startswith(("https://", "http://")):
            return cls(text, None)
        try:
            parts = urlsplit(text)
        except ValueError:
            return cls(text, None)
        where = parts.fragment.replace("-", " ") or parts.path.strip("/").rpartition("/")[2]
        return cls(f"{parts.netloc.removeprefix('www.')} – {where}" if where else parts.netloc, text)


_SAFE = re.compile(r"[A-Za-z0-9._-]{1,100}")
_FOLDERS = {"case": "cases"}


def slug(text: str) -> str:
    """Return the text as part of a file name and of an address; valid on every system."""
    if _SAFE.fullmatch(text) and not text.startswith(".") and not text.endswith("."):
        return text
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:60]
    return f"{readable}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}".lstrip("-")


def case_key(case: str) -> str:
    return "/".join(["case", *(slug(part) for part in case.split("/"))])


def pair_name(before: str, after: str) -> str:
    return f"{short(before)}..{short(after)}"


def compare_key(before: str, after: str) -> str:
    return f"compare/{pair_name(before, after)}"


def short(target: str) -> str:
    return slug(target.removeprefix("spark-"))


def upgrade_files(before: str, after: str) -> tuple[str, str, str]:
    """Name the files about one upgrade: its page, its picture, and the changes to accept."""
    name = f"{short(before)}-{short(after)}"
    return f"upgrade-{name}.html", f"upgrade-{name}.svg", f"accepted-{name}.yaml"


@lru_cache
def _relative(file: str, folder: str) -> str:
    """Return the address of a file for a link in a folder. Every page of a folder has the same tabs."""
    return quote(posixpath.relpath(file, folder))


@dataclass(frozen=True)
class InAFolder:
    feed: str = "bugs.atom"
    upgrades: str = "upgrades"

    def file(self, key: str) -> str:
        """Return the path of the page, relative to the folder of the report."""
        head, *rest = key.split("/")
        return "/".join([_FOLDERS.get(head, head), *rest]) + ".html"

    def page(self, key: str, seen_from: str, place: str = "") -> str:
        """Return the address of a page, or of a place on it, for a link on ``seen_from``."""
        fragment = f"#{quote(place)}" if place else ""
        if key == seen_from and place:
            return fragment
        return _relative(self.file(key), posixpath.dirname(self.file(seen_from)) or ".") + fragment

    def id(self, key: str, place: str) -> str:  # noqa: ARG002 – places of other pages are in other files
        return place

    def parts(self, key: str) -> str:
        """Return the file with the parts that a page shares with others of its folder; empty at the top, where pages are whole."""
        folder = posixpath.dirname(self.file(key)).partition("/")[0]
        return f"{folder}/shared.js" if folder else ""

    def asset(self, name: str, seen_from: str) -> str:
        return posixpath.relpath(name, posixpath.dirname(self.file(seen_from)) or ".")


@dataclass(frozen=True)
class InOneFile:
    """Every page is a section of one document; the fragment of the address selects it."""

    feed: None = None
    """There is no feed, and no page of one upgrade."""
    upgrades: None = None

    def page(self, key: str, seen_from: str, place: str = "") -> str:  # noqa: ARG002 – the address is the same on every page
        return f"#{quote(self.id(key, place), safe='/:')}"

    def id(self, key: str, place: str) -> str:
        return f"{key}:{place}" if place else key

    def parts(self, key: str) -> str:  # noqa: ARG002 – there is no other file
        return ""

    def asset(self, name: str, seen_from: str) -> str:  # noqa: ARG002
        return name


Addresses: TypeAlias = InAFolder | InOneFile
