"""The reason that an error gives, among the messages of the errors that only pass it on."""

import re

import pytest

from conformance.core.observation import ErrorSeen
from tests.support.published import published_report

QUERY = "Query [id = dc1aa0c1-7fe0-4fb2-a931-5fdb6ff9addf, runId = 46e3c0c2-6432-412b-815d-83bf3d209fbf]"
STATE = """=== Streaming Query ===
Identifier: [id = dc1aa0c1-7fe0-4fb2-a931-5fdb6ff9addf, runId = 46e3c0c2-6432-412b-815d-83bf3d209fbf]
Current Committed Offsets: {}
Current Available Offsets: {}

Current State: ACTIVE
Thread State: RUNNABLE

Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink, [checkpointLocation=file:/c], Update
+- ~Project [window#1.end AS end#2, [A_B] AS x]
   +- ~StreamingRelation FileSource[file:/s]
"""
SOURCES = "There are [1] sources in the checkpoint offsets and now there are [3] sources requested by the query. Cannot continue."
BINARY = (
    "[STATE_STORE_UNSUPPORTED_OPERATION_BINARY_INEQUALITY] Binary inequality column is not supported with state store."
)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            f"[STREAM_FAILED] {QUERY} terminated with exception: {BINARY} Provided schema: StructType(). "
            f"SQLSTATE: XXKST SQLSTATE: XXKST\n{STATE}",
            (f"{BINARY} Provided schema: StructType().",),
        ),
        (
            f"{QUERY} terminated with exception: Execution of the stream null failed. Please, fill a bug report in.\n"
            f"assertion failed: {SOURCES}",
            (f"assertion failed: {SOURCES}",),
        ),
        (
            f"[STREAM_FAILED] {QUERY} terminated with exception: [INTERNAL_ERROR] The Spark SQL phase planning failed with an "
            f"internal error. You hit a bug. SQLSTATE: XX000\n{STATE}\nCaused by: assertion failed: {SOURCES}",
            (f"assertion failed: {SOURCES}",),
        ),
        (
            "Job aborted due to stage failure: Task 0 in stage 15.0 failed 1 times, most recent failure: Lost task 0.0 in stage 15.0 "
            "(TID 12) (localhost executor driver): org.apache.spark.sql.execution.streaming.state.StateSchemaNotCompatible: Provided "
            "schema doesn't match.\n- Existing key schema: StructType(StructField(k,IntegerType,true))\n\tat org.apache.X.y(X.scala:7)"
            "\n\t... 3 more\n\nDriver stacktrace:",
            ("Provided schema doesn't match.", "- Existing key schema: StructType(StructField(k,IntegerType,true))"),
        ),
        (
            "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):\n"
            '  File "worker.py", line 4327, in invoke_udf\n    run_process()\n    ~~~~^^\n'
            "pyspark.errors.exceptions.base.PySparkRuntimeError: [INVALID_TIMEOUT_TIMESTAMP] Timeout timestamp (1) cannot be earlier.",
            ("[INVALID_TIMEOUT_TIMESTAMP] Timeout timestamp (1) cannot be earlier.",),
        ),
        (
            "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.  SQLSTATE: 58030\n"
            "Caused by: File file:/cp/state/0/0/SSTs/000008.sst does not exist",
            ("File file:/cp/state/0/0/SSTs/000008.sst does not exist",),
        ),
        (
            "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.\nCaused by: /scratch/metadata",
            ("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.", "/scratch/metadata"),
        ),
        (
            "[CAST_INVALID_INPUT] The value 'x' cannot be cast.\nCaused by: For input string: x",
            ("[CAST_INVALID_INPUT] The value 'x' cannot be cast.",),
        ),
        (
            "Update output mode not supported;\nProject [a#1]\n+- Aggregate [a#1]\n   +- StreamingRelation",
            ("Update output mode not supported",),
        ),
        ("Job aborted: java.lang.NullPointerException", ("NullPointerException",)),
        ("Job aborted.\nCaused by: null", ("Job aborted.",)),
        ("seconds must be ≥ 0\nand whole", ("seconds must be ≥ 0", "and whole")),
        ("Query [id = 1, runId = 2] terminated with exception: null", ("it has no message",)),
        ("", ()),
        ("\n \n", ()),
    ],
)
def test_the_reason_is_the_innermost_message_that_says_it(message: str, reason: tuple[str, ...]) -> None:
    assert ErrorSeen(stage="run", classes=(), message=message).reason == reason


def test_no_published_error_is_shown_by_what_only_passes_it_on() -> None:
    errors = [
        step.error
        for cell in published_report().results.cells
        if cell.observation is not None
        for step in cell.observation.steps
        if step.error is not None and step.error.message.strip()
    ]
    assert len(errors) > 500
    passing = re.compile(
        r"^\[(STREAM_FAILED|INTERNAL_ERROR)|Query \[id|terminated with|Job aborted|Traceback|SQLSTATE|==="
    )
    assert [error.first_line for error in errors if not error.reason or passing.search(error.first_line)] == []
