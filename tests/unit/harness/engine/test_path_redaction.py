"""Results that say nothing of the machine they came from."""

from conformance.core.observation import ErrorSeen, StepSeen
from harness.engine.driver_engine import redact_paths, without_folders
from tests.support.observations import batch

PLACES = {"/tmp/x/spark-3.5.9-a/cases/7-late-drops": "<case>", "/tmp/x/spark-3.5.9-a": "<engine>"}


def step(message=None, plan=None):
    error = None if message is None else ErrorSeen(stage="run", classes=("IOException",), message=message)
    return StepSeen(number=1, batches=(), watermark=0, plan=plan, error=error, wall_ms=1)


def test_directories_in_an_error_have_names():
    said = "Error reading delta file file:/tmp/x/spark-3.5.9-a/cases/7-late-drops/checkpoint/state/0/0/1.delta of state"
    seen = redact_paths(step(said), PLACES)
    assert seen.error.message == "Error reading delta file file:<case>/checkpoint/state/0/0/1.delta of state"
    assert seen.error.classes == ("IOException",)


def test_a_traceback_names_modules_without_their_environment():
    said = (
        'File "/home/me/.cache/environments/4.1.4-36/lib/python3.13/site-packages/pyspark/worker.py", line 3\n'
        'File "/tmp/x/spark-3.5.9-a/engine/driver/state_functions.py", line 9'
    )
    assert redact_paths(step(said), PLACES).error.message == (
        'File "python3.13/site-packages/pyspark/worker.py", line 3\nFile "<engine>/engine/driver/state_functions.py", line 9'
    )


def test_directories_in_a_plan_have_names():
    plan = "StateStoreSave [window#1], state info [ checkpoint = file:/tmp/x/spark-3.5.9-a/cases/7-late-drops/checkpoint/state ]"
    assert "[ checkpoint = file:<case>/checkpoint/state ]" in redact_paths(step(plan=plan), PLACES).plan


def test_what_names_no_directory_stays():
    assert redact_paths(step("no such column"), PLACES) == step("no such column")
    assert redact_paths(step(), PLACES) == step()


def test_a_row_with_the_path_of_its_file_is_the_same_in_every_engine():
    paths = [
        f"file:///tmp/x/spark-{engine}/cases/{at}-orders/streams/a.json"
        for engine, at in (("3.5.9-a", 2), ("4.3.0-b", 7))
    ]
    other = "/tmp/x/spark-3.5.9-a/cases/2-orders-of-today/a.json"
    seen = step().model_copy(
        update={"batches": (batch(0, rows=((1, paths[0], {"in": [paths[1]]}), (2, other, None))),)}
    )
    (shown,) = without_folders(seen, "/tmp/x/spark-4.3.0-b/cases/9-orders").batches
    same = "file://<case>/streams/a.json"
    assert shown.rows == ((1, same, {"in": [same]}), (2, other, None))
