"""What is said of a checkpoint of one's own that a version resumed."""

import pytest

from conformance.checkpoints.awaiting import AwaitingChange
from conformance.checkpoints.checkpoint import Checkpoint
from conformance.core.observation import ErrorSeen, Observation, OwnCodeError
from conformance.core.versions import VersionRange
from conformance.judging.checkpoint_verdict import resumed_at
from conformance.own_job.resumption import Resumption, record, statements
from harness.targets.targets import Targets
from tests.support.observations import COLUMNS, batch, step, window

CHECKPOINT = Checkpoint("/data/orders", None, None, None, (), 0)
(TARGET,) = Targets.load().choose(["4.3.0"]).targets
REFUSAL = AwaitingChange(
    {},
    VersionRange.parse(">=4.0"),
    "may be refused",
    "a key is NOT NULL",
    "SPARK-57003",
    "STATE_GONE",
    {"text": "gone"},
    "turn it off",
)
CHANGE = AwaitingChange({}, VersionRange.parse(">=4.0"), "changes", "another format", "SPARK-1")
MISTAKE = OwnCodeError(raised="KeyError('fee')", at="acme/totals.py:12", during="in a UDF", traceback="  fee")


def resumption(*steps: object, lacking: str | None = None) -> Resumption:
    seen = Observation.of("case", COLUMNS, steps) if steps else None
    return Resumption(CHECKPOINT, TARGET, seen, resumed_at(1, seen, reason=lacking), (REFUSAL, CHANGE))


def failed(number: int, name: str = "STATE_GONE", **keys: object) -> object:
    return step(number, error=ErrorSeen(stage="run", classes=(name,), message=f"[{name}] gone\n at", **keys))


RAN = step(1, batch(7, window("12:00", "12:10", 1), state=(2,)))


@pytest.mark.parametrize(
    ("found", "code", "lines"),
    [
        (
            resumption(RAN),
            0,
            [
                "● the checkpoint resumes on 4.3.0",
                "▲ may be refused with STATE_GONE: a key is NOT NULL (SPARK-57003)",
                "◆ changes: another format (SPARK-1)",
            ],
        ),
        (
            resumption(failed(1)),
            1,
            ["⊘ the checkpoint is refused on 4.3.0: STATE_GONE", "◆ changes: another format (SPARK-1)"],
        ),
        (
            resumption(RAN, failed(2)),
            1,
            [
                "✗ the checkpoint resumes on 4.3.0, then the query fails: STATE_GONE",
                "◆ changes: another format (SPARK-1)",
            ],
        ),
        (resumption(failed(1, "KeyError", own_code=MISTAKE)), 2, [f"! {MISTAKE}"]),
        (resumption(lacking="the engine was lost"), 3, ["! no answer about the checkpoint on 4.3.0"]),
    ],
)
def test_the_answer_comes_first_and_then_what_is_known(found: Resumption, code: int, lines: list[str]) -> None:
    assert found.exit_code == code
    assert [f"{one.glyph} {one.text}" for one in statements(found)] == lines
    assert (record(found)["outcome"] == "resumed") == (code == 0)


def test_a_refusal_has_its_reason_and_its_workaround() -> None:
    (refused, _) = statements(resumption(failed(1)))
    assert refused.details == ("a key is NOT NULL (SPARK-57003)", "workaround: turn it off")
    (unknown, *_) = statements(resumption(failed(1, "OTHER")))
    assert unknown.details == ("[OTHER] gone",)


def test_the_message_of_spark_is_kept_with_both_schemas_and_without_its_stack_and_plan() -> None:
    message = "[X] does not match\nExisting a\n  and new b\n\tat org.apache.spark.Y\n=== Streaming Query ===\nPlan"
    seen = step(1, error=ErrorSeen(stage="run", classes=("X",), message=message))
    (refused, *_) = statements(resumption(seen))
    assert refused.details == ("[X] does not match", "Spark: Existing a", "Spark: and new b")


def test_without_an_answer_it_says_why() -> None:
    (lost,) = statements(resumption(lacking="the engine was lost"))
    assert (lost.kind, lost.details) == ("broken", ("the engine was lost",))
    (unread, *known) = statements(resumption(step(1)))
    assert unread.details == ("no micro-batch ran, so the state was not read",)
    assert [one.glyph for one in known] == ["▲", "◆"]


def test_the_micro_batches_are_told_with_their_state() -> None:
    (resumed, *_) = statements(resumption(RAN))
    assert resumed.details[0].startswith("micro-batch 7 ran")
    assert resumed.details[0].endswith("1 row emitted, 2 rows in state")
    (told,) = record(resumption(RAN))["micro_batches"]
    assert (told["id"], told["state"]) == (7, [2])
