"""The records of a results file, one per line: a header, a record per cell, a footer.

Each is a JSON object whose ``record`` names its kind; ``results.schema.json`` describes them for other programs.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from conformance.core.case import Case, Differs, Documented, Upgrade, file_of
from conformance.core.observation import Column, ErrorSeen, Observation
from conformance.core.versions import NotAVersion, SparkVersion
from conformance.core.wording import printable, ticket
from conformance.judging.finding import Finding, described
from conformance.judging.verdict import Outcome, Status, Verdict
from conformance.variants.catalogue import MARK, VariedCase
from reports.results.errors import CellKey

FORMAT = 5
"""The version of the format that this code writes and reads."""


def handoff_name(origin: str, to: str, cut: int | None) -> str:
    return f"{origin} → {to} before step {cut}"


MOST_CELLS = 1_000_000
"""The most cells that a header may announce: they are counted before the first is read."""
MOST_SHARDS = 9_999
"""The largest number that ``--shard`` takes."""


@lru_cache(maxsize=1 << 14)
def _visible(text: str) -> str:
    if printable(text) != text:
        raise ValueError("must be text on one line, without control characters")
    return text


def _unique(texts: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(texts)) < len(texts):
        raise ValueError(f"has {next(text for text, times in Counter(texts).items() if times > 1)} twice")
    return texts


Name: TypeAlias = Annotated[str, AfterValidator(_visible)]
"""The name of a case, a target or a version, which is shown in messages, headings and tables."""


def _same(value: object, names: str) -> dict[str, Any]:
    """Return the attributes of a value that a record has under the same names."""
    return {name: getattr(value, name) for name in names.split()}


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings", defer_build=True)


class TargetRecord(_Record):
    """The engine of one column of the matrix. Fields that only a started engine knows are None until then."""

    name: Name
    """``spark-3.5.9``: how cells refer to it."""
    spark: Name
    """The resolved version, with any vendor suffix."""
    java: str | None = None
    python: str | None = None
    scala: str | None = None
    os: str | None = None
    runtime: str = "local"
    image: str | None = None
    image_digest: str | None = None
    master: str | None = None
    """The cluster of its executors."""
    kafka: str | None = None
    """Spark's connector for Kafka with its version, and the broker; None if no case of the run reads a topic."""
    tables: str | None = None
    """The packages of table formats with their versions; None if no case of the run reads a table."""
    accelerator: str | None = None
    """The package of the accelerator that runs operators of its plans, with its version."""
    settings: tuple[str, ...] = ()
    """Its own settings, as `Identity.settings`."""
    fixed: tuple[str, ...] = ()
    """What else it has of its own, as `Identity.fixed`."""

    @property
    def title(self) -> str:
        """The heading of its column: ``3.5.9``, or its label."""
        return self.name.removeprefix("spark-")

    @property
    def version(self) -> SparkVersion | None:
        """Its Spark release; None if it has none, as the reference model."""
        try:
            return SparkVersion.parse(self.spark)
        except NotAVersion:
            return None

    @property
    def line(self) -> str | None:
        """``3.5``; None without a Spark release."""
        return self.version.line if self.version is not None else None

    @property
    def apache(self) -> bool:
        return self.name == f"spark-{self.spark}"

    @property
    def engine(self) -> dict[str, Any]:
        """What tells it from another: all but what it has for some cases only."""
        return self.model_dump(exclude={"kafka", "tables"}, exclude_defaults=True)

    @property
    def met(self) -> bool:
        return any((self.java, self.python, self.scala, self.os, self.image_digest))


class Header(_Record):
    """The first line: which cells the file holds."""

    record: Literal["header"] = "header"
    format: Annotated[int, Field(strict=True, ge=FORMAT, le=FORMAT)] = FORMAT
    suite: str
    """``conformance.suite.discovery.Suite.digest``: results of different suites must not be mixed."""
    cases: Annotated[tuple[Name, ...], AfterValidator(_unique)]
    targets: tuple[TargetRecord, ...]
    started: AwareDatetime
    command: str | None = None
    shard: tuple[int, int] | None = None
    """The number of this shard, and of all, if the run was split."""
    pairs: Annotated[tuple[tuple[Name, Name], ...], AfterValidator(_unique)] = ()
    """In an upgrade run, the names of the targets that write checkpoints and of those that resume them."""
    cuts: dict[Name, Annotated[tuple[int, ...], AfterValidator(_unique)]] = {}
    """In an upgrade run, the steps before which each case changes versions."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        _unique(tuple(target.name for target in self.targets))
        announced = len(self.cases) * len(self.targets) + sum(map(len, self.cuts.values())) * len(self.pairs)
        if announced > MOST_CELLS:
            raise ValueError(f"announces {announced:,} cells; at most {MOST_CELLS:,} are read")
        if self.shard is not None and not 1 <= self.shard[0] <= self.shard[1] <= MOST_SHARDS:
            raise ValueError(f"{self.shard[0]}/{self.shard[1]} is not a shard: write 2/5, up to {MOST_SHARDS} parts")
        return self

    def expected_cells(self) -> frozenset[CellKey]:
        """Return the keys of all cells, those of the upgrade matrix included."""
        runs = {(case, target.name) for case in self.cases for target in self.targets}
        upgrades = {
            (case, handoff_name(origin, to, cut))
            for case, cuts in self.cuts.items()
            for cut in cuts
            for origin, to in self.pairs
        }
        return frozenset(runs | upgrades)


class Introduction(_Record):
    """An engine that has introduced itself: replaces the header's target of that name."""

    record: Literal["target"] = "target"
    target: TargetRecord


class DocumentedDifference(_Record):
    """The entry of the case, of ``differs`` or of ``upgrades``, that covers a cell."""

    spark: str
    """The versions of the target; empty for any that resumes a checkpoint."""
    origin: str | None = None
    """Of an entry about checkpoints: the versions that wrote them; None for any."""
    because: str | None = None
    unsupported: str | None = None
    link: str | None = None
    bug: bool = False
    """Whether it is a known bug of these versions."""
    introduced_by: str | None = None
    """The ticket that introduced a bug without a ticket of its own."""
    workaround: str | None = None
    """The workaround that the entry documents: a setting, or a sentence."""
    proven: bool = False
    """Whether the workaround, a setting, was tried on this checkpoint, and every later micro-batch was right."""

    @property
    def reason(self) -> str:
        return self.because or self.unsupported or ""

    @property
    def ticket(self) -> str:
        return ticket(self.link, self.introduced_by, bug=self.bug)

    @property
    def proven_workaround(self) -> str | None:
        """The workaround to show: only what was tried on this checkpoint, so no sentence."""
        return self.workaround if self.proven else None

    @classmethod
    def of(cls, entry: Documented, *, proven: bool = False) -> Self:
        """Record an entry; ``proven``: whether its workaround is."""
        about: dict[str, Any] = {}
        match entry:
            case Differs(spark=spark, unsupported=unsupported):
                about = {"spark": str(spark), "unsupported": unsupported}
            case Upgrade(from_=origin, to=to, workaround=workaround):
                about = {"spark": str(to or ""), "origin": origin and str(origin), "workaround": workaround}
        return cls(**_same(entry, "because link bug introduced_by"), **about, proven=proven)


AllColumns: TypeAlias = tuple[tuple[Column, ...], ...]
"""``Observation.all_columns``."""


class Run(_Record):
    """One of several runs of a cell: its part of the evidence."""

    status: Status
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    behaviour: str | None = None
    observation: Observation | None = None


class Cell(_Record):
    """One cell: a case, and the targets that ran it in order, one or two."""

    record: Literal["cell"] = "cell"
    case: Name
    expansion: str = ""
    """The part of the id that the file's ``matrix`` adds, if the file expands to several cases."""
    variant: str = ""
    """The variant in which the case ran, after ``@`` in its id; empty if it ran as written. The observation is translated back to the
    case as written."""
    family: Name
    case_digest: str
    target: Name
    """The target that ran the last step."""
    origin: Name | None = None
    """The target that ran the steps before the cut, and wrote the checkpoint; None if one target ran all."""
    cut: int | None = None
    """The number of the step before which the targets change."""
    status: Status
    outcome: Outcome | None = None
    """What the query did with the checkpoint; None if there was none to resume."""
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    """The settings of the engine's own without which the case conforms, where it violates."""
    behaviour: str | None = None
    """The digest of what was observed: versions with the same digest behaved the same."""
    differs: DocumentedDifference | None = None
    error: ErrorSeen | None = None
    """The error, expected or not, of the query that resumed the checkpoint."""
    observation: Observation | None = None
    """What was observed, without the raw ``progress`` of its micro-batches."""
    runs: tuple[Run, ...] = ()
    """Each run in order, if the cell ran more than once."""
    duration_ms: int = 0
    reused: bool = False
    """Whether it is the cached answer of an earlier run; ``duration_ms`` is how long that took."""

    @property
    def columns(self) -> AllColumns:
        """The output columns of its queries; none without an observation."""
        return self.observation.all_columns if self.observation is not None else ()

    @property
    def key(self) -> CellKey:
        return self.case, self.place

    @property
    def place(self) -> str:
        """Where the case ran: the target, or both and the cut."""
        return self.target if self.origin is None else handoff_name(self.origin, self.target, self.cut)

    @property
    def pair(self) -> tuple[str, str]:
        """The targets that wrote the checkpoint and resumed it; the same one if it ran all."""
        return self.origin or self.target, self.target

    def evidence(self) -> tuple[str, ...]:
        """Return its findings and notes, line by line: the log of an engine is a note of many lines."""
        notes = (f"note: {note}".replace("\n", "\n  ") for note in self.notes)
        return *described(self.findings), *(line for note in notes for line in note.split("\n"))

    @property
    def file(self) -> str:
        """The file of the case, relative to its suite."""
        return file_of(self.written, self.expansion)

    @property
    def written(self) -> str:
        return self.case.removesuffix(f"{MARK}{self.variant}") if self.variant else self.case

    @classmethod
    def of(
        cls,
        case: Case,
        target: str,
        verdict: Verdict,
        observations: Sequence[Observation | None] = (),
        duration_ms: int = 0,
        *,
        origin: str | None = None,
        reused: bool = False,
    ) -> Self:
        """Record a verdict on a case.

        Args:
            observations: one for each run, in order; None for a run without one.
            origin: the target that wrote the checkpoint.
            duration_ms: of all runs together.
            reused: whether the observation is of an earlier run.
        """
        if isinstance(case, VariedCase):
            observations = [answer and case.observation_of_original(answer) for answer in observations]
        answers = [answer and answer.without_progress() for answer in observations]
        runs = tuple(
            Run(**_same(run, "status findings notes behaviour"), observation=answer)
            for run, answer in zip_longest(verdict.runs, answers[: len(verdict.runs)])
        )
        return cls(
            **_same(verdict, "cut status outcome findings notes explained_by behaviour error"),
            case=case.id,
            expansion=case.expansion,
            variant=case.variant if isinstance(case, VariedCase) else "",
            family=case.family,
            case_digest=case.digest,
            target=target,
            origin=origin,
            differs=DocumentedDifference.of(verdict.differs, proven=verdict.proven) if verdict.differs else None,
            observation=next((answer for answer in answers if answer is not None), None),
            runs=runs,
            duration_ms=duration_ms,
            reused=reused,
        )


class Footer(_Record):
    """The last line. A file without one was interrupted."""

    record: Literal["footer"] = "footer"
    counts: dict[Status, int]
    """The number of cells with each status; statuses without cells may be left out."""
    finished: AwareDatetime
    digest: str | None = None
    """What ``cells_digest`` says of the cells before it; None in files of earlier releases."""


def cells_digest(cells: Iterable[Cell]) -> str:
    """Return a digest of what identifies each cell, and of its answer: it finds cells that went, came or changed, not a forger."""
    return digest_of(sum(map(answer_hash, cells)))


def answer_hash(cell: Cell) -> int:
    """Return the SHA-256 of a cell as a number: these are added, so that their order does not count and none is kept."""
    answer = "\n".join((*cell.key, cell.case_digest, cell.status, cell.outcome or "", cell.behaviour or ""))
    return int.from_bytes(hashlib.sha256(answer.encode("utf-8", "surrogatepass")).digest())


def digest_of(hashes: int) -> str:
    return f"{hashes % 2**256:064x}"


AnyRecord: TypeAlias = Header | Introduction | Cell | Footer
RECORD: TypeAdapter[AnyRecord] = TypeAdapter(
    Annotated[AnyRecord, Field(discriminator="record")], config=ConfigDict(defer_build=True)
)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of a results file: the content of ``results.schema.json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of the results of watermark-conformance",
        "description": f"Format {FORMAT}: a header, then introductions of targets and cells in any order, then a footer.",
        **RECORD.json_schema(mode="serialization"),
    }
