"""The roles of the fields of an operation: what a field holds, which decides how it is written, checked, permitted, shrunk and shown.

``conformance.language.pipelines`` has the grammar of each. Code that asks for roles serves a new operation without a change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from conformance.core.data import Json


@dataclass(frozen=True)
class _Described:
    description: str = ""
    """What an editor shows for the key; the first field of an operation has the description of its class."""


@dataclass(frozen=True)
class Stream(_Described):
    """The name of a stream."""


@dataclass(frozen=True)
class Streams(_Described):
    """Names of streams, whose DataFrames the operation gets."""


@dataclass(frozen=True)
class Column(_Described):
    """The name of a column that the DataFrame has so far."""

    may_be_empty: bool = False


@dataclass(frozen=True)
class Columns(_Described):
    """Names of columns that the DataFrame has so far."""

    at_least: int = 0


@dataclass(frozen=True)
class NewColumn(_Described):
    """The name of a column that the operation makes."""


@dataclass(frozen=True)
class Delay(_Described):
    """The delay of a watermark."""


@dataclass(frozen=True)
class Expression(_Described):
    """An expression, whose column the operation names itself if it makes one."""


@dataclass(frozen=True)
class Expressions(_Described):
    """Expressions that each make a column, under the alias of the expression if it has one."""

    at_least: int = 0


@dataclass(frozen=True)
class SortOrders(_Described):
    """Expressions, each with a direction if wanted."""


@dataclass(frozen=True)
class Statement(_Described):
    """A SQL query."""

    reads_state: bool = False
    """Whether it may read the view of the state of a checkpoint."""


@dataclass(frozen=True)
class Alias(_Described):
    """A name for the DataFrame so far; the kind says of what."""

    kind: str = "an alias"


@dataclass(frozen=True)
class OtherPipeline(_Described):
    """Another pipeline, whose DataFrame the operation gets."""


@dataclass(frozen=True)
class Views(_Described):
    """Names of views, each with the pipeline of its DataFrame."""


@dataclass(frozen=True)
class Choice(_Described):
    """One of several words."""

    kind: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Number(_Described):
    """A whole number from 1."""


@dataclass(frozen=True)
class Only(_Described):
    """The only value that may be written."""

    value: Json = True


@dataclass(frozen=True)
class SchemaOfState(_Described):
    """The columns of state, as DDL."""


@dataclass(frozen=True)
class Text(_Described):
    """Any other text."""

    kind: str = ""
    pattern: str | None = None
    may_be_empty: bool = False


@dataclass(frozen=True)
class Texts(_Described):
    """A list of other texts."""

    kind: str = ""
    item: Text = field(default_factory=Text)
    at_least: int = 0


@dataclass(frozen=True)
class Jars(_Described):
    """A jar, or a list of jars."""


@dataclass(frozen=True)
class Watermarks(_Described):
    """Streams, each with the column and the delay of its watermark."""


@dataclass(frozen=True)
class Called(_Described):
    """Code of the author."""


Role: TypeAlias = (
    Stream
    | Streams
    | Column
    | Columns
    | NewColumn
    | Delay
    | Expression
    | Expressions
    | SortOrders
    | Statement
    | Alias
    | OtherPipeline
    | Views
    | Choice
    | Number
    | Only
    | SchemaOfState
    | Text
    | Texts
    | Jars
    | Watermarks
    | Called
)
