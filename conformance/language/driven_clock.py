"""Cases that drive the clock of their query: what they cannot do, and which cases should be some."""

from __future__ import annotations

from itertools import chain

from conformance.core.data import read_data
from conformance.core.versions import VersionRange
from conformance.language.pipelines import kind_of, operations_in, queries_of
from conformance.language.source import Node, ProblemReport, child, entries_of, items_of, text_of
from conformance.language.steps import is_driven
from conformance.language.version_differences import releases_in

_TIMERS = {
    "applyInPandasWithState": ("timeout", "ProcessingTimeTimeout", "count_until_silent_for_ten_seconds"),
    "transformWithState": ("timeMode", "ProcessingTime", "count_until_watermark"),
}
"""An operation, the key and the value with which its timers are in processing time, and the function of the suite that sets some."""
_DRIVE = "write `trigger: {processingTime: 10 seconds}`, whose clock the steps `advance` move"
_POSSIBLE = VersionRange.parse(read_data("conformance.language", "driven_clock.yaml")["spark"])


def check_clock(case: Node, report: ProblemReport) -> None:
    """Report timers in processing time that no case drives, and what a case cannot do that drives the clock of its query."""
    steps = items_of(case, "steps")
    if not is_driven(case):
        for step in steps:
            report.forbid(step, "advance", f"`advance` moves the clock of a query that the case drives: {_DRIVE}")
        for operation in chain.from_iterable(operations_in(query) for query, _ in queries_of(case)):
            if (kind := kind_of(operation)) is not None and kind.name in _TIMERS:
                key, mode, function = _TIMERS[kind.name]
                timer = child(operation, kind.name, key)
                if timer and text_of(timer) == mode and text_of(operation, kind.name, "with") == function:
                    report.add(timer, f"when the timers of {function!r} fire is up to the clock: {_DRIVE}")
        return
    if any(version not in _POSSIBLE for version in releases_in(case, report)):
        message = f'a case can drive the clock of its query on Spark {_POSSIBLE}: write `spark: "{_POSSIBLE}"`'
        report.add(child(case, "spark") or child(case, "trigger") or case, message)
    for stream in entries_of(case, "streams"):
        source = child(stream.value, "source")
        if source is not None and text_of(source) != "files":
            report.add(source, "a case that drives the clock of its query reads files: remove `source`")
    for step in steps:
        message = "no micro-batch runs in the step of a kill while the clock stands still: remove `at`"
        report.forbid(child(step, "restart"), "at", message)
        message = "a case drives the clock of its query with one trigger from beginning to end: remove `trigger`"
        report.forbid(child(step, "restart", "change"), "trigger", message)
