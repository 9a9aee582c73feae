"""A known bug that a version shows: its ticket, the release that fixed it, the one that is clean, its cause and a workaround.

Causes and workarounds are listed in ``known_bugs.yaml`` by ticket, apart from the cases, because they change no expectation: a case with
a better one is still the same case.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Annotated, Any, Self, TypeAlias

from pydantic import Field, StringConstraints, TypeAdapter, model_validator

from conformance.core.data import read_data
from conformance.core.observation import FrozenRecord
from conformance.core.versions import NotAVersion, SparkVersion, VersionRange, falling_into, releases
from conformance.core.wording import ticket
from reports.results.records import Cell, DocumentedDifference

Ticket: TypeAlias = Annotated[str, StringConstraints(pattern=r"^SPARK-[0-9]+$")]
Sentences: TypeAlias = Annotated[str, Field(pattern=r"^[^.].*\.$")]


class Workaround(FrozenRecord):
    """What to do about a bug, and who says so."""

    text: Sentences
    setting: Annotated[str, Field(pattern=r"^spark\.[\w.]+=\S+$")] | None = None
    """``spark.x=y``, if the workaround is a setting."""
    said_by: Annotated[str, Field(alias="source", pattern=r"^(SPARK-[0-9]+|https://\S+|case:\S+)$")]

    @property
    def source(self) -> str:
        """A ticket or a page; empty if a case shows the workaround."""
        return "" if self.case else self.said_by

    @property
    def case(self) -> str | None:
        """The case that shows it."""
        return self.said_by.removeprefix("case:") if self.said_by.startswith("case:") else None

    def __str__(self) -> str:
        return f"{self.text} {self.setting}" if self.setting else self.text


class SourceLines(FrozenRecord):
    """A place in Spark's source."""

    file: Annotated[str, Field(pattern=r"^(sql|core|common)/\S+\.(scala|java)$")]
    method: Annotated[str, Field(pattern=r"^\w+\.\w+$")]
    """With its class: ``StateStoreRDD.compute``."""
    lines: Annotated[str, Field(pattern=r"^[1-9][0-9]*-[1-9][0-9]*$")] | None = None
    """The first and the last, ``155-163``; None if they were not read."""

    @property
    def anchor(self) -> str:
        """``#L155-L163``; empty without lines."""
        return f"#L{self.lines.replace('-', '-L')}" if self.lines else ""


class Cause(FrozenRecord):
    """Why Spark does it, and where its source says so."""

    text: Sentences
    release: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")]
    """The release whose source has the places."""
    places: Annotated[tuple[SourceLines, ...], Field(min_length=1)]

    def address(self, place: SourceLines) -> str:
        """Return the page of Spark's repository that shows the place."""
        return f"https://github.com/apache/spark/blob/v{self.release}/{place.file}{place.anchor}"


BugKey: TypeAlias = tuple[str | None, str | None, str | None]
"""The ticket that reports a bug, the one that introduced it, and the case that shows it if there is neither."""


class ListedBug(FrozenRecord):
    """What is known of a bug beside what its cases say: an entry of ``known_bugs.yaml``."""

    ticket: Ticket | None = None
    introduced_by: Ticket | None = None
    """The ticket that introduced the bug, if no ticket reports it."""
    case: str | None = None
    """The case to report it with; identifies a bug without tickets."""
    title: Annotated[str, Field(pattern=r"^[^\s.].*[^.\s]$")] | None = None
    """What goes wrong, as the title of a report."""
    cause: Cause | None = None
    workaround: Workaround | None = None

    @model_validator(mode="after")
    def _is_about_one_bug(self) -> Self:
        if (self.ticket and self.introduced_by) or not (self.ticket or self.introduced_by or self.case):
            raise ValueError("needs either `ticket` or `introduced_by` or, without both, `case`")
        if self.cause is not None and not (self.title and self.case):
            raise ValueError("needs `title` and `case` beside `cause`")
        return self

    @property
    def key(self) -> BugKey:
        return self.ticket, self.introduced_by, None if self.ticket or self.introduced_by else self.case


def workaround(link: str | None, introduced_by: str | None) -> Workaround | None:
    """Return the workaround for the bug with this ticket, or for one without a ticket that the other ticket introduced."""
    bug = listed_bugs().get((link, introduced_by, None))
    return bug.workaround if bug is not None else None


def explained(case: str, shown: Iterable[DocumentedDifference]) -> tuple[ListedBug, ...]:
    """Return the bugs with a known cause that a case reports or shows.

    A bug without tickets is that of every case of its file, which differ in nothing but their matrix. ``shown``: what is documented
    of the case.
    """
    tickets = {(entry.link, entry.introduced_by) for entry in shown if entry.bug}
    same_file = case.partition(".")[0]

    def concerns(bug: ListedBug) -> bool:
        named = bug.ticket, bug.introduced_by
        return bug.case == case or (named in tickets and (any(named) or str(bug.case).partition(".")[0] == same_file))

    return tuple(bug for bug in listed_bugs().values() if bug.cause is not None and concerns(bug))


@cache
def listed_bugs() -> Mapping[BugKey, ListedBug]:
    """Return the catalogue of known bugs."""
    return read_bugs(read_data("reports.results", "known_bugs.yaml"))


def read_bugs(listed: Any) -> dict[BugKey, ListedBug]:
    """Return the entries by what identifies their bug, each of which has one.

    Raises ValueError: an entry is invalid, or two are about the same bug.
    """
    entries = TypeAdapter(list[ListedBug]).validate_python(listed)
    by_bug = {entry.key: entry for entry in entries}
    if len(by_bug) < len(entries):
        raise ValueError("two entries are about the same bug")
    return by_bug


@dataclass(frozen=True)
class KnownBug:
    """A known bug, as the case documents it."""

    link: str | None
    fixed_in: str | None
    """The first later release on which the case shows no bug; None if every later release has this or another bug."""
    introduced_by: str | None = None
    """The ticket that introduced it, if no ticket reports it."""
    replaced_in: str | None = None
    """The first later release without this one; unless it is ``fixed_in``, the case shows another one there."""

    @classmethod
    def of(cls, cell: Cell | None, spark: str, bugs: Iterable[DocumentedDifference] = ()) -> Self | None:
        """Return the bug that a cell shows; None if it shows none.

        ``spark``: its version, with any vendor suffix; ``bugs``: all that the case shows on some version.
        """
        if cell is None or cell.status != "bug" or cell.differs is None:
            return None
        own = cell.differs
        same = (entry for entry in bugs if (entry.link, entry.introduced_by) == (own.link, own.introduced_by))
        return cls(own.link, _later((own, *bugs), spark), own.introduced_by, _later((own, *same), spark))

    @property
    def ticket(self) -> str:
        return ticket(self.link, self.introduced_by, bug=True)

    @property
    def workaround(self) -> Workaround | None:
        return workaround(self.link, self.introduced_by)

    def __str__(self) -> str:
        if self.fixed_in == self.replaced_in:
            return f"known bug, fixed in {self.fixed_in}" if self.fixed_in else "known bug, not fixed in any release"
        until = f"up to {self.fixed_in}, which has none" if self.fixed_in else "in every later release"
        return f"known bug, fixed in {self.replaced_in}, followed by another one {until}"


BugIdentity: TypeAlias = tuple[str | None, str | None, str | None]
"""The ticket that reports a bug, the one that introduced it, and what the case says if there is neither."""


def identity(entry: DocumentedDifference) -> BugIdentity:
    """Return what entries about one bug have in common: a ticket or, without one, what the case says."""
    return entry.link, entry.introduced_by, None if entry.link or entry.introduced_by else entry.because


def _later(entries: Iterable[DocumentedDifference], spark: str) -> str | None:
    try:
        release = first_outside(" or ".join(entry.spark for entry in entries), SparkVersion.parse(spark))
    except NotAVersion:
        return None
    return str(release) if release is not None else None


def fixes(ranges: Iterable[str]) -> tuple[SparkVersion, ...]:
    """Return the releases that fixed a bug, one for each line in which it was fixed; none if the newest release has it.

    A line whose newest release has the bug was fixed by a later line. ``ranges``: the versions that have it: ``>=3.4,<3.4.4``.
    """
    concerned = _covered(ranges)
    if releases()[-1] in concerned:
        return ()
    return tuple(
        fix
        for before, fix in pairwise(releases())
        if before in concerned
        and not any(later in concerned for later in releases() if later.line == fix.line and later >= fix)
    )


@lru_cache(maxsize=4096)
def first_outside(ranges: str, version: SparkVersion) -> SparkVersion | None:
    """Return the first later release that the ranges of an entry of ``differs`` do not cover; None if they cover all."""
    concerned = _covered([ranges])
    return next((release for release in releases() if release > version and release not in concerned), None)


def _covered(ranges: Iterable[str]) -> frozenset[SparkVersion]:
    return frozenset(falling_into(VersionRange.parse(" or ".join(ranges).split(" or "))))
