"""Refuses, on Spark's own plans, what a case may do only with ``--allow-code``.

The host has checked the text of every query before (``conformance/language/permission.py``). This is the second lock: Spark itself
says what it has understood. Through Connect there is no plan here, so only the first one holds.
"""

from __future__ import annotations

import re
from typing import Any, Optional

from .errors import NotPermitted

_NODE = re.compile(r"^[\s:+\-'!*]*([A-Za-z]\w*)", re.MULTILINE)
"""The name of the operator of each line of a plan."""
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
_HIDDEN_COLUMN = re.compile(r"(?<!\w)_metadata#")
"""A column of every source of files, since 3.3; it shows paths."""
_ALL_FIELDS = "spark.sql.debug.maxToStringFields"
"""The setting with the number of fields that a plan shows."""


def refused_statement(plan: str) -> Optional[str]:
    """Why a statement must not be executed, by its parsed plan; None if it is a query."""
    for node in _NODE.findall(plan):
        if _COMMAND.match(node):
            return "the statement is no query: {}".format(node)
        if node.endswith("ScriptTransformation"):
            return "the query runs a script"
    return None


def refused_plan(plan: str) -> Optional[str]:
    """Why a query must not be started, by its analysed plan; None if it only computes."""
    refused = refused_statement(plan)
    if refused is not None:
        return refused
    if _READS_TABLES.search(plan):
        return "the query reads a table or a file"
    if _HIDDEN_COLUMN.search(plan):
        return "the query reads the hidden column _metadata, which shows paths"
    called = _CALLS.search(plan)
    return "the query calls {}".format(called.group(1)) if called else None


def check_statement(session: Any, text: str) -> None:
    """Check a SQL statement before it is executed: commands run at once.

    Raises:
        NotPermitted: it is no query.
    """
    inner = getattr(session, "_jsparkSession", None)
    if inner is None:
        return
    try:
        parsed = inner.sessionState().sqlParser().parsePlan(text)
    except Exception:  # the caller gets the same error, which belongs to the case
        return
    _refuse(refused_statement(_shown(session, parsed)))


def check_frame(session: Any, frame: Any) -> None:
    """Check a query before it starts.

    Raises:
        NotPermitted: it does more than compute.
    """
    if getattr(session, "_jsparkSession", None) is not None:
        _refuse(refused_plan(_shown(session, frame._jdf.queryExecution().analyzed())))


def _shown(session: Any, plan: Any) -> str:
    session.conf.set(_ALL_FIELDS, str((1 << 31) - 1))
    try:
        return str(plan.toString())
    finally:
        session.conf.unset(_ALL_FIELDS)


def _refuse(why: Optional[str]) -> None:
    if why is not None:
        raise NotPermitted(why)
