"""What `explain --checkpoint --spark` asks an engine about state that is not read here, and what it says of the answer."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.checkpoints.checkpoint import read
from conformance.checkpoints.files import open_files
from conformance.checkpoints.state import StateField, StateOperator, StateSchema, StateStoreFiles
from conformance.checkpoints.state_rows import StateRead, rows_in_state
from conformance.runner.resources import EngineUse
from harness.engine.engine import EngineDied
from harness.engine.protocol import StateRequest, StateSeen
from tests.support.checkpoints import schema_v2, small, state_file, unsafe_row, write, written_by
from tests.support.commands import answer_of
from tests.unit.conformance.checkpoints.test_state_rows import GOOD, WINDOW, aggregation, columns, noon

pytest.importorskip("pyarrow")
Capture = pytest.CaptureFixture[str]
Answer = Callable[[StateRequest], StateSeen]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch):
    """Puts an engine behind the command that gives these rows of values, or this error; returns the requests that it gets."""

    def put(*values: tuple[int | None, ...], error: str | None = None, dies: bool = False) -> list[StateRequest]:
        asked: list[StateRequest] = []
        running = []

        def read_state(request: StateRequest, *, timeout: float) -> StateSeen:
            assert timeout > 0
            assert (Path(request.checkpoint) / "state").is_dir()
            asked.append(request)
            if dies:
                raise EngineDied("the engine's process ended with exit code 1 at reading the state")
            said = error and error.replace("COPY", request.checkpoint)
            return StateSeen(kind="state", case=request.case, values=values, error=said)

        @contextmanager
        def keeping_engines(_: EngineUse) -> Iterator[SimpleNamespace]:
            def start(*_: object, **__: object) -> SimpleNamespace:
                running.append(1)
                return SimpleNamespace(read_state=read_state, close=running.pop)

            yield SimpleNamespace(runtime=SimpleNamespace(start=start))
            assert not running  # the engine has ended

        monkeypatch.setattr(EngineUse, "keeping_engines", keeping_engines)
        return asked

    return put


def said(capsys: Capture, root: Path, *more: str) -> str:
    code, text, errors = answer_of(capsys, "explain", "--checkpoint", str(root), "--spark", "4.3", *more)
    assert (code, "Traceback" in errors) == (0, False)
    return " ".join(text.split())


def content(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


WINDOWS = (2, 2, noon(30) * 1000, noon(40) * 1000, 1, 0, 0)


def test_the_answer_is_that_of_a_file_store_and_the_checkpoint_is_not_changed(engine, tmp_path, capsys) -> None:
    asked = engine(WINDOWS)
    of_files = said(capsys, written_by("4.3.0", "window_aggregation-hdfs", tmp_path))
    assert asked == []  # no engine starts for what is read without
    root = written_by("4.3.0", "window_aggregation-rocksdb", tmp_path)
    before = content(root)
    answer = said(capsys, root, "-o", str(tmp_path / "page"))
    assert answer.partition(": after")[2].partition(" The answer")[0] == of_files.partition(": after")[2]
    assert "operator 0 stateStoreSave: 2 rows in 1 window, 2024-01-01T12:30" in (
        (tmp_path / "page" / "explanation.html").read_text()
    )
    assert content(root) == before
    (request,) = asked
    assert request.checkpoint != str(root)
    assert request.conf["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")
    (asks,) = request.reads
    assert asks.options == {"operatorId": "0", "batchId": "3"}
    end, next_us = "unix_micros(key.`window`.end)", noon(21) * 1000
    assert asks.expressions[:4] == ("count(*)", f"count({end})", "min(unix_micros(key.`window`.start))", f"max({end})")
    assert (asks.expressions[-2], asks.expressions[-1]) == (
        f"count_if({end} <= {next_us})",
        f"count_if({end} > {next_us} AND {end} <= {next_us})",
    )


def test_a_join_is_asked_for_each_side(engine, tmp_path, capsys) -> None:
    left, right = noon(30) * 1000, noon(29) * 1000
    asked = engine((2, 2, left, left + 60_000_000, 2, 0, 0), (1, 1, right, right, 1, 0, 0))
    answer = said(capsys, written_by("4.3.0", "outer_join-rocksdb", tmp_path))
    assert (
        "symmetricHashJoin: 3 rows: left 2 rows, event time 2024-01-01T12:30 – 2024-01-01T12:31, right 1 row" in answer
    )
    (request,) = asked
    assert [read.options.get("joinSide") for read in request.reads] == ["left", "right"]
    assert [read.expressions[2] for read in request.reads] == [
        "min(unix_micros(value.`clicks_time`))",
        "min(unix_micros(value.`orders_time`))",
    ]


def test_a_join_with_both_sides_in_one_store_is_asked_for_each_side(tmp_path) -> None:
    files = open_files(str(small(tmp_path)))
    time = StateField("t", "timestamp", True, (0,), has_watermark=True)
    schemas = tuple(
        StateSchema(3, f"{side}-{kind}", (), (time,) if kind == "keyWithIndexToValue" else ())
        for side in ("left", "right")
        for kind in ("keyToNumValues", "keyWithIndexToValue")
    )
    store = StateStoreFiles("default", 2, "RocksDB", (1, 1), 0, schemas)
    checkpoint = replace(read(files), operators=(StateOperator(0, "symmetricHashJoin", 2, (store,)),))
    asked: list[StateRead] = []

    def spark(_: object, __: object, reads: Sequence[StateRead]) -> list[tuple[int, ...]]:
        asked.extend(reads)
        return [(n, n, 0, 1000, 1, 0, 0) for n in (3, 4)]

    (operator,) = rows_in_state(files, checkpoint, spark)
    assert [(store.name, store.rows, store.times) for store in operator.stores] == [
        ("left", 3, "event time"),
        ("right", 4, "event time"),
    ]
    assert [read.options["joinSide"] for read in asked] == ["left", "right"]
    unknown = replace(checkpoint.operators[0], stores=(replace(store, schemas=schemas[::2]),))
    (operator,) = rows_in_state(files, replace(checkpoint, operators=(unknown,)), spark)
    assert (operator.rows, operator.unread) == (None, "state/0: no store is of a kind that is known")


def test_the_reader_is_told_of_stores_that_the_commits_name(engine, tmp_path, capsys) -> None:
    root, asked = written_by("4.3.0", "window_aggregation-rocksdb", tmp_path), engine(WINDOWS)
    key = "spark.sql.streaming.stateStore.checkpointFormatVersion"
    said(capsys, root)
    for path in root.glob("commits/*"):
        if path.name.isdecimal():
            path.write_text(path.read_text().replace("{", '{"stateUniqueIds":{"0":[]},', 1))
    for path in root.glob("commits/.*.crc"):
        path.unlink()
    said(capsys, root)
    assert [request.conf.get(key) for request in asked] == [None, "2"]


def test_what_spark_does_not_read_is_not_known(engine, tmp_path, capsys) -> None:
    root = written_by("4.3.0", "window_aggregation-rocksdb", tmp_path)
    engine(error="[CANNOT_LOAD_STATE_STORE.X] COPY/state/0/0/3.zip")
    answer = said(capsys, root)
    says = f"not read: {root}/state/0: Spark 4.3.0 does not read it: [CANNOT_LOAD_STATE_STORE.X] {root}/state/0/0/3.zip"
    assert says.replace(" ", "") in answer.replace(" ", "")  # a line may be wrapped within the path
    assert " 0 rows" not in answer
    _, text, _ = answer_of(capsys, "explain", "--checkpoint", str(root), "--spark", "4.3", "--json")
    (operator,) = json.loads(text)["state"]["operators"]
    assert (operator["rows"], operator["stores"]) == (None, [])


def test_a_missing_file_is_named_without_an_engine(engine, tmp_path, capsys) -> None:
    root, asked = written_by("4.3.0", "window_aggregation-rocksdb", tmp_path), engine()
    gone = next(root.rglob("*.sst"))
    gone.unlink()
    assert f"{gone.name}: it is missing" in said(capsys, root)
    assert asked == []


def variables_of(root: Path, *names: str, variables: object = None) -> Path:
    """Make a checkpoint one of ``transformWithState``, as far as its metadata say."""
    (path,) = [path for path in root.glob("state/0/_metadata/**/*") if path.is_file() and path.suffix != ".crc"]
    version, _, text = path.read_text().partition("\n")
    metadata = json.loads(text)
    metadata["operatorInfo"]["operatorName"] = "transformWithStateExec"
    kinds = [{"stateName": name, "stateVariableType": "ValueState", "ttlEnabled": False} for name in names]
    properties = {"timeMode": "EventTime", "stateVariables": kinds if variables is None else variables}
    metadata["operatorPropertiesJson"] = json.dumps(properties)
    path.write_text(f"{version}\n{json.dumps(metadata)}")
    for checksum in path.parent.glob("*.crc"):
        checksum.unlink()
    return root


@pytest.mark.parametrize(
    ("of_timers", "timers", "says"),
    [
        (
            ["$eventTimers_keyToTimestamp"],
            [(4, 2, noon(20), noon(31), 1)],
            ", timers 4 rows of 2 keys, timer 2024-01-01T12:20 – 2024-01-01T12:31; its code removes them; the next "
            "micro-batch fires 1 timer",
        ),
        (
            ["$procTimers_keyToTimestamp"],
            [(4, 2, noon(20), noon(31), 1)],
            ", timers 4 rows of 2 keys, timer 2024-01-01T12:20 – 2024-01-01T12:31; its code removes them",
        ),
        ([], [], "; its code removes them"),
    ],
)
def test_variables_and_timers_are_counted(of_timers, timers, says, engine, tmp_path, capsys) -> None:
    root = written_by("4.3.0", "window_aggregation-rocksdb", tmp_path)
    asked = engine((3, 3), (7, 2), *timers)
    answer = said(capsys, variables_of(root, "n", *of_timers, "seen"))
    rows = 10 + sum(rows for rows, *_ in timers)
    assert answer.endswith(
        f"operator 0 transformWithStateExec: {rows} rows: n 3 rows of 3 keys, seen 7 rows of 2 keys{says}"
    )
    (request,) = asked
    assert [read.options.get("stateVarName") for read in request.reads] == ["n", "seen", *([None] * len(timers))]
    assert all(read.options["readRegisteredTimers"] == "true" for read in request.reads[2:])
    # A timer fires when the watermark of the next micro-batch reaches it.
    assert [read.expressions[-1] for read in request.reads[2:]] == [
        f"count_if(expiration_timestamp_ms <= {noon(21)})" for _ in timers
    ]


@pytest.mark.parametrize("variables", [3, [3], [{}], "n", {"n": 1}])
def test_metadata_of_variables_that_spark_did_not_write_are_damaged(variables, tmp_path, capsys) -> None:
    root = variables_of(written_by("4.3.0", "window_aggregation-rocksdb", tmp_path), variables=variables)
    code, _, errors = answer_of(capsys, "explain", "--checkpoint", str(root))
    assert (code, "Traceback" in errors) == (2, False)
    assert "this is not the metadata of a stateful operator" in " ".join(errors.split())


STATE = "spark.sql.streaming.stateStore"


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        (f"{STATE}.compression.codec", "snappy", "its files are of the codec snappy"),
        (f"{STATE}.rowChecksum.enabled", "true", f"each row has a checksum ({STATE}.rowChecksum.enabled)"),
    ],
)
def test_a_file_store_of_another_format_is_asked_for(setting, value, why, engine, tmp_path, capsys) -> None:
    root = aggregation(tmp_path / "c", {"1.delta": GOOD}, watermark_minutes=5)
    write(
        root,
        {"offsets/0": (root / "offsets/0").read_text().replace('"conf": {', f'"conf": {{"{setting}": "{value}", ')},
    )
    without = " ".join(answer_of(capsys, "explain", "--checkpoint", str(root))[1].split())
    assert f"operator 0: not read: {why}, which --spark 4.3 reads" in without
    asked = engine((1, 1, 0, 600_000_000, 1, 0, 0))
    assert "operator 0: 1 row in 1 window, 1970-01-01T00:00 – 1970-01-01T00:10; the next" in said(capsys, root)
    assert asked[0].conf[setting] == value


@pytest.mark.parametrize(
    ("key", "value", "first"),
    [
        (("window", WINDOW, True), ("n", "long", False), "unix_micros(key.`window`.start)"),
        (("a `b", "timestamp", True), ("n", "long", False), "unix_micros(key.`a ``b`)"),
        (("n", "long", False), ("expiresAtMicros", "long", False), "value.`expiresAtMicros`"),
        (
            ("n", "long", False),
            ("timeoutTimestamp", "integer", False),
            "if(value.`timeoutTimestamp` < 0, NULL, 1000 * value.`timeoutTimestamp`)",
        ),
        (("n", "long", False), ("m", "long", False), None),
    ],
)
def test_the_column_with_the_time_is_asked_for(key, value, first, engine, tmp_path, capsys) -> None:
    files = {"1.delta": state_file((unsafe_row("ada"), unsafe_row(1)))}
    root = write(
        aggregation(tmp_path / "c", files), {"state/0/0/_metadata/schema": schema_v2(columns(key), columns(value))}
    )
    write(
        root,
        {
            "offsets/0": (root / "offsets/0")
            .read_text()
            .replace('"conf": {', f'"conf": {{"{STATE}.compression.codec": "lzf", ')
        },
    )
    asked = engine((0, 0, None, None, 0, 0, 0) if first else (0,))
    said(capsys, root)
    (asks,) = asked[0].reads
    assert asks.expressions[2:3] == ((f"min({first})",) if first else ())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--spark", "3.5"), "has no reader of state: name 4.0 or newer with --spark"),
        (("--spark", "4.3", "--runtime", "container"), "a container does not see the copy of the checkpoint"),
        (("--spark", "4.3", "--progress", "x"), "no progress of a streaming query"),
    ],
)
def test_what_cannot_read_it_is_refused(options, says, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x").touch()
    root = written_by("4.3.0", "window_aggregation-rocksdb", tmp_path)
    code, text, errors = answer_of(capsys, "explain", "--checkpoint", str(root), *options)
    assert (code, text) == (2, "")
    assert says in " ".join(errors.split())


def test_an_engine_that_dies_is_no_answer(engine, tmp_path, capsys) -> None:
    engine(dies=True)
    root = written_by("4.3.0", "window_aggregation-rocksdb", tmp_path)
    code, text, errors = answer_of(capsys, "explain", "--checkpoint", str(root), "--spark", "4.3")
    assert (code, text, "Traceback" in errors) == (3, "", False)
    assert "the engine's process ended with exit code 1" in errors
