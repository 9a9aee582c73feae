"""The catalogues of a suite, which list the ids that its cases may name, and the checks of what a case names.

They are at the root of the suite: ``behaviours.yaml`` (which makes a folder a suite), ``statements.yaml``,
``spark-tests.yaml`` and ``tags.yaml``, each a mapping from id to entry. Cases name nothing in ``questions.yaml`` and ``upgrades.yaml``:
their entries name cases.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

from conformance.core.case import Upgrade
from conformance.core.wording import nearest
from conformance.language.shape import Choice, Converted, Key, ListOf, Record, Text
from conformance.language.source import Entries, InvalidCase, Node, ProblemReport, child, items_of, read_yaml, text_of
from conformance.language.steps import EXPECT_KEYS
from conformance.language.version_differences import RANGE, SHARED_UPGRADES, check_shared_upgrades

DESCRIPTIONS: Mapping[str, str] = {
    "reversed-rows": "the rows of each partition of a micro-batch arrive in the opposite order",
    "spread-rows": "the rows of each micro-batch are spread over three partitions",
    "one-shuffle-partition": "the case sets several shuffle partitions and runs with one",
    "four-shuffle-partitions": "there are four shuffle partitions",
    "rocksdb": "state is kept in RocksDB instead of HDFS-backed stores",
    "changelog-checkpoints": "state in RocksDB is checkpointed as changelogs",
    "checkpoint-format-2": "state in RocksDB has checkpoint format 2, with an id for each version of a store",
    "avro-state": "rows of the state in RocksDB are encoded with Avro",
    "row-checksum": "each row of the state has a checksum",
    "rows-for-pandas": "stateful processors get rows instead of pandas DataFrames",
    "no-codegen": "code generation is off, for whole stages and for expressions",
    "adaptive": "adaptive query execution is on",
    "time-zone": "the session is in another time zone",
    "shifted-epoch": "everything happens 52 weeks later",
    "kafka": "the rows are records of a topic of Kafka",
    "delta": "the rows are commits to a Delta table",
    "iceberg": "the rows are commits to an Iceberg table",
    "restart": "the query is restarted before a step, for each step in turn",
}
"""Name of a variant → what differs in it."""


CLAUSES = ListOf(
    Record(
        "a clause",
        {
            "says": Key(Text("a part of the sentence"), "the part of the sentence", required=True),
            "case": Key(Text("the id of a case"), "the case that shows it", required=True),
            "step": Key(Converted(Text("the number of a step", "^[1-9][0-9]{0,3}$"), int), "its step", required=True),
            "shows": Key(
                Choice("key of `expect`", (*EXPECT_KEYS, "checkpoint")), "what would not be met", required=True
            ),
            "from": Key(
                RANGE, "With `shows: checkpoint`: the versions that ran the steps before; all older ones if absent."
            ),
            "versions": Key(RANGE, "The versions that it is about; all if absent."),
            "differs": Key(
                RANGE, "The versions of which it says what `differs` or `upgrades` of the case does; none if absent."
            ),
        },
    ),
    "a list of clauses",
    at_least=1,
)
"""The parts of a sentence of ``behaviours.yaml`` or ``questions.yaml``, each with the step that proves it."""

CatalogueEntries: TypeAlias = Mapping[str, Mapping[str, Any]]

FILES = {
    "behaviours": "behaviours.yaml",
    "statements": "statements.yaml",
    "spark_tests": "spark-tests.yaml",
    "tags": "tags.yaml",
    "questions": "questions.yaml",
    "upgrades": "upgrades.yaml",
}
"""Field of ``Catalogue`` → its file."""


@dataclass(frozen=True)
class Catalogue:
    """The ids that the cases of a suite may name, each with what its YAML says; an entry that is only text is ``{"sentence": text}``. A
    catalogue without a file is None, and its ids are not checked."""

    root: Path
    behaviours: CatalogueEntries
    statements: CatalogueEntries | None = None
    spark_tests: CatalogueEntries | None = None
    tags: CatalogueEntries | None = None
    questions: CatalogueEntries | None = None
    """Questions that people ask, each answered by cases."""
    upgrades: CatalogueEntries | None = None
    """Why versions reject or do not simply resume the checkpoints of cases: entries of ``upgrades`` that the cases need not repeat, and
    that their digests leave out."""

    @classmethod
    def at(cls, root: Path) -> Self | None:
        """Read the catalogues in a folder; return None if the folder is not the root of a suite. Raises `InvalidCase` for a wrong file."""
        if not (root / FILES["behaviours"]).is_file():
            return None
        return cls(root, **{name: _read(root / file) for name, file in FILES.items() if (root / file).is_file()})

    def names_upgrades_in(self, file: str) -> bool:
        """Return whether ``upgrades.yaml`` names a case of the file with this id."""
        return file in self._files_with_upgrades

    @cached_property
    def _files_with_upgrades(self) -> frozenset[str]:
        return files_of(case for entry in (self.upgrades or {}).values() for case in entry["cases"])

    def upgrades_of(self, case: str) -> tuple[Upgrade, ...]:
        """Return what ``upgrades.yaml`` says of the case with this id."""
        entries = (entry.items() for entry in (self.upgrades or {}).values() if case in entry["cases"])
        return tuple(Upgrade.model_validate({key: said for key, said in entry if key != "cases"}) for entry in entries)

    def reachable_behaviours(self) -> frozenset[str]:
        """Return the behaviours that a case can test: all without ``reachable: false``."""
        return frozenset(id for id, entry in self.behaviours.items() if entry.get("reachable", True))

    def reachable_spark_tests(self) -> frozenset[str]:
        """Return Spark's tests whose outcome a streaming query shows."""
        return self._visible_spark_tests() - self.tests_apart().keys()

    def tests_apart(self) -> Mapping[str, str]:
        """Return by id why no streaming query on a supported Spark can show what a test asserts, though its outcome is visible."""
        tests, visible = self.spark_tests or {}, self._visible_spark_tests()
        return {id: str(entry["apart"]) for id, entry in tests.items() if id in visible and "apart" in entry}

    def _visible_spark_tests(self) -> frozenset[str]:
        tests = (self.spark_tests or {}).items()
        return frozenset(id for id, entry in tests if entry.get("visible", "BB") in ("BB", "BB*"))

    def tests_of_group(self, id: str) -> tuple[str, ...]:
        """Return the tests that an id without a number within its group stands for: T194.1, T194.2 … of T194."""
        return self._tests_by_group.get(id, ())

    @cached_property
    def _tests_by_group(self) -> Mapping[str, tuple[str, ...]]:
        grouped: dict[str, tuple[str, ...]] = {}
        for test in self.spark_tests or {}:
            group, point, _ = test.partition(".")
            if point:
                grouped[group] = (*grouped.get(group, ()), test)
        return grouped


def files_of(cases: Iterable[str]) -> frozenset[str]:
    """Return the ids of the files that may hold these cases: the id of a case of a matrix goes on after a dot, which the name of a file may
    have, too."""
    names = frozenset(cases)
    return names | {name[:at] for name in names for at, letter in enumerate(name) if letter == "."}


def _read(path: Path) -> CatalogueEntries:
    report = ProblemReport(path)
    content = read_yaml(path, report)
    if content is not None and not isinstance(content, Entries):
        report.add(content, "a catalogue must be a mapping from id to entry")
    for entry in content.entries if isinstance(content, Entries) else ():
        if (clauses := child(entry.value, "clauses")) is not None:
            CLAUSES.check(clauses, report)
    are_upgrades = path.name == FILES["upgrades"]
    if isinstance(content, Entries) and not report.problems and are_upgrades and SHARED_UPGRADES.check(content, report):
        check_shared_upgrades(content, report)
    if not isinstance(content, Entries) or report.problems:
        raise InvalidCase(report.problems)
    if are_upgrades:
        return SHARED_UPGRADES.value(content.plain())
    entries = content.plain().items()
    return {str(id): entry if isinstance(entry, dict) else {"sentence": entry} for id, entry in entries}


def check_catalogue_ids(case: Node, report: ProblemReport, catalogue: Catalogue) -> None:
    if not isinstance(case, Entries):
        return
    if case.get("behaviour") is None:
        report.add(
            case, "`behaviour` is missing: a case of a suite names the behaviours it tests, from behaviours.yaml"
        )
    for number, entry in enumerate(items_of(case, "differs"), 1):
        if isinstance(entry, Entries) and entry.get("link") is None and entry.get("bug") is None:
            missing = f"entry {number} of `differs` needs a `link` or a `bug`"
            report.add(entry, f"{missing}: in a suite, every difference is documented or a known bug")
    for behaviour in items_of(case, "behaviour"):
        _check_id(behaviour, "behaviour", catalogue.behaviours, "behaviours.yaml", report)
    check_common_ids(case, report, catalogue)


def check_common_ids(case: Node, report: ProblemReport, catalogue: Catalogue) -> None:
    """Check the ids of any kind of case; a policy case names no behaviours, since those are Spark's."""
    if not isinstance(case, Entries):
        return
    if case.get("links") is None and text_of(case.get("strength")) != "observed":
        advice = "add `links` that document it, or write `strength: observed`"
        report.add(case.key("strength"), f"`links` is missing for strength `documented`: {advice}")
    for tag in items_of(case, "tags"):
        _check_id(tag, "tag", catalogue.tags, "tags.yaml", report)
    mirrored: set[str] = set()
    for mirror in items_of(case, "mirrors"):
        named = child(mirror, "test") or mirror
        id = text_of(named) or ""
        if id in mirrored:
            report.add(named, f"duplicate {id!r}: a case mirrors a test once")
        mirrored.add(id)
        if id.startswith("S"):
            _check_id(named, "mirror", catalogue.statements, "statements.yaml", report)
        elif not catalogue.tests_of_group(id):
            _check_id(named, "mirror", catalogue.spark_tests, "spark-tests.yaml", report)


def _check_id(node: Node, what: str, known: Mapping[str, Any] | None, file: str, report: ProblemReport) -> None:
    """Report an id that is not in the catalogue; without a catalogue, every id is allowed."""
    id = text_of(node)
    if known is None or id is None or id in known or not report.is_valid(node):
        return
    near = nearest(id, known) if what != "mirror" else None  # similar numbers mean nothing
    hint = f"did you mean {near!r}?" if near else f"not in {file}"
    report.add(node, f"unknown {what} {id!r}: {hint}")
