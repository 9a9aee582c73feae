"""What an expression says without an engine: mistakes of its syntax, the columns that it reads, and the column that it makes.

Whoever asks gets an answer only where it is certain: what a rule here does not know is taken for right.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

from conformance.core.data import read_data
from conformance.core.spark_types import DataType, Field, NotAType, parse_type
from conformance.core.values import INTEGERS
from conformance.core.wording import nearest, similar

TokenKind: TypeAlias = Literal["word", "quoted", "text", "number", "mark", "end"]

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    # In a raw string, r'\d', a backslash escapes nothing; one that would escape a quote elsewhere is left out: before 3.4 it does.
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[rR](?:'(?:[^'\\]|\\[^'])*'|\"(?:[^\"\\]|\\[^\"])*\"))"
    r"|(?P<quoted>`(?:[^`]|``)*`)"
    r"|(?P<number>\d+\.\d+(?:[eE][+-]?\d+)?\w*|\d\w*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<mark><=>|->|=>|<=|>=|<>|!=|!<|!>|==|<<|>>>?|\|\||::|[-+*/%^&|~!<>=(),.\[\]:])",
    re.DOTALL | re.ASCII,
)
_NOT_READ = (
    (re.compile(r"\$\{"), "`${…}` stands for a setting or a variable of the environment"),
    (re.compile(r"--|/\*"), "a comment: write it as a YAML comment"),
    (
        re.compile(r"[rR](?='(?:[^'\\]|\\[^'])*\\'|\"(?:[^\"\\]|\\[^\"])*\\\")"),
        "a raw string with a backslash before a quote",
    ),
    (re.compile(r"\|>"), "the pipe operator `|>`"),
    (re.compile(r";"), "`;`: write one statement, without an end"),
)
_QUOTES = {"'": "a string", '"': "a string", "`": "a quoted name"}


@dataclass(frozen=True)
class Token:
    kind: TokenKind
    text: str
    offset: int
    """The position of its first character in the whole text, from 0."""

    @property
    def name(self) -> str:
        """A word or a quoted name in lower case; empty for any other token."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`").lower()
        return self.text.lower() if self.kind == "word" else ""

    @property
    def keyword(self) -> str:
        """A word in lower case; empty for any other token: a quoted name is never a keyword."""
        return self.text.lower() if self.kind == "word" else ""

    def is_mark(self, *marks: str) -> bool:
        return self.kind == "mark" and self.text in marks


class NotTokenized(ValueError):
    """The text has something that is not read here; ``offset`` is its position, from 0."""

    def __init__(self, offset: int, reason: str, *, is_mistake: bool = False) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason
        self.is_mistake = is_mistake
        """Whether Spark cannot read it either."""


@lru_cache(4096)
def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the tokens of an expression or a statement, and an ``end``; raise `NotTokenized` for what is not read, such as a comment."""
    # Spark replaces variables before it reads the text, in strings too.
    if variable := _NOT_READ[0][0].search(text):
        raise NotTokenized(variable.start(), _NOT_READ[0][1])
    read = []
    at = 0
    while at < len(text):
        for pattern, reason in _NOT_READ:
            if pattern.match(text, at):
                raise NotTokenized(at, reason)
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup is None:
            if text[at] in _QUOTES:
                reason = f"{_QUOTES[text[at]]} is not closed: {text[at]} has no counterpart"
                raise NotTokenized(at, reason, is_mistake=True)
            raise NotTokenized(at, f"unexpected {text[at]!r} in Spark SQL")
        if token.lastgroup != "space":
            read.append(Token(token.lastgroup, token[0], at))  # type: ignore[arg-type]  # the groups are the kinds
        at = token.end()
    tokens = (*read, Token("end", "", len(text)))
    closing(tokens)
    return tokens


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def closing(tokens: tuple[Token, ...]) -> dict[int, int]:
    """Return by the index of each opening bracket that of its counterpart; raise `NotTokenized` if a bracket has none."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.is_mark("(", "["):
            opened.append(index)
        elif token.is_mark(")", "]"):
            if not opened or tokens[opened[-1]].text + token.text not in ("()", "[]"):
                reason = f"{token.text!r} has no counterpart: is a bracket missing before it?"
                raise NotTokenized(token.offset, reason, is_mistake=True)
            pairs[opened.pop()] = index
    if opened:
        left = tokens[opened[-1]]
        reason = f"{left.text!r} is not closed: is a bracket missing at the end?"
        raise NotTokenized(left.offset, reason, is_mistake=True)
    return pairs


BEGINNINGS = ("select", "with", "values")
"""The words with which a query begins."""
CALLING_WORDS = words(
    "all as between by cross delay distinct else end escape except filter from group having inner intersect interval is join lateral "
    "limit minus of offset on order outer over partition select sets then union using values where within xor "
    "dec numeric float real double decimal varchar character char string binary"
)
"""Words of the grammar, and types, that may stand before ``(``; none of them calls anything."""


@dataclass(frozen=True)
class Functions:
    allowed: frozenset[str]
    needs_code: Mapping[str, str]
    """Function → why a case may call it only with ``--allow-code``."""


@cache
def functions() -> Functions:
    written: dict[str, Any] = read_data("conformance.language", "sql_functions.yaml")
    return Functions(frozenset(written["allowed"]), written["needs_code"])


def calls(tokens: tuple[Token, ...]) -> Iterator[int]:
    """Yield the indices of the names that are called: words and quoted names before ``(`` that are neither grammar nor an alias."""
    for index, token in enumerate(tokens[:-1]):
        if not token.name or not tokens[index + 1].is_mark("(") or token.keyword in CALLING_WORDS:
            continue
        if index == 0 or tokens[index - 1].keyword != "as" or not _names_only(tokens, index + 2):
            yield index


def _names_only(tokens: tuple[Token, ...], index: int) -> bool:
    """Return whether only names and numbers stand before the next ``)``: the columns of an alias, or the arguments of a type."""
    while tokens[index].name or tokens[index].kind == "number" or tokens[index].is_mark(","):
        index += 1
    return tokens[index].is_mark(")")


TIMESTAMP, STRING, INT, BIGINT, DOUBLE = (DataType(name) for name in ("timestamp", "string", "int", "bigint", "double"))
WINDOW = DataType("struct", (Field("start", TIMESTAMP), Field("end", TIMESTAMP)))

UNITS = frozenset(
    unit + plural
    for unit in words("year quarter month week day hour minute second millisecond microsecond nanosecond dayofyear")
    for plural in ("", "s")
)
_GRAMMAR = UNITS | words(
    "all and any as asc between both by case cross current current_date current_time current_timestamp current_user delay "
    "desc distinct div else end escape except exists false filter first following from full group having ilike in inner "
    "intersect interval is join last lateral leading left like limit localtime localtimestamp minus natural not null nulls "
    "of offset on or order outer over partition preceding range regexp right rlike row rows select semi some then to "
    "trailing true unbounded union using values watermark when where with within anti user session_user rollup cube sets "
    "grouping ties collate placing for"
)
"""Words that are not column names, or are often something else."""
_CLAUSES = words("from where group having order limit union except intersect")
_NEED_MORE = words("and or not from where by on join select having between like when then else union")
_BETWEEN_OPERANDS = words("and or then else when end is in like between from where having limit")
_BINARY = words("= == <=> <> != !< !> < <= > >= << >> >>> * / % ^ & | || . :: + -")
_SAME_TYPE = words("min max first last any_value first_value last_value max_by min_by mode lag lead")
_RESULTS: Mapping[str, DataType] = {
    "window": WINDOW,
    "session_window": WINDOW,
    **dict.fromkeys(("window_time", "timestamp_seconds", "timestamp_millis", "timestamp_micros"), TIMESTAMP),
    **dict.fromkeys(("count", "count_if", "approx_count_distinct"), BIGINT),
    **dict.fromkeys(("upper", "lower", "concat_ws", "substring", "date_format"), STRING),
    **dict.fromkeys(("length", "hour", "minute", "second", "year", "month", "dayofmonth"), INT),
}
_DEEPEST = 20
"""Calls within calls whose type is followed."""
_MOST_NAMES = 20
"""Unknown functions of a text for which a similar function is searched, which is slow."""
GENERATORS = words(
    "explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple variant_explode "
    "variant_explode_outer"
)


@dataclass(frozen=True)
class QueryColumn:
    """A column of a query; its name is empty, and its type None, if unknown."""

    name: str
    type: DataType | None = None


class Mistake(NamedTuple):
    offset: int
    message: str
    certain: bool = True
    """Whether Spark makes no sense of it either; else it may be what is not known here."""


@dataclass(frozen=True)
class Reference:
    """A column that an expression reads: ``e.window.start``."""

    parts: tuple[str, ...]
    offset: int

    def __str__(self) -> str:
        return ".".join(self.parts)


def readable(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text without the ``end``; none if it has something that is not read here, or a bracket is missing."""
    try:
        return tokens_of(text)[:-1]
    except NotTokenized:
        return ()


def syntax_mistakes(
    text: str, *, alias: bool, names: Collection[str] = (), statement: bool = False, part: bool = False
) -> Iterator[Mistake]:
    """Yield the first mistake of syntax in an expression, which an ``alias`` without AS may end, or a ``statement``, if there is one.

    A word that is none of the ``names`` of columns and views, and no slip of a keyword, may be a keyword that is not known here. With
    ``part``, only brackets, quotes and the first word are looked at."""
    try:
        tokens = tokens_of(text)
    except NotTokenized as unread:
        yield Mistake(unread.offset, unread.reason, unread.is_mistake)
        return
    first = next((token for token in tokens if not token.is_mark("(")), tokens[-1])
    if statement and first.keyword not in BEGINNINGS and (near := similar(first.keyword, BEGINNINGS)) is not None:
        yield Mistake(first.offset, f"unknown statement {first.text!r}: did you mean {near.upper()!r}?")
        return
    if part:
        return
    for index, token in enumerate(tokens):
        message = _misplaced(tokens, index) or (_wrong_clause(tokens, index) if statement else None)
        if message is not None:
            yield Mistake(token.offset, message)
            return
    # A SELECT has aliases in many places, so only the third name in a row is one too many.
    in_a_row = 0
    for index, token in enumerate(tokens[:-1]):
        in_a_row = in_a_row + 1 if index and _follows(tokens[index - 1], token, tokens) else 0
        if in_a_row > (1 if statement else 0) and not (alias and not statement and index == len(tokens) - 2):
            what = f"{tokens[index - 1].text} {token.text}"
            words = [word.keyword for word in tokens[index - in_a_row : index + 1] if word.kind == "word"]
            certain = all(word in names or nearest(word, _GRAMMAR) for word in words)
            message = f"unexpected {token.text!r} in {what!r}: is an operator or a comma missing?"
            yield Mistake(token.offset, message, certain)
            return


def unknown_functions(text: str) -> Iterator[Mistake]:
    """Yield functions that do not exist but are spelled nearly as one that does; any other may be registered by somebody."""
    tokens = readable(text)
    known = functions().allowed | frozenset(functions().needs_code)
    called = [tokens[index] for index in calls((*tokens, Token("end", "", len(text))))]
    for token in [token for token in called if token.name not in known][:_MOST_NAMES]:
        if (near := similar(token.name, known)) is not None:
            yield Mistake(token.offset, f"unknown function {token.text!r}: did you mean {near!r}?")


def references(text: str) -> Iterator[Reference]:
    """Yield the columns that an expression certainly reads; those of an expression with a subquery or a lambda function are not known."""
    tokens = readable(text)
    if any(token.keyword in ("select", "from", "values", "over") or token.text in ("->", "=>") for token in tokens):
        return
    yield from references_in(tokens)


def references_in(tokens: tuple[Token, ...]) -> Iterator[Reference]:
    types = {at for start, end in _types(tokens) for at in range(start, end)}
    after = 0
    for start in range(len(tokens)):
        if start < after or start in types or not _reads(tokens, start):
            continue
        after = start + 1
        while after + 1 < len(tokens) and tokens[after].is_mark(".") and tokens[after + 1].name:
            after += 2
        if after == len(tokens) or not tokens[after].is_mark("(", "."):  # no qualified function, and not all fields
            yield Reference(tuple(token.name for token in tokens[start:after:2]), tokens[start].offset)


def made_of(tokens: tuple[Token, ...], scope: Mapping[str, DataType | None]) -> tuple[QueryColumn, ...] | None:
    """Return the columns that an expression makes of those in ``scope``, by name in lower case; None if unknown."""
    if not tokens:
        return None
    if tokens[-1].is_mark("*"):
        type = scope.get(tokens[0].name) if len(tokens) == 3 else None
        return tuple(QueryColumn(field.name, field.type) for field in type.fields) if type and type.fields else None
    if any(token.name in GENERATORS and at.is_mark("(") for token, at in pairwise(tokens)):
        return None
    name = ""
    if len(tokens) >= 3 and tokens[-2].keyword == "as" and tokens[-1].name:
        name, tokens = tokens[-1].text.strip("`"), tokens[:-2]
    elif len([*split(tokens, "as")]) > 1:
        return None
    elif len(tokens) >= 2 and tokens[-1].name and tokens[-1].keyword not in _GRAMMAR and _ends_operand(tokens[-2]):
        name, tokens = tokens[-1].text.strip("`"), tokens[:-1]
    own = parts[-1] if (parts := _chain(tokens)) else _window(tokens)
    return (QueryColumn(name or own, _type_of(tokens, scope)),)


def _misplaced(tokens: tuple[Token, ...], index: int) -> str | None:
    """Return why a token cannot follow the one before it."""
    token = tokens[index]
    if index == 0:
        return f"something is missing before {token.text!r}" if token.is_mark(",") or _needs_left(token) else None
    before = tokens[index - 1]
    if token.kind == "end" or token.text in (")", "]", ","):
        return _unfinished(tokens, index)
    if token.keyword in _CLAUSES and (before.is_mark(",") or before.keyword == "select"):
        return f"a column is missing before {token.text!r}"
    if _needs_left(before) or before.text in ("+", "-"):
        wanting = token.keyword in _BETWEEN_OPERANDS or token.is_mark("*") or _needs_left(token)
        return f"something is missing after {before.text!r}" if wanting and not _ends_type(before, tokens) else None
    wanting = _needs_left(token) and before.kind == "mark" and before.text not in (")", "]", "*")
    return f"something is missing before {token.text!r}" if wanting else None


def _wrong_clause(tokens: tuple[Token, ...], index: int) -> str | None:
    """Return why a clause of a statement cannot go on like this. Many words of clauses are names too, so another word must follow."""
    token, after = tokens[index], tokens[min(index + 1, len(tokens) - 1)]
    if not index or after.kind != "word" or after.keyword in _GRAMMAR:
        return None
    before = tokens[index - 1]
    if token.keyword in ("group", "order") and _ends_operand(before):
        return f"BY is missing after {token.text!r}"
    if token.keyword == "from" and before.keyword == "as":
        return f"a name is missing after {before.text!r}"
    if token.keyword == "from" and before.keyword == "distinct" and tokens[max(index - 2, 0)].keyword == "select":
        return f"a column is missing before {token.text!r}"
    selects = index > 1 and (tokens[index - 2].keyword in ("select", "distinct") or tokens[index - 2].is_mark(","))
    if before.is_mark("*") and selects and token.kind == "word" and token.keyword not in _GRAMMAR | _OTHER_WORDS:
        return f"unexpected {token.text!r} after '*': expected FROM"
    return None


def _needs_left(token: Token) -> bool:
    """Return whether a token is an operator that needs an operand on its left; ``*`` is also a column, and ``<`` opens types."""
    return token.kind == "mark" and token.text in _BINARY and token.text not in ("*", ".", "<", "+", "-")


def _ends_type(token: Token, tokens: tuple[Token, ...]) -> bool:
    """Return whether a ``>`` may end a type, as in ``ARRAY<INT>``."""
    opened = (word.keyword in ("array", "map", "struct") and after.is_mark("<") for word, after in pairwise(tokens))
    return token.is_mark(">", ">>", ">>>") and any(opened)


def _unfinished(tokens: tuple[Token, ...], index: int) -> str | None:
    """Return why an expression cannot end before this token."""
    token, before = tokens[index], tokens[index - 1]
    if before.is_mark("*") and (index == 1 or not _ends_operand(tokens[index - 2])):
        return None  # all columns
    # Behind AS or a dot, a word of the grammar is a name.
    named = index > 1 and (tokens[index - 2].keyword == "as" or tokens[index - 2].is_mark("."))
    mark = before.kind == "mark" and before.text not in ("(", ")", "[", "]") and not _ends_type(before, tokens)
    if mark or (before.keyword in _NEED_MORE and not named):
        return f"something is missing after {before.text!r}"
    return "something is missing between '(' and ','" if before.is_mark("(") and token.is_mark(",") else None


def _follows(before: Token, token: Token, tokens: tuple[Token, ...]) -> bool:
    """Return whether an operand stands behind another without an operator between them."""
    if not _ends_operand(before) or token.kind == "mark" or token.keyword in _GRAMMAR | _OTHER_WORDS:
        return False
    if token.kind == "text" and (before.kind == "text" or before.keyword in _TYPED):
        return False  # two strings are one, and DATE '2024-01-01' is a value
    return token.kind == "word" or not any(other.keyword == "interval" for other in tokens)


_TYPED = words("date time timestamp timestamp_ltz timestamp_ntz x")
"""Words that make a value of the string behind them."""
_OTHER_WORDS = words(
    "sets cube rollup grouping sort cluster distribute tablesample pivot unpivot view recursive ties only rollup using set "
    "collate similar at zone time local"
)


def _ends_operand(token: Token) -> bool:
    if token.kind == "word":
        return token.keyword not in _GRAMMAR or token.keyword in ("end", "null", "true", "false")
    return token.kind in ("quoted", "number", "text") or token.text in (")", "]")


def _reads(tokens: tuple[Token, ...], index: int) -> bool:
    """Return whether a token is the first part of a column's name."""
    token = tokens[index]
    if not token.name or token.keyword in _GRAMMAR:
        return False
    if token.kind == "quoted" and not token.name.replace("_", "").isalnum():
        return False  # a name that Spark gave: `sum(count)`
    last = index + 1 == len(tokens)
    if not last and (tokens[index + 1].is_mark("(") or tokens[index + 1].kind == "text"):
        return False
    if not index:
        return True
    before = tokens[index - 1]
    alias = last and _ends_operand(before)
    # A collation, and IS NOT UNKNOWN.
    negated = before.keyword == "not" and index > 1 and tokens[index - 2].keyword == "is"
    return not (before.is_mark(".", "::", ":") or before.keyword in ("as", "collate", "is") or negated or alias)


def _types(tokens: tuple[Token, ...]) -> Iterator[tuple[int, int]]:
    """Yield the places of types and lists of aliases: from AS to the end of a cast, and ``AS (a, b)``."""
    pairs = closing(tokens)
    for opening, end in pairs.items():
        if opening and tokens[opening - 1].keyword == "as":
            yield opening, end
        if opening and tokens[opening - 1].name in ("cast", "try_cast"):
            at = next((at for at in range(end, opening, -1) if tokens[at].keyword == "as"), end)
            yield at, end


def split(tokens: tuple[Token, ...], between: str = ",") -> Iterator[tuple[Token, ...]]:
    """Yield the tokens before, between and after the commas, or another word, that stand outside brackets."""
    depth, begin = 0, 0
    for index, token in enumerate(tokens):
        depth += token.is_mark("(", "[") - token.is_mark(")", "]")
        if depth == 0 and (token.is_mark(between) or token.keyword == between):
            yield tokens[begin:index]
            begin = index + 1
    yield tokens[begin:]


def _chain(tokens: tuple[Token, ...]) -> tuple[str, ...]:
    """Return the parts of a name; empty if the tokens are anything else."""
    odd, even = tokens[1::2], tokens[::2]
    right = len(tokens) % 2 == 1 and all(token.is_mark(".") for token in odd) and all(token.name for token in even)
    return tuple(token.text.strip("`") for token in even) if right else ()


def _call(tokens: tuple[Token, ...]) -> str:
    """Return the function, if the tokens are nothing but its call; else empty."""
    if len(tokens) < 3 or not tokens[0].name or not tokens[1].is_mark("("):
        return ""
    return tokens[0].name if closing(tokens)[1] == len(tokens) - 1 else ""


def window_called(text: str) -> str:
    """Return ``window`` or ``session_window``, if an expression is nothing but its call; else empty."""
    return _window(readable(text))


def _window(tokens: tuple[Token, ...]) -> str:
    return name if (name := _call(tokens)) in ("window", "session_window") else ""


def _type_of(tokens: tuple[Token, ...], scope: Mapping[str, DataType | None], depth: int = 0) -> DataType | None:
    if parts := [part.lower() for part in _chain(tokens)]:
        # A qualifier is left out if the rest is a column.
        first, *fields = parts[1:] if parts[0] not in scope and len(parts) > 1 else parts
        type = scope.get(first)
        for name in fields:
            type = next((field.type for field in type.fields if field.name.lower() == name), None) if type else None
        return type
    if len(tokens) == 1:
        return STRING if tokens[0].kind == "text" else None
    name = _call(tokens)
    if name in _RESULTS:
        return _RESULTS[name]
    if name in ("cast", "try_cast") and (where := [at for at, end in _types(tokens) if end == len(tokens) - 1]):
        try:
            return parse_type("".join(token.text for token in tokens[where[0] + 1 : -1]))
        except NotAType:
            return None
    argument = next(split(tokens[2:-1])) if name else ()
    if not argument or depth == _DEEPEST:
        return None
    argument_type = _type_of(argument, scope, depth + 1)
    if argument_type is None or name in _SAME_TYPE:
        return argument_type
    whole = argument_type.name in INTEGERS
    if name == "sum" and whole:
        return BIGINT
    return DOUBLE if name in ("sum", "avg") and (whole or argument_type.name in ("float", "double")) else None
