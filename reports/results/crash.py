"""What queries did with the images of a crash: the file of records."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from conformance.checkpoints.crash_images import CrashImage, Fault
from conformance.core.observation import FrozenRecord
from conformance.core.output_file import FileKind
from conformance.judging.checkpoint_verdict import CheckpointVerdict
from conformance.judging.verdict import Outcome
from reports.results.checkpoint_status import OUTCOMES, of_crashes

CRASH_RECORDS = FileKind("the records of crashes", lambda start: start.startswith(b'{"format":2,"kind":"crashes"'))


class _Line(FrozenRecord):
    @property
    def line(self) -> str:
        return self.model_dump_json() + "\n"


class CrashHeader(_Line):
    """The first line."""

    format: Literal[2] = 2
    kind: Literal["crashes"] = "crashes"
    command: str


class CrashRecord(_Line):
    """A query restarted from one image."""

    case: str
    target: str
    state_store: str
    step: int
    fault: Fault | None
    number: int
    """The number of file operations of the micro-batch that are done."""
    operation: str
    """The last operation that is done, or the one that was lost."""
    outcome: Outcome
    error: str
    why: str

    @classmethod
    def of(
        cls, case: str, target: str, state_store: str, step: int, image: CrashImage | None, verdict: CheckpointVerdict
    ) -> Self:
        """Record a verdict; ``image``: None if the micro-batch could not be recorded."""
        return cls(
            case=case,
            target=target,
            state_store=state_store,
            step=step,
            fault=image.fault if image is not None else None,
            number=image.number if image is not None else 0,
            operation=image.operation if image is not None else "",
            outcome=verdict.outcome,
            error=verdict.error.name if verdict.error is not None else "",
            why=verdict.why,
        )

    def __str__(self) -> str:
        where = f"{self.fault} at {self.operation}" if self.fault else "not recorded"
        named = f"{self.error}: " if self.error and not self.why.startswith(f"[{self.error}") else ""
        why = f": {named}{self.why}" if self.why else ""
        return f"{OUTCOMES[self.outcome].glyph} {self.target} {self.state_store} {self.case}, {where}{why}"


@dataclass(frozen=True)
class CrashRecords:
    header: CrashHeader
    records: tuple[CrashRecord, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file of records; raises pydantic's ValidationError for anything else."""
        first, *others = path.read_text(encoding="utf-8").splitlines()
        return cls(CrashHeader.model_validate_json(first), tuple(map(CrashRecord.model_validate_json, others)))

    @property
    def exit_code(self) -> int:
        return of_crashes(record.outcome for record in self.records)
