"""What in a case runs only with ``--allow-code``: code of its author, and SQL or settings that could run code.

Whatever is not recognised is refused, so a construct that is missing here costs a message and never lets anything through. In
particular a relation is a single name that the case or the statement defines: Spark reads ``text.`/etc/passwd``` as a file.

``confs.yaml`` has the settings: which versions know them, and which need no permission.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from conformance.core.case import WRITTEN_SINKS, NeedsCode
from conformance.core.data import read_data
from conformance.core.operations import STATE_VIEW, Deduplication
from conformance.core.roles import IN_SQL, STATEMENTS, Role
from conformance.core.versions import SparkVersion
from conformance.core.wording import unknown
from conformance.language import source as nodes
from conformance.language import sql_expression
from conformance.language.pipelines import kind_of, nested_pipelines, operations_in, parts_of, settings_of
from conformance.language.shape import CONF_VALUE
from conformance.language.source import Entries, Node, ProblemReport, Scalar, each_of, entries_of, items_of, text_of
from conformance.language.sql_expression import NotTokenized, Token, calls, closing, functions, tokens_of, words
from conformance.language.version_differences import releases_in

STREAMING = "spark.sql.streaming."
"""What begins like this and is not in the list does not exist."""


@dataclass(frozen=True)
class Conf:
    """A setting below ``spark.sql.streaming.``."""

    since: SparkVersion
    until: SparkVersion | None
    """The first version that no longer knows it."""
    needs_code: str | None
    """Why the setting needs ``--allow-code``."""
    values: tuple[str, ...]
    """The values that do not need it; empty if none does."""

    def on(self, version: SparkVersion) -> bool:
        return self.since <= version and (self.until is None or version < self.until)


@cache
def streaming_confs() -> Mapping[str, Conf]:
    """Return the settings by name, in the order of the file."""
    return {STREAMING + name: _conf(about) for name, about in _written()["streaming"].items()}


@cache
def other_confs() -> frozenset[str]:
    """Return the names of the settings elsewhere that need no permission."""
    return frozenset(_written()["others"])


def refusal_of(name: str, value: str) -> str | None:
    """Return why a case may set this only with ``--allow-code``; None if it always may."""
    if "${" in value:  # Spark replaces it when it reads the setting
        return f"`${{…}}` in {name} stands for a setting or a variable of the environment"
    conf = streaming_confs().get(name)
    if conf is None:
        if name in other_confs():
            return None
        return f"the setting {name} is not one of those that change only what a query computes"
    if conf.needs_code is not None:
        return f"the setting {name} {conf.needs_code}"
    if conf.values and value not in conf.values:
        return f"{value!r} as {name} may name a class; known are {', '.join(conf.values)}"
    return None


def _conf(about: Any) -> Conf:
    entry = about if isinstance(about, dict) else {"since": about}
    until = entry.get("until")
    return Conf(
        SparkVersion.parse(f"{entry['since']}.0"),
        SparkVersion.parse(f"{until}.0") if until else None,
        entry.get("needs_code"),
        tuple(entry.get("values", ())),
    )


@cache
def _written() -> Any:
    return read_data("conformance.language", "confs.yaml")


def check_confs(case: Node, report: ProblemReport) -> None:
    """Report settings that no version knows: Spark takes any name, and the case would run as if the setting were not there."""
    versions, known = releases_in(case, report), streaming_confs()
    for entry in chain.from_iterable(map(entries_of, settings_of(case, "conf"))):
        name = str(entry.key.value)
        if not name.startswith(STREAMING):
            continue
        if (conf := known.get(name)) is None:
            report.add(entry.key, unknown("setting of Spark", name, known))
        elif versions and not any(conf.on(version) for version in versions):
            until = f" and gone since {conf.until.line}" if conf.until else ""
            known_in = f"{name} is known since Spark {conf.since.line}{until}"
            report.add(entry.key, f"{known_in}, in none of the case's versions")


_STATEMENTS = {
    "insert": "writes a table or a folder",
    "overwrite": "writes a table or a folder",
    "directory": "writes a folder",
    "merge": "writes a table",
    "update": "writes a table",
    "delete": "writes a table",
    "table": "reads a table of the engine",
    "serde": "names a class",
    "current_user": "shows the user of the engine",
    "session_user": "shows the user of the engine",
}
"""Words that are refused wherever they stand without quotes."""
HIDDEN_COLUMN = "_metadata"
"""Of every source of files, since 3.3: it shows paths of the engine's machine."""
_SHOWN_FIELDS = ("file_size", "file_block_start", "file_block_length")
"""Its fields that show no path, and are the same on every machine."""
_SHOWN = re.compile(rf"(?:{'|'.join(_SHOWN_FIELDS)})\b", re.ASCII)
_READS_SHOWN = re.compile(rf"(?<!\w){HIDDEN_COLUMN}`?\s*\.\s*`?{_SHOWN.pattern}", re.ASCII | re.IGNORECASE)
_SHOWS_PATHS = f"{HIDDEN_COLUMN} shows paths of the engine's machine"
_SET_OPERATORS = ("union", "except", "intersect", "minus")
_ENDS_RELATIONS = ("where", "having", "limit", "offset")
_LISTS = ("group", "order", "sort", "cluster", "distribute")
_TABLE_FUNCTIONS = sql_expression.GENERATORS | {"range"}
_NOT_NAMES = words("stream table identifier lateral select values only from with")
"""Words that may begin a relation of another kind, also where a view has such a name."""
_IN_ROWS = words(
    "null true false date timestamp timestamp_ntz timestamp_ltz interval year month week day hour minute second years months weeks "
    "days hours minutes seconds to case when then else end and or not in is like between div cast as bigint binary boolean byte "
    "double float int integer long short smallint string tinyint x"
)
"""The words in the rows of VALUES: constants. After its comma, another word may begin a relation."""
_FROM_INSIDE_A_CALL = words("extract trim substring substr overlay position")


class RefusedSql(NamedTuple):
    """Something that needs ``--allow-code``, and its offset in the text, from 0."""

    offset: int
    reason: str


@lru_cache(4096)  # cases of a matrix have the same texts, and each text is asked about twice
def refusals(text: str, views: tuple[str, ...], *, statement: bool = False) -> tuple[RefusedSql, ...]:
    """Return what in an expression or a ``statement`` over ``views`` of the case needs ``--allow-code``; nothing if it only computes."""
    try:
        tokens = tokens_of(text)
    except NotTokenized as unread:
        return (RefusedSql(unread.offset, f"cannot be checked: {unread.reason}"),)
    first = next((token for token in tokens if not token.is_mark("(")), tokens[-1])
    if statement and first.keyword not in sql_expression.BEGINNINGS:
        reason = f"{_shown(tokens[0])} does not begin a query: only SELECT, WITH and VALUES do"
        return (RefusedSql(tokens[0].offset, reason),)
    return (*_words(tokens), *_refused_calls(tokens), *_Relations(tokens, views).refusals())


def _words(tokens: tuple[Token, ...]) -> Iterator[RefusedSql]:
    for index, token in enumerate(tokens[:-1]):
        if token.keyword in _STATEMENTS:
            quote = f"; if it is a column, write `{token.text}` in backquotes"
            yield RefusedSql(token.offset, f"{_shown(token)} {_STATEMENTS[token.keyword]}{quote}")
        if token.keyword == "using" and not tokens[index + 1].is_mark("("):
            yield RefusedSql(token.offset, "USING with a script or a class runs a program")
        field = tokens[index + 2].name if tokens[index + 1].is_mark(".") else ""
        if token.name == HIDDEN_COLUMN and field not in _SHOWN_FIELDS:
            yield RefusedSql(token.offset, _SHOWS_PATHS)
        if token.kind == "quoted" and any(character in token.text for character in "./:\\"):
            yield RefusedSql(token.offset, f"the quoted name {token.text} looks like a file or a class")


def _refused_calls(tokens: tuple[Token, ...]) -> Iterator[RefusedSql]:
    known = functions()
    for index in calls(tokens):
        token = tokens[index]
        if index and tokens[index - 1].is_mark("."):
            yield RefusedSql(token.offset, f"the function {token.text} is qualified: write its name alone")
        elif token.name in known.needs_code:
            yield RefusedSql(token.offset, f"the function {token.name} {known.needs_code[token.name]}")
        elif token.name not in known.allowed:
            yield RefusedSql(token.offset, f"the function {token.name} is not one of Spark's that only compute values")
    for before, token in pairwise(tokens):
        # "reflect"(…) is a call where double quotes quote names, and IDENTIFIER('reflect')(…) from 4.0 on.
        if token.is_mark("(") and (before.kind == "text" or before.is_mark(")", "]")):
            yield RefusedSql(token.offset, f"`(` after {_shown(before)} may call a function by a name that is computed")


@dataclass
class _Level:
    """What stands between two brackets."""

    opener: str
    """The word before the bracket."""
    clause: str
    """``start``, ``with``, ``list``, ``relations``, ``values``, ``row``, ``condition`` or ``expression``."""
    expects: bool = False
    """Whether a relation must come next."""


class _Relations:
    """Follows the clauses of all queries in a text, and checks every name that may be a relation."""

    def __init__(self, tokens: tuple[Token, ...], views: Collection[str]) -> None:
        self._tokens = tokens
        self._views = {view.lower() for view in views}
        self._common = _common_tables(tokens)
        self._selects = any(token.keyword in ("select", "map", "reduce") for token in tokens)
        self._levels = [_Level("", "start")]

    def refusals(self) -> Iterator[RefusedSql]:
        for index, token in enumerate(self._tokens[:-1]):
            level = self._levels[-1]
            if token.is_mark("("):
                self._open(index, level)
            elif token.is_mark(")"):
                if level.expects:
                    yield self._no_relation(token)
                self._levels.pop()
            elif level.expects:
                yield from self._relation(index, level)
            elif token.is_mark(",") and level.clause == "condition":
                yield RefusedSql(token.offset, "a comma after WHERE, HAVING, LIMIT or OFFSET cannot be checked")
            elif token.is_mark(","):
                level.expects = level.clause == "relations"
            elif level.clause == "row" or (level.clause == "values" and not self._ends_values(index)):
                yield from self._in_a_row(index)
            elif token.kind == "word":
                # An alias, or the word after the rows: VALUES 1 JOIN …
                level.clause = "relations" if level.clause == "values" else level.clause
                yield from self._word(index, level)

    def _open(self, index: int, level: _Level) -> None:
        opener = self._tokens[index - 1].keyword if index else ""
        query = self._tokens[index + 1].keyword in sql_expression.BEGINNINGS
        relation = level.expects and not query
        row = level.clause in ("values", "row") and not query
        level.expects = False
        self._levels.append(_Level(opener, "relations" if relation else "row" if row else "start", expects=relation))

    def _in_a_row(self, index: int) -> Iterator[RefusedSql]:
        """Refuse names: Spark reads ``VALUES (1), (text.passwd x)`` as two relations."""
        token, after = self._tokens[index], self._tokens[index + 1]
        if (token.kind == "quoted" or (token.keyword and token.keyword not in _IN_ROWS)) and not after.is_mark("("):
            yield RefusedSql(token.offset, f"{_shown(token)} in VALUES may be a table or a file: write constants")

    def _relation(self, index: int, level: _Level) -> Iterator[RefusedSql]:
        token, after = self._tokens[index], self._tokens[index + 1]
        if token.keyword == "lateral":
            return
        level.expects = False
        if token.keyword == "values" and (after.is_mark("(") or after.kind in ("text", "number")):
            level.clause = "values"
        elif token.name and after.is_mark("("):
            if token.name not in _TABLE_FUNCTIONS:
                yield RefusedSql(token.offset, f"{token.text}(…) is not a table function that only computes")
        else:
            defined = token.name in self._views or index > self._common.get(token.name, index)
            if token.keyword in _NOT_NAMES or not defined or after.is_mark("."):
                yield self._no_relation(token)

    def _word(self, index: int, level: _Level) -> Iterator[RefusedSql]:
        token, word = self._tokens[index], self._tokens[index].keyword
        before = self._tokens[index - 1].keyword if index else ""
        if word == "select":
            if not self._may_begin(index, level):
                yield RefusedSql(token.offset, "SELECT cannot be checked here")
            level.clause = "list"
        elif word == "with" and level.clause == "start" and self._begins(index):
            level.clause = "with"
        elif word == "values" and level.clause == "start" and self._begins(index):
            level.clause = "values"
        elif word == "from":
            operator = before == "distinct" and not self._selects  # a IS DISTINCT FROM b
            if not operator and (level.clause != "start" or level.opener not in _FROM_INSIDE_A_CALL):
                level.clause, level.expects = "relations", True
        elif word == "join":
            level.clause, level.expects = "relations", True
        elif word in _ENDS_RELATIONS and level.clause in ("relations", "values", "expression"):
            level.clause = "condition"
        elif word in _LISTS and level.clause != "start" and self._begins_a_list(index):
            level.clause = "expression"
        elif word == "lateral":
            level.expects = True

    def _begins_a_list(self, index: int) -> bool:
        """Return whether BY follows, but not DELAY OF: in ``WATERMARK sort by DELAY OF …`` the column sort gets the name by."""
        by, *after = [token.keyword for token in self._tokens[index + 1 : index + 4]]
        return by == "by" and after != ["delay", "of"]

    def _ends_values(self, index: int) -> bool:
        """Return whether an alias ends the rows of VALUES: something follows an operand without an operator between them."""
        token, before = self._tokens[index], self._tokens[index - 1]
        follows_operand = before.kind in ("number", "text", "quoted") or before.is_mark(")", "]")
        named = before.kind == "word" and before.keyword != "values" and token.kind != "text"
        return token.kind in ("word", "quoted", "text") and (follows_operand or named)

    def _may_begin(self, index: int, level: _Level) -> bool:
        """Return whether a SELECT here begins a query rather than being a name."""
        if self._begins(index) or (level.clause == "with" and self._tokens[index - 1].is_mark(")")):
            return True
        before = index - 1
        if self._tokens[before].keyword in ("all", "distinct"):
            before -= 1
        return before >= 0 and self._tokens[before].keyword in _SET_OPERATORS

    def _begins(self, index: int) -> bool:
        return index == 0 or self._tokens[index - 1].is_mark("(")

    def _no_relation(self, token: Token) -> RefusedSql:
        names = sorted(self._views | set(self._common))
        known = f"it may read {', '.join(names)}" if names else "the case has defined no view so far"
        reason = f"{_shown(token)} is not a view of the case, and may be a table or a file: {known}"
        return RefusedSql(token.offset, reason)


def _common_tables(tokens: tuple[Token, ...]) -> dict[str, int]:
    """Return the names that a WITH at the beginning defines, each with the index of the bracket that ends its definition."""
    ends: dict[str, int] = {}
    index, pairs = 1, closing(tokens)
    while tokens[0].keyword == "with" and len(tokens) > index + 2:
        name, word, bracket = tokens[index : index + 3]
        if not name.name or word.keyword != "as" or not bracket.is_mark("("):
            break
        end = pairs[index + 2]
        ends.setdefault(name.name, end)
        if not tokens[end + 1].is_mark(","):
            break
        index = end + 2
    return ends


def _shown(token: Token) -> str:
    if token.kind == "end":
        return "the end"
    return token.text.upper() if token.kind == "word" and token.keyword in _STATEMENTS else repr(token.text)


class SqlText(NamedTuple):
    """A text of a pipeline that Spark parses."""

    place: Scalar
    text: str
    role: Role
    views: tuple[str, ...]
    """The views that exist when Spark parses it."""

    @property
    def statement(self) -> bool:
        return self.role in STATEMENTS


def needs_code(case: Node) -> tuple[NeedsCode, ...]:
    """Return everything in a valid case that needs ``--allow-code``, in the order of the file."""
    streams = nodes.child(case, "streams")
    needs = [*chain.from_iterable(map(_in_conf, settings_of(case, "conf")))]
    for query in settings_of(case, "query"):
        needs += _in_pipeline(query, streams)
    if isinstance(case, Entries) and case.get("sink") is not None and text_of(case, "sink") not in WRITTEN_SINKS:
        needs.append(_needs(case.key("sink"), "`sink` runs Python code of the case's author"))
    return tuple(sorted(set(needs), key=attrgetter("line", "column", "reason")))


def sql_texts(pipeline: Node | None) -> Iterator[SqlText]:
    """Return every text of a valid pipeline that Spark parses, in the order in which the driver passes them on."""
    return _texts(pipeline, [])


def _texts(pipeline: Node | None, views: list[str]) -> Iterator[SqlText]:
    for operation in items_of(pipeline):
        for nested in nested_pipelines(operation):
            yield from _texts(nested, views)
        for _, node in parts_of(operation, Role.VIEW, Role.VIEWS):
            views += [str(entry.key.value) for entry in entries_of(node)] or [text_of(node) or ""]
        for part, node in parts_of(operation, *IN_SQL):
            known = (*views, STATE_VIEW) if part.role is Role.INITIAL_STATE else tuple(views)
            scalars = (item for item in each_of(node) if isinstance(item, Scalar))
            yield from (SqlText(scalar, str(scalar.value), part.role, known) for scalar in scalars)


def _in_pipeline(pipeline: Node | None, streams: Node | None) -> Iterator[NeedsCode]:
    texts = _texts_below(pipeline)
    keys = _keys_of_files(pipeline, texts)
    for sql in sql_texts(pipeline):
        for refusal in () if id(sql.place) in keys else refusals(sql.text, sql.views, statement=sql.statement):
            yield _needs(sql.place.at(refusal.offset), refusal.reason)
    for operation in operations_in(pipeline):
        if isinstance(operation, Entries) and operation.get("call") is not None:
            yield _needs(operation.key("call"), "`call` runs code of the case's author")
    yield from _hidden_columns(texts, streams, keys)


def _keys_of_files(pipeline: Node | None, texts: Sequence[tuple[Scalar, str]]) -> frozenset[int]:
    """Return the identities (places may be equal) of scalars that select the hidden column itself to be a key: a deduplication follows,
    and then a selection of columns by name."""
    operations, keys = items_of(pipeline), Counter[int]()
    for selection, deduplication, last in zip(operations, operations[1:], operations[2:], strict=False):
        kind = kind_of(deduplication)
        deduplicates = kind is not None and issubclass(kind, Deduplication) and bool(kind.parts())
        names = [text_of(item) for item in each_of(last, "select")]
        if deduplicates and names and all(name and "*" not in name for name in names):
            keys.update(id(item) for item in each_of(selection, "select") if text_of(item) == HIDDEN_COLUMN)
    # An alias of YAML puts the same scalar elsewhere, too.
    every = Counter(id(place) for place, _ in texts if id(place) in keys)
    return frozenset(keys) if keys == every else frozenset()


def _hidden_columns(
    texts: Sequence[tuple[Scalar, str]], streams: Node | None, keys: frozenset[int]
) -> Iterator[NeedsCode]:
    """Yield columns that operations name, such as ``dropDuplicates: [_metadata.file_path]``, and texts that hide how the column is used."""
    for place, text in texts:
        names = [part.strip(" \t\r\n`") for part in text.lower().split(".")]
        fields = (after for name, after in pairwise([*names, ""]) if name == HIDDEN_COLUMN)
        if id(place) not in keys and not all(map(_SHOWN.match, fields)):
            yield _needs(place.at(0), _SHOWS_PATHS)
    if keys or any(_READS_SHOWN.search(text) for _, text in texts):
        # Spark prints a text in its plan as it is, and the driver could not tell its lines from those of the plan.
        reason = f"a line break or a backslash cannot be checked in a query that reads {HIDDEN_COLUMN}"
        unclear = (place for place, text in (*texts, *_texts_below(streams)) if re.search(r"[\n\\]", text))
        yield from (_needs(place.at(0), reason) for place in unclear)


def _texts_below(node: Node | None) -> list[tuple[Scalar, str]]:
    """Return every text in a pipeline, or in other parts of a case."""
    if isinstance(node, Scalar):
        return [(node, node.value)] if isinstance(node.value, str) else []
    below = (*items_of(node), *(entry.value for entry in entries_of(node)))
    return [*chain.from_iterable(map(_texts_below, below))]


def _in_conf(conf: Node | None) -> Iterator[NeedsCode]:
    for entry in entries_of(conf):
        reason = refusal_of(str(entry.key.value), CONF_VALUE.value(entry.value.plain()))
        if reason is not None:
            yield _needs(entry.key, reason)


def _needs(place: nodes.SourceLocation, reason: str) -> NeedsCode:
    return NeedsCode(line=place.line, column=place.column, reason=reason)
