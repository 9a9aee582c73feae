"""The syntax trees of Spark SQL, made by sqlglot: the one place that prepares Spark's own notation for it.

sqlglot reads ``GROUP BY window(…)`` as the WINDOW clause unless the name is quoted, and does not know ``WATERMARK … DELAY OF``
(SPARK-53687), which stands where TABLESAMPLE may stand.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

import sqlglot
from sqlglot import exp

_WINDOW_CALL = re.compile(r"\bwindow\s*\(", re.I)
_WATERMARK = re.compile(
    r"\s+WATERMARK\s+(?P<of>\S.*?)(?:\s+AS\s+(?P<name>\w+|\([^()]*\)))?\s+DELAY\s+OF\s+(?P<delay>INTERVAL\s+\S+\s+\w+)"
    r"(?P<alias>\s+AS\s+\w+)?",
    re.I | re.S,
)
_CALL = re.compile(r"(\w+)`?\s*\(")
_READS_A_STREAM = ("READ_FILES", "CLOUD_FILES", "READ_KAFKA", "READ_KINESIS")
"""Functions of Databricks whose rows are those of a stream."""
_TOPIC = ("subscribe", "streamname")
_NAME, _CLAUSE = "spark_name", "spark_watermark"
_SAMPLE = 2_000_000_000
"""The rows of the sample that stands for the first WATERMARK clause of a statement; no other sample has so many."""


class NotReadable(ValueError):
    """sqlglot cannot parse the text, which may be valid in Spark."""


class WatermarkClause(NamedTuple):
    """``WATERMARK of AS name DELAY OF delay`` behind a table or subquery."""

    of: str
    """The expression of the event time."""
    name: str | None
    """The name of its column; several names stand in parentheses."""
    delay: str


class SqlStatement(NamedTuple):
    text: str
    """As it is written, without what stands before its first word and behind its last one."""
    line: int
    words: tuple[str, ...]
    """Its words and marks, without comments."""


def statements(script: str) -> tuple[SqlStatement, ...]:
    """Divide a script at each ``;``; raise `NotReadable` if a text or a comment in it has no end."""
    try:
        tokens = sqlglot.tokenize(script, read="spark")
    except sqlglot.errors.SqlglotError as error:
        raise NotReadable(str(error)) from None
    parts = (tuple(part) for _, part in groupby(tokens, lambda token: token.token_type is sqlglot.TokenType.SEMICOLON))
    return tuple(
        SqlStatement(script[part[0].start : part[-1].end + 1], part[0].line, tuple(token.text for token in part))
        for part in parts
        if part[0].token_type is not sqlglot.TokenType.SEMICOLON
    )


def query_of_flow(text: str, *, streams: bool = False) -> str | None:
    """Return the query of a statement that defines a table or flow of a declarative pipeline; None if it has none.

    ``STREAM name``, ``STREAM(name)`` and the prefix ``LIVE`` say where a name is found, and are left out; with ``streams``, the first
    stays. A function of Databricks that reads files or a topic is a table, of the name of its folder or topic.
    """
    tokens, words = _tokens(text)
    depth, begin = 0, None
    for at, word in enumerate(words):
        if depth == 0 and (word == "SELECT" or (word == "WITH" and words[at - 1] == "AS")):
            begin = at
            break
        depth += {"(": 1, ")": -1}.get(word, 0)
    if begin is None:
        return None
    left_out, tables = set[int](), dict[int, str]()
    for at in range(begin, len(tokens) - 1):
        if words[at] == "LIVE" and words[at + 1] == ".":
            left_out |= {at, at + 1}
        if words[at] == "STREAM" and words[at - 1] in ("FROM", "JOIN", ","):
            if words[at + 1] == "(":
                left_out |= {at + 1, _closing(words, at + 1), *([] if streams else [at])}
            elif not streams and tokens[at + 1].token_type in (sqlglot.TokenType.VAR, sqlglot.TokenType.IDENTIFIER):
                left_out.add(at)
        if words[at] in _READS_A_STREAM and words[at + 1] == "(":
            end = _closing(words, at + 1)
            left_out |= {*range(at, end + 1)}
            tables[at] = _table_of_call(tokens[at:end])
    query = ""
    for at, token in enumerate(tokens[begin:], begin):
        after = tokens[at + 1].start if at + 1 < len(tokens) else len(text)
        query += f"{tables[at]} " if at in tables else ""
        if at not in left_out:
            query += text[token.start : after] + " " * (streams and at + 1 in left_out)
        elif words[at] == ")":
            query += text[token.end + 1 : after]
    return query


def tables_read(text: str) -> frozenset[str] | None:
    """Return the names without a qualifier, as written, of the tables and views that a statement reads; None if that cannot be told."""
    try:
        tree = statement(text)
    except NotReadable:
        return None
    query = tree.expression if isinstance(tree, exp.Create) else tree
    tables = [*query.find_all(exp.Table)] if isinstance(query, exp.Query) else []
    # Spark's `STREAM name`, which sqlglot takes for a table with an alias.
    if not isinstance(query, exp.Query) or any(table.name.lower() == "stream" for table in tables):
        return None
    own = {common.alias.lower() for common in query.find_all(exp.CTE)}
    return frozenset(table.name for table in tables if table.name and not table.db and table.name.lower() not in own)


def conditions_of(text: str) -> tuple[str, ...]:
    """Return the conditions, in brackets, of a table's expectations that drop rows: ``EXPECT (b > 0) ON VIOLATION DROP ROW``."""
    tokens, words = _tokens(text)
    drops = ["ON", "VIOLATION", "DROP", "ROW"]
    begins = (at + 1 for at, word in enumerate(words[:-1]) if word == "EXPECT" and words[at + 1] == "(")
    ends = ((begin, _closing(words, begin) + 1) for begin in begins)
    return tuple(text[tokens[a].start : tokens[b].start].strip() for a, b in ends if words[b : b + 4] == drops)


def _tokens(text: str) -> tuple[list[sqlglot.Token], list[str]]:
    """The tokens, and each in capitals; empty for quoted names and string literals, which are not keywords."""
    tokens = sqlglot.tokenize(text, read="spark")
    quoted = (sqlglot.TokenType.STRING, sqlglot.TokenType.IDENTIFIER)
    return tokens, ["" if token.token_type in quoted else token.text.upper() for token in tokens]


def _table_of_call(tokens: Sequence[sqlglot.Token]) -> str:
    """The name of what ``read_files('/in/clicks', …)`` reads, or ``read_kafka(subscribe => 'clicks', …)``."""
    topics = (value.text for name, value in zip(tokens, tokens[2:], strict=False) if name.text.lower() in _TOPIC)
    texts = (token.text for token in tokens if token.token_type is sqlglot.TokenType.STRING)
    parts = next(iter((*topics, *texts)), "").split("/")
    last = next((part for part in reversed(parts) if re.fullmatch(r"[\w.-]+", part)), "files")
    return re.sub(r"\W+", "_", last)


def _closing(words: Sequence[str], begin: int) -> int:
    """The number of the bracket that closes the one with this number; the last word if none does."""
    depth = 0
    for at in range(begin, len(words)):
        depth += {"(": 1, ")": -1}.get(words[at], 0)
        if depth == 0:
            return at
    return len(words) - 1


@cache
def expression(text: str) -> exp.Expr:
    """Parse an expression, ``window(event_time, '10 minutes') AS slot``; raise `NotReadable` if sqlglot cannot."""
    return _parsed(text)


@cache
def statement(text: str) -> exp.Expr:
    """Parse a statement, so that ``watermark_of`` knows the WATERMARK clause of a relation; raise `NotReadable` if sqlglot cannot."""
    clauses: list[WatermarkClause] = []

    def sample(match: re.Match[str]) -> str:
        clauses.append(WatermarkClause(match["of"], match["name"], match["delay"]))
        alias, sampled = match["alias"] or "", f" TABLESAMPLE ({_SAMPLE + len(clauses) - 1} ROWS)"
        # sqlglot expects the alias of a subquery before TABLESAMPLE, that of a table after it.
        return alias + sampled if text[: match.start()].endswith(")") else sampled + alias

    tree = _parsed(_WINDOW_CALL.sub("`window`(", _WATERMARK.sub(sample, text)))
    for call in [*tree.find_all(exp.Anonymous)]:
        if isinstance(call.this, exp.Identifier):
            call.set("this", call.name)
    clause_of = {str(_SAMPLE + at): clause for at, clause in enumerate(clauses)}
    for node in [*tree.find_all(exp.TableSample)] if clauses else ():
        table, size = node.parent, node.args.get("size")
        if table is not None and size is not None and size.name in clause_of:
            table.meta[_CLAUSE] = clause_of[size.name]
            table.set("sample", None)
    return tree


def watermark_of(table: exp.Expr) -> WatermarkClause | None:
    """Return the WATERMARK clause of a table or subquery of a statement."""
    clause: WatermarkClause | None = table.meta.get(_CLAUSE)
    return clause


def called(tree: exp.Expr) -> Iterator[str]:
    """Return the names of the functions that are called, as they are written, in lower case."""
    return (node.meta[_NAME] for node in tree.walk() if _NAME in node.meta)


def window_call(tree: exp.Expr) -> exp.Anonymous | None:
    """Return the call, if an expression is nothing but ``window(…)`` or ``session_window(…)``."""
    return tree if isinstance(tree, exp.Anonymous) and tree.name.lower() in ("window", "session_window") else None


def written(tree: exp.Expr) -> str:
    """Return the text of a tree, with the names of functions as they were written."""
    return tree.sql("spark", normalize_functions=False)


def _parsed(text: str) -> exp.Expr:
    try:
        tree: exp.Expr = sqlglot.parse_one(text, dialect="spark")
        _name_calls(tree, text)
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise NotReadable(text) from None
    return tree


def _name_calls(tree: exp.Expr, text: str) -> None:
    names = {name.lower() for name in _CALL.findall(text)}
    for node in tree.find_all(exp.Func, exp.IgnoreNulls):
        if "start" in node.meta:
            name = text[node.meta["start"] : node.meta["end"] + 1].strip("`").lower()
        else:  # sqlglot keeps no position of some calls, and adds calls that nobody wrote
            name = node.sql("spark").partition("(")[0].lower()
        if name in names:
            node.meta[_NAME] = name
