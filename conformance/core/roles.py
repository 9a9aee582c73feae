"""The roles of the fields of an operation: what a field holds decides how it is written, checked, permitted, shrunk and shown.

Code that asks for roles serves a new operation without a change. ``conformance.language.pipelines`` has the grammar of each.
"""

from dataclasses import MISSING, dataclass, field
from enum import StrEnum
from typing import Any

from conformance.core.data import Json


class Role(StrEnum):
    """What a field holds."""

    STREAM = "the name of a stream"
    STREAMS = "names of streams, whose DataFrames the operation gets"
    COLUMN = "the name of a column that the DataFrame has so far"
    COLUMNS = "names of columns that the DataFrame has so far"
    NEW_COLUMN = "the name of a column that the operation makes"
    DELAY = "the delay of a watermark"
    EXPRESSION = "an expression; the operation names its column if it makes one"
    EXPRESSIONS = "expressions that make columns, named by their aliases"
    SORT_ORDERS = "expressions, each with a direction if wanted"
    STATEMENT = "a SQL query over the views so far"
    INITIAL_STATE = "a SQL query over constants, or the view of the state of a checkpoint"
    ALIAS = "a name for the DataFrame so far"
    VIEW = "the name under which a SQL query reads the DataFrame so far"
    OTHER_PIPELINE = "another pipeline, whose DataFrame the operation gets"
    VIEWS = "names of views, each with the pipeline of its DataFrame"
    CHOICE = "one of several words"
    NUMBER = "a whole number from 1"
    ONLY = "the only value that may be written"
    SCHEMA_OF_STATE = "the columns of state, as DDL"
    TEXT = "any other text"
    TEXTS = "other texts"
    JARS = "a jar, or a list of jars"
    WATERMARKS = "streams, each with the column and the delay of its watermark"
    CELLS = "notebooks, each with the texts of its cells"
    VALUES = "names, each with a text"
    CALLED = "code of the author"


STATEMENTS = (Role.STATEMENT, Role.INITIAL_STATE)
IN_SQL = (Role.EXPRESSION, Role.EXPRESSIONS, Role.SORT_ORDERS, *STATEMENTS)
"""What Spark parses."""
PIPELINES = (Role.OTHER_PIPELINE, Role.VIEWS)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A field of an operation as it is written."""

    role: Role
    description: str
    """What an editor shows for the key; the first field of an operation has the description of its class."""
    kind: str = ""
    """What its text is, or an item of its list, in messages."""
    pattern: str | None = None
    words: tuple[str, ...] = ()
    least: int = 1
    """The fewest items of its list; 0 for a text that may be empty."""
    value: Json = True
    key: str = ""
    """The key under which it is written."""
    name: str = ""
    default: object = None
    """Its value if it is not written; ``MISSING`` if it must be."""

    @property
    def required(self) -> bool:
        return self.default is MISSING


def holds(
    role: Role,
    description: str = "",
    kind: str = "",
    pattern: str | None = None,
    *,
    least: int = 1,
    value: Json = True,
    key: str = "",
    default: Any = MISSING,
    default_factory: Any = MISSING,
) -> Any:
    """Declare a field of an operation; one with a default need not be written."""
    declared = Part(role=role, description=description, kind=kind, pattern=pattern, least=least, value=value, key=key)
    return field(default=default, default_factory=default_factory, metadata={Part: declared})


def chooses(words: tuple[str, ...], kind: str, description: str, *, default: Any = MISSING) -> Any:
    """Declare a field that holds one of several words."""
    declared = Part(role=Role.CHOICE, description=description, kind=kind, words=words)
    return field(default=default, metadata={Part: declared})
