"""Refuses, on Spark's own plans, what a case may do only with ``--allow-code``.

The host has checked the text of every query before (``conformance/language/permission.py``). This is the second lock: Spark itself
says what it has understood, in this process or, through Connect, in the text of ``EXPLAIN``.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import Any, Iterable, Iterator, Optional

from .errors import NotPermitted

_NODE = re.compile(r"^[\s:+\-'!*~]*([A-Za-z]\w*)", re.MULTILINE)
"""The name of the operator of each line of a plan; since 4.3 it has a ``~`` before it if it is of a stream."""
_COMMAND = re.compile(
    r"(Insert|Create|Drop|Alter|Add|Set[A-Z]|Merge|Delete|UpdateTable|Replace|Truncate|Load|Refresh|Cache|Uncache|Describe|Show|Execute"
    r"|Declare|Analyze|Repair|Recover|Comment|Reset|Explain|CompoundBody|SingleStatement)\w*$|\w+(Command|Statement)$"
    r"|Call$|UnresolvedExecute\w*$"
)
_READS_TABLES = re.compile(
    r"(?:(?<![A-Za-z])Relation(?:V2)? ?\[|(?<![A-Za-z])(?:DataSourceV2Relation|HiveTableRelation)\b)"
)
"""Relations that are no stream, no constants and no range: Spark shows a file as ``Relation [value#0] text``."""
_CALLS = re.compile(
    r"(?<![\w.])(?:try_)?(reflect|java_method|input_file_name|CallMethodViaReflection|current_(?:user|catalog|schema|database|path)"
    r"|session_user|xpath\w*|(?:from|to|schema_of)_xml)\("
)
_HIDDEN = r"(?<!\w)_metadata#\d+"
"""A column of every source of files, since 3.3; it shows paths."""
_HIDDEN_COLUMN = re.compile(_HIDDEN, re.IGNORECASE)
_SHOWN_FIELD = re.compile(_HIDDEN + r"\.(?:file_size|file_block_start|file_block_length)(?![\w.])", re.IGNORECASE)
"""One of its fields that show no path."""
_PASSED_ON = re.compile(r"^([\s:+\-!~]*Project \[){0}(?=, |\]$)|, {0}\]$".format(_HIDDEN), re.IGNORECASE)
"""The column as the first or the last of a projection, where Spark puts it if an operator above reads one of its fields."""
_KEYS = re.compile(r"^[\s:+\-~]*Deduplicate(?:WithinWatermark)? \[[^()]*\]$")
"""A deduplication: its keys are compared, and no expression reads them."""
_RENAMES = ("Union", "Intersect", "Except")
"""Operators that give the columns of one input the names of another's."""
_UNCLEAR = re.compile(r"\\[^\"]")
"""In JSON: a line break, or a backslash, with which SQL writes one."""
_ALL_FIELDS = "spark.sql.debug.maxToStringFields"
"""The setting with the number of fields that a plan shows."""
_HEADING = "== {} Logical Plan ==\n"


def refused_statement(plan: str) -> Optional[str]:
    """Why a statement must not be executed, by its parsed plan; None if it is a query."""
    for node in _NODE.findall(plan):
        if _COMMAND.match(node):
            return "the statement is not a query: {}".format(node)
        if node.endswith("ScriptTransformation"):
            return "the query runs a script"
    return None


def refused_plan(plan: str, columns: Iterable[str] = (), written: Any = None) -> Optional[str]:
    """Why a query must not be started; None if it only computes. ``columns``: of its result; ``written``: texts that its plan may have."""
    refused = refused_statement(plan)
    if refused is not None:
        return refused
    if _READS_TABLES.search(plan):
        return "the query reads a table or a file"
    if _HIDDEN_COLUMN.search(plan) and _shows_paths(plan, columns, written):
        return "the query reads the hidden column _metadata, which shows paths"
    called = _CALLS.search(plan)
    return "the query calls {}".format(called.group(1)) if called else None


def _shows_paths(plan: str, columns: Iterable[str], written: Any) -> bool:
    """Whether a query may read more of the hidden column than the fields that show no path."""
    if _UNCLEAR.search(json.dumps(written, ensure_ascii=False)) or "_metadata" in [name.lower() for name in columns]:
        return True
    # Of each operator above a line: its depth, and whether the names of its input's columns may be others above it.
    above: list[tuple[int, bool]] = []
    for line in plan.split("\n"):
        node = _NODE.match(line)
        name = node.group(1) if node else ""
        depth = len(line) - len(line.lstrip(" :+-"))
        above = [operator for operator in above if operator[0] < depth]
        renamed = bool(above) and above[-1][1]
        above.append((depth, name in _RENAMES or (renamed and name not in ("Project", "Aggregate"))))
        if name != "StreamingRelation" and not _KEYS.match(line) and _HIDDEN_COLUMN.search(line):
            read = _SHOWN_FIELD.sub("", line)
            rest = _PASSED_ON.sub(r"\1", read) if name == "Project" and not renamed else read
            if _HIDDEN_COLUMN.search(rest):
                return True
    return False


def check_statement(session: Any, text: str) -> None:
    """Check a SQL statement before it is executed: commands run at once. Raises ``NotPermitted`` if it is no query."""
    inner = getattr(session, "_jsparkSession", None)
    with _all_fields(session):
        if inner is None:
            # It executes nothing. What it cannot parse is not executed either.
            explained = session.sql("EXPLAIN EXTENDED " + text).collect()[0][0]
            parsed = explained.rpartition(_HEADING.format("Analyzed"))[0] or explained
        else:
            try:
                parsed = str(inner.sessionState().sqlParser().parsePlan(text).toString())
            except Exception:  # the caller gets the same error, which belongs to the case
                return
    _refuse(refused_statement(parsed))


def check_plan(plan: str, columns: Iterable[str] = (), written: Any = None) -> None:
    """Raise ``NotPermitted`` if a query does more than compute, by its analysed plan. The parameters are those of ``refused_plan``."""
    _refuse(refused_plan(plan, columns, written))


def analysed_plan(session: Any, frame: Any) -> str:
    """The analysed plan of a query, as Spark prints it, with all fields."""
    with _all_fields(session):
        if getattr(session, "_jsparkSession", None) is not None:
            return str(frame._jdf.queryExecution().analyzed().toString())
        explained = str(frame._explain_string(extended=True))
    # A text in the query may look like a heading: then this is more than the plan, and never less.
    plan = explained.partition(_HEADING.format("Analyzed"))[2].rpartition(_HEADING.format("Optimized"))[0]
    return plan.partition("\n")[2] or explained  # without the line of the columns


@contextmanager
def _all_fields(session: Any) -> Iterator[None]:
    session.conf.set(_ALL_FIELDS, str((1 << 31) - 1))
    try:
        yield
    finally:
        session.conf.unset(_ALL_FIELDS)


def _refuse(why: Optional[str]) -> None:
    if why is not None:
        raise NotPermitted(why)
