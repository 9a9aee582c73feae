"""Spark's own reader of the state of checkpoints, in an engine that starts when it is asked first."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from conformance.checkpoints.checkpoint import Checkpoint, copy_detached, stored_settings
from conformance.checkpoints.files import Files, NoSuchCheckpoint
from conformance.checkpoints.state_rows import SparkReader, StateRead
from conformance.core.errors import WrongUsage
from conformance.core.temporary_folder import temporary_folder
from conformance.core.versions import has_state_reader
from conformance.runner.resources import EngineUse
from harness.engine.engine import Engine
from harness.engine.protocol import StateRequest
from harness.progress import ProgressCallback
from harness.targets.targets import Target

COPY_IS_HERE = "a container does not see the copy of the checkpoint, which is on this machine"


@contextmanager
def spark_reader(target: Target, use: EngineUse, on_progress: ProgressCallback) -> Iterator[SparkReader]:
    """What reads a copy of a checkpoint, and raises what `copy_detached`, `EngineUse.keeping_engines` and `Engine.read_state` raise.

    Raises WrongUsage: the version has no such reader, or its engine would not see the copy.
    """
    if not has_state_reader(target.version):
        raise WrongUsage(f"Spark {target.version} has no reader of state: name 4.0 or newer with --spark")
    if use.runtime.runtime == "container":
        raise WrongUsage(f"--runtime container: {COPY_IS_HERE}: omit it")
    with ExitStack() as stack:
        engines: list[Engine] = []
        copies: dict[str, str] = {}

        def answers(files: Files, checkpoint: Checkpoint, reads: Sequence[StateRead]) -> Sequence[Sequence[int | None]]:
            conf = stored_settings(checkpoint, use.runtime.conf)
            if checkpoint.committed is not None and checkpoint.committed.names_stores:
                conf["spark.sql.streaming.stateStore.checkpointFormatVersion"] = "2"
            if files.where not in copies:
                copy = stack.enter_context(temporary_folder()) / "checkpoint"
                copy_detached(files, checkpoint, copy, use.runtime.conf)
                copies[files.where] = str(copy)
            if not engines:
                runtime = stack.enter_context(use.keeping_engines()).runtime
                engines.append(runtime.start(target, on_progress=on_progress))
                stack.callback(engines[0].close)
            path = copies[files.where]
            request = StateRequest(case="state", checkpoint=path, conf=conf, reads=tuple(reads))
            seen = engines[0].read_state(request, timeout=use.concurrency.step_timeout)
            if seen.error is not None:
                why = f"Spark {target.version} does not read it: {seen.error.replace(path, checkpoint.where)}"
                raise NoSuchCheckpoint(f"{checkpoint.where}/state/{reads[0].options['operatorId']}", why)
            return seen.values

        yield answers
