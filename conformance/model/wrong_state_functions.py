"""Wrong models of state functions and stateful processors. The others are in ``wrong_models``."""

from __future__ import annotations

from typing import Any

from conformance.model.catalogue import WrongModel, accepting, misreading


def _wrong(name: str, detected_by: str, /, **rules: Any) -> WrongModel:
    return misreading(name, f"arbitrary-state/{detected_by}", **rules)


def _accepting(name: str, detected_by: str, refusal: str) -> WrongModel:
    return accepting(name, f"arbitrary-state/{detected_by}", refusal)


WRONG_STATE_FUNCTIONS: tuple[WrongModel, ...] = (
    _wrong(
        "late rows reach no state function",
        "late-rows-reach-a-function-without-event-time-timeout.no-timeout",
        functions_drop_late_rows="always",
    ),
    _wrong(
        "late rows reach every state function", "function-decides-by-the-watermark", functions_drop_late_rows="never"
    ),
    _wrong(
        "a timeout fires at a watermark equal to it",
        "function-decides-by-the-watermark",
        timeout_fires=lambda timeout, watermark: timeout <= watermark,
    ),
    _wrong(
        "a timeout fires although rows of the micro-batch move it",
        "rows-of-the-micro-batch-cancel-its-timeout",
        rows_come_before_timeouts=False,
    ),
    _wrong(
        "a timeout passed as a datetime is a number of days",
        "timeout-may-be-a-datetime",
        datetime_timeout_ms=lambda ms: ms // 86_400_000,
    ),
    _wrong(
        "a state function loses rows with null in the first column",
        "null-key-comes-out",
        null_first_column_is_emitted=False,
    ),
    _wrong(
        "a timer fires only behind the watermark",
        "timer-fires-when-the-watermark-reaches-it",
        timer_fires=lambda timer, watermark: timer < watermark,
    ),
    _wrong(
        "an unused output column strips the initial state",
        "initial-state-is-whole-whatever-is-selected-after",
        initial_state="grouping columns below unused output",
    ),
    _wrong(
        "nothing after a stateful processor has its watermark",
        "transform-with-state-then-aggregation",
        processors_pass_the_watermark_on=False,
    ),
    _wrong(
        "a stateful processor may emit late rows",
        "emitting-rows-behind-the-watermark-fails",
        emitted_rows_may_be_late=True,
    ),
    _accepting(
        "an event-time timeout needs no watermark",
        "event-time-timeout-needs-a-watermark",
        "event-time timeout without watermark",
    ),
    _accepting(
        "a state function may have another output mode than the query",
        "output-mode-of-the-function-must-be-that-of-the-query",
        "state function in another mode",
    ),
    _accepting(
        "a state function in update mode may follow an aggregation",
        "update-function-after-an-aggregation-is-refused",
        "update function with an aggregation",
    ),
)
