"""A case as a whole: its top-level keys, and how a file becomes a ``Case``."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.core.case import Case, Strength
from conformance.core.spark_types import parse_schema
from conformance.core.versions import VersionRange
from conformance.language.differing import DIFFERS, differs
from conformance.language.links import LINK
from conformance.language.matrix import Matrix
from conformance.language.meaning import check_meaning
from conformance.language.nested import Key, ListOf, Record
from conformance.language.node import Entries, Node, entries_of, items_of
from conformance.language.pipelines import PIPELINE, pipeline
from conformance.language.problem import InvalidCase, Report
from conformance.language.shape import Choice, Json, Text
from conformance.language.source import read_yaml
from conformance.language.steps import CONF, OUTPUT_MODE, STEPS, TRIGGER, confs, step
from conformance.language.streams import STREAMS
from conformance.language.upgrading import UPGRADES, upgrade
from conformance.language.varying import VARIANTS
from conformance.language.version_ranges import RANGE
from conformance.language.words import words

if TYPE_CHECKING:
    from conformance.language.catalogue import Catalogue

SLUG = r"^[a-z0-9]+(-[a-z0-9]+)*$"


def _ids(item: Text, kind: str) -> ListOf:
    return ListOf(item, kind, at_least=1, distinct=True)


MATRIX = Key(
    Matrix(),
    "Parameters and their values: the file is a case for each combination, in which $(parameter) stands for its value.",
)

CASE = Record(
    "a case",
    {
        "title": Key(Text("a title"), "one sentence stating what conforms", required=True),
        "behaviour": Key(
            _ids(Text("the id of a behaviour, such as late-predicate", r"^\S+$"), "a list of ids of behaviours"),
            "Ids of the behaviours it pins, from behaviours.yaml. Required in a suite.",
        ),
        "strength": Key(
            Choice("strength", words(Strength)),
            "`documented`: a promise, which `links` must name. `observed`: true today, promised nowhere.",
        ),
        "links": Key(_ids(LINK, "a list of links"), "Tickets (SPARK-18124) or URLs that promise it."),
        "why": Key(Text("Markdown"), "Why it is so; Markdown, for the report."),
        "spark": Key(RANGE, "The versions the case makes sense on, a PEP 440 range; every version when absent."),
        "mirrors": Key(
            _ids(Text("a statement (S21) or a test of Spark's (T044)", r"^(S[0-9]{2}|T[0-9]{3})$"), "a list of ids"),
            "What it re-expresses: founding statements (S21), tests of Spark's own (T044).",
        ),
        "tags": Key(_ids(Text("a tag such as smoke", SLUG), "a list of tags"), "Words to select cases by."),
        "streams": Key(STREAMS, "the name of each stream and its DDL schema", required=True),
        "query": Key(PIPELINE, "the pipeline under test", required=True),
        "outputMode": Key(OUTPUT_MODE, "Spark's output mode; `append` when absent."),
        "trigger": Key(TRIGGER, "As fast as possible (`default`), `once` or `availableNow`."),
        "conf": Key(CONF, "Spark SQL confs for this case; numbers and booleans reach Spark as text."),
        "steps": Key(STEPS, "what happens, in order", required=True),
        "differs": Key(DIFFERS, "Versions that behave otherwise, with the reason."),
        "variants": Key(
            VARIANTS, "Variants that may change the answer, each with the reason: `{not: {name: reason}}`."
        ),
        "upgrades": Key(
            UPGRADES, "Pairs of versions of which the second does not simply go on from the first's checkpoint."
        ),
    },
)


def read_case(path: Path, id: str, catalogue: Catalogue | None = None) -> Case:
    """Read the case in a file. Nothing in it is executed.

    Args:
        path: a YAML file.
        id: what the case is called: its path under the suite's root without the suffix.
        catalogue: that of the suite the case is in, whose rules it then keeps; None outside of a suite.

    Raises:
        InvalidCase: with every problem there is.
    """
    report = Report(path)
    return case_of(read_yaml(path, report), report, id, catalogue)


def case_of(node: Node | None, report: Report, id: str, catalogue: Catalogue | None) -> Case:
    """The case that a document describes, as ``read_case``; None where nothing could be read."""
    if node is not None:
        CASE.check(node, report)
        check_meaning(node, report, catalogue)
    if node is None or report.problems:
        raise InvalidCase(report.problems)
    return _case(node, report.path, id)


def digest(content: Json) -> str:
    """SHA-256 over what a case says; formatting, comments and the order of keys do not matter."""
    canonical = json.dumps(_text_keys(content), sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _text_keys(content: Json) -> Json:
    if isinstance(content, dict):
        return {str(key): _text_keys(value) for key, value in content.items()}
    return [_text_keys(item) for item in content] if isinstance(content, list) else content


def _case(node: Node, path: Path, id: str) -> Case:
    written: Json = node.plain()
    steps = tuple(step(number, one) for number, one in enumerate(written["steps"], 1))
    numbers = {one.name: one.number for one in steps if one.name}
    names = ("title", "behaviour", "strength", "links", "why", "mirrors", "tags", "trigger")
    return Case(
        id=id,
        path=path,
        digest=digest(written),
        lines=_lines(node),
        **{name: written[name] for name in names if name in written},
        streams={name: parse_schema(ddl) for name, ddl in written["streams"].items()},
        query=pipeline(written["query"]),
        steps=steps,
        spark=VersionRange.parse(written["spark"]) if "spark" in written else None,
        output_mode=written.get("outputMode", "append"),
        conf=confs(written.get("conf", {})),
        differs=tuple(differs(entry, numbers) for entry in written.get("differs", [])),
        variants=written.get("variants", {}).get("not", {}),
        upgrades=tuple(upgrade(entry, numbers) for entry in written.get("upgrades", [])),
    )


def _lines(node: Node) -> dict[str, int]:
    """Every top-level key, ``steps.3``, ``differs.1`` and ``upgrades.1``, and the keys inside these: ``steps.3.expect``."""
    found: dict[str, int] = {}
    for entry in entries_of(node):
        found[str(entry.key.value)] = entry.key.line
        if entry.key.value in ("steps", "differs", "upgrades"):
            for number, item in enumerate(items_of(entry.value), 1):
                found[f"{entry.key.value}.{number}"] = item.line
                _lines_inside(item, f"{entry.key.value}.{number}", found)
    return found


def _lines_inside(node: Node, path: str, found: dict[str, int]) -> None:
    for entry in entries_of(node):
        found[f"{path}.{entry.key.value}"] = entry.key.line
        if entry.key.value in ("expect", "steps") and isinstance(entry.value, Entries):
            _lines_inside(entry.value, f"{path}.{entry.key.value}", found)
