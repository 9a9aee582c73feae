"""A Spark case: its top-level keys, how a document becomes a ``Case``, and what a case can do that drives the clock of its query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import get_args

from conformance.core.case import WRITTEN_SINKS, Case, Strength
from conformance.core.data import Json, read_data, text_digest
from conformance.core.versions import VersionRange
from conformance.language import version_differences as versions
from conformance.language.catalogue import DESCRIPTIONS, Catalogue, check_catalogue_ids
from conformance.language.permission import check_confs, needs_code
from conformance.language.pipelines import FUNCTION, PIPELINE, kind_of, operations_in, queries_of, with_lists
from conformance.language.query_checks import check_queries
from conformance.language.row_checks import check_expected_rows, check_memory, check_streams, check_written
from conformance.language.shape import ByKind, Choice, Converted, Key, ListOf, Record, Shape, Text
from conformance.language.source import InvalidCase, Node, ProblemReport, child, entries_of, items_of, text_of
from conformance.language.steps import CONF, FIRST_TRIGGER, OUTPUT_MODE, STEPS, check_errors, check_steps, is_driven
from conformance.language.streams import STREAMS, with_sources


def _ids(item: Shape, kind: str) -> ListOf:
    return ListOf(item, kind, at_least=1, distinct=True)


_REASONS = {name: Key(Text("a reason"), f"Why the result may change if {what}.") for name, what in DESCRIPTIONS.items()}
_NOT = Key(Record("`not`", _REASONS, at_least=1), "variant name → why it may change the result", required=True)
_VARIANTS = Record("`variants`", {"not": _NOT})

_TEST = r"T[0-9]{3}(\.[0-9]+)?"
_MIRRORED = Text("a statement (S21) or a Spark test (T044)", rf"^(S[0-9]{{2}}|{_TEST})$")
_MIRROR = ByKind(
    _MIRRORED.kind,
    scalar=Converted(_MIRRORED, lambda written: {"id": written}),
    entries=Record(
        "a mirror",
        {
            "test": Key(
                Text("a Spark test (T044)", rf"^{_TEST}$"), "the Spark test that is re-expressed in part", True, "id"
            ),
            "partly": Key(Text("what is lost"), "which of its assertions no case carries, and why", True),
        },
    ),
)

CASE = Record(
    "a case",
    {
        "title": Key(Text("a title"), "one sentence that states the conforming behaviour", required=True),
        "behaviour": Key(
            _ids(Text("the id of a behaviour, such as late-predicate", r"^\S+$"), "a list of behaviour ids"),
            "Ids of the behaviours it tests, from behaviours.yaml. Required in a suite.",
        ),
        "strength": Key(
            Choice("strength", get_args(Strength)),
            "`documented`: promised by one of `links`. `observed`: true today, but not documented.",
        ),
        "links": Key(
            _ids(versions.LINK, "a list of links"), "Tickets (SPARK-18124) or URLs that document the behaviour."
        ),
        "why": Key(Text("Markdown"), "The explanation, in Markdown, for the report."),
        "spark": Key(versions.RANGE, "The versions the case applies to, a PEP 440 range; every version if absent."),
        "mirrors": Key(
            _ids(_MIRROR, "a list of ids"),
            "What it re-expresses: founding statements (S21), Spark's own tests (T044, or `{test: T044, partly: what is lost}`).",
        ),
        "tags": Key(
            _ids(Text("a tag such as smoke", r"^[a-z0-9]+(-[a-z0-9]+)*$"), "a list of tags"),
            "Words for selecting cases.",
        ),
        "streams": Key(STREAMS, "stream name → DDL schema, or {schema: …, source: kafka}", required=True),
        "query": Key(PIPELINE, "the pipeline under test", required=True),
        "outputMode": Key(OUTPUT_MODE, "Spark's output mode; `append` if absent."),
        "trigger": Key(
            FIRST_TRIGGER,
            "As fast as possible (`default`), `once`, `availableNow`, `realTime` (4.2+ in Python), or `{processingTime: 10 seconds}` "
            "(3.4+), by a clock that starts at 0 and that only `advance` moves.",
        ),
        "sink": Key(
            Text(
                f"{', '.join(WRITTEN_SINKS)} or module:function", f"^(?:{'|'.join(WRITTEN_SINKS)})$|{FUNCTION.pattern}"
            ),
            "`files` (Parquet), `delta` or `iceberg`: the query writes there, and its rows are what a reader of it finds. "
            "`module:function`: your own `function(DataFrame, batch_id)`, as for `foreachBatch`, that writes each micro-batch, "
            "of which the rows that it reads are captured, or `function(DataFrame)` that starts queries of its own; needs `--allow-code`.",
        ),
        "conf": Key(CONF, "Spark SQL confs of this case; numbers and booleans reach Spark as strings."),
        "steps": Key(STEPS, "what happens, in order", required=True),
        "differs": Key(versions.DIFFERS, "Versions that behave differently, with the reason."),
        "variants": Key(
            Converted(_VARIANTS, lambda variants: variants["not"]),
            "Variants that may change the result, each with the reason: `{not: {name: reason}}`.",
        ),
        "upgrades": Key(
            versions.UPGRADES, "Pairs of versions where the second does not simply resume the checkpoint of the first."
        ),
    },
)


def case_of(node: Node | None, report: ProblemReport, id: str, catalogue: Catalogue | None) -> Case:
    """Read the case in a document, None if it could not be parsed; raise `InvalidCase` with every problem."""
    if node is not None:
        node = with_lists(node)
        CASE.check(node, report)
        check_streams(node, report)
        check_steps(node, report)
        check_memory(node, report)
        check_written(node, report)
        check_clock(node, report)
        columns = check_queries(node, report)
        check_expected_rows(node, columns, report)
        check_confs(node, report)
        versions.check_differs(node, report)
        versions.check_upgrades(node, report)
        if catalogue is not None:
            check_catalogue_ids(node, report, catalogue)
            check_errors(node, report)
    if node is None or report.problems:
        raise InvalidCase(report.problems)
    written: Json = node.plain()
    values = with_sources(CASE.value(written))
    if isinstance(values.get("trigger"), dict):
        values |= {**values["trigger"], "trigger": "processingTime"}
    numbers = {step["name"]: step["number"] for step in values["steps"] if "name" in step}
    for key in ("differs", "upgrades"):
        values[key] = versions.with_step_numbers(values.get(key, ()), numbers)
    values |= {"id": id, "path": report.path, "digest": digest(written), "lines": dict(lines_of(node))}
    values |= {"not_checked": [(line, reason) for line, _, reason in sorted(report.not_checked)]}
    case = Case.model_validate({**values, "row_files": frozenset(report.row_files), "needs_code": needs_code(node)})
    shared = catalogue.upgrades_of(id) if catalogue is not None else ()
    if not shared:
        return case
    # A refused checkpoint shows nothing else; then what the case says of versions comes first, what it says of any two last.
    of_versions = [entry for entry in case.upgrades if entry.from_ is not None or entry.to is not None]
    of_any = [entry for entry in case.upgrades if entry not in of_versions]
    refused = [entry for entry in shared if entry.error is not None]
    others = [entry for entry in shared if entry.error is None]
    return case.model_copy(update={"upgrades": (*refused, *of_versions, *others, *of_any)})


def digest(content: Json) -> str:
    """Return the digest of the content of a case; formatting, comments and the order of keys do not matter."""

    def with_text_keys(content: Json) -> Json:
        if isinstance(content, dict):
            return {str(key): with_text_keys(value) for key, value in content.items()}
        return [with_text_keys(item) for item in content] if isinstance(content, list) else content

    canonical = json.dumps(with_text_keys(content), sort_keys=True, ensure_ascii=False, default=str)
    return text_digest(canonical)


def lines_of(node: Node, above: str = "") -> Iterator[tuple[str, int]]:
    """Yield every top-level key, ``steps.3``, ``differs.1``, ``upgrades.1``, ``trace.1`` and the keys inside them: ``steps.3.expect``."""
    for entry in entries_of(node):
        path = f"{above}{entry.key.value}"
        yield path, entry.key.line
        if path in ("steps", "differs", "upgrades", "trace"):
            for number, item in enumerate(items_of(entry.value), 1):
                yield f"{path}.{number}", item.line
                yield from lines_of(item, f"{path}.{number}.")
        elif above and entry.key.value in ("expect", "steps"):
            yield from lines_of(entry.value, f"{path}.")


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
    if any(version not in _POSSIBLE for version in versions.releases_in(case, report)):
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
