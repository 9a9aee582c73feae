"""Streams that are read from memory: what a real-time query can read, and what such a stream cannot do."""

from __future__ import annotations

from conformance.language.declared_streams import MEMORY
from conformance.language.node import Entries, Node, child, entries_of, items_of, text_of
from conformance.language.problem import Report

REAL_TIME = "realTime"


def check_memory(case: Node, report: Report) -> None:
    """Report memory streams without a real-time trigger, and actions that they do not support."""
    streams = entries_of(child(case, "streams"))
    in_memory = {str(one.key.value): one.value for one in streams if text_of(child(one.value, "source")) == MEMORY}
    steps = items_of(child(case, "steps"))
    triggers = [text_of(child(case, "trigger"))]
    triggers += [text_of(child(child(child(step, "restart"), "change"), "trigger")) for step in steps]
    if in_memory and REAL_TIME not in triggers:
        for stream in in_memory.values():
            report.add(
                child(stream, "source") or stream, "`source: memory` is for a case with `trigger: realTime`: add it"
            )
    if REAL_TIME in triggers and isinstance(case, Entries) and case.get("sink") is not None:
        report.add(case.key("sink"), "real-time mode has no `foreachBatch`, which `sink` is: remove it")
    for step in steps:
        _check_rows(child(step, "add"), in_memory, report)
        restart = child(step, "restart")
        if in_memory and "kill" in (text_of(restart), text_of(child(restart, "how"))):
            report.add(
                restart or step, "rows in memory are gone with the engine's process: a case with them cannot `kill` it"
            )
        if (in_memory or REAL_TIME in triggers) and isinstance(step, Entries) and step.get("backlog") is not None:
            message = "a real-time micro-batch reads whatever arrives while it runs: use one `add` per entry"
            report.add(step.key("backlog"), message)


def _check_rows(arrival: Node | None, in_memory: dict[str, Node], report: Report) -> None:
    for entry in entries_of(arrival):
        if str(entry.key.value) in in_memory and (placed := child(entry.value, "partitions")) is not None:
            report.add(placed, "a stream in memory has one partition: write its rows as a list")
