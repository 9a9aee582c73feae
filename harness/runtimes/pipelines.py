"""Runs a declarative pipeline by Spark's own runner, in a process of its own: ``harness.driver.pipelines``."""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread, Timer

from pydantic import BaseModel, ConfigDict

from conformance.core.data import Json
from conformance.core.wording import secrets_of, without_secrets
from harness.environments.provision import prepare
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes import program
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.own_code import with_requirements
from harness.targets.targets import Target


@dataclass(frozen=True, kw_only=True)
class PipelineRequest:
    """A pipeline, and what arrives in its sources."""

    definitions: Mapping[str, str]
    """File name below the project → its text; the runner reads them in this order."""
    folders: Sequence[str]
    """Of the author's modules."""
    database: str
    conf: Mapping[str, str]
    schemas: Mapping[str, str]
    """Stream → its columns."""
    sources: Sequence[Mapping[str, Json]]
    """The ``name`` of the stream that stands for each source of a program, with its ``format`` and ``options``, in order."""
    created: Sequence[str]
    """The streams that are tables beside the pipeline."""
    sampled: Mapping[str, str]
    """Table of the pipeline, of which a stream has the rows → that stream, which also names the table that its flows fill in its place."""
    flows: Mapping[str, str]
    """Flow → its target."""
    arrivals: Sequence[Mapping[str, str]]
    """For each run, stream → the lines of a file."""


class Filled(BaseModel):
    """What flows have written into a table."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    columns: tuple[str, ...]
    rows: tuple[tuple[Json, ...], ...]


class PipelineSeen(BaseModel):
    """What Spark's runner did."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    tables: Mapping[str, Filled] = {}
    """Target → its rows after all runs; none if a run failed."""
    error: str | None = None
    lacking: str | None = None
    """Why it was not tried."""


def run_pipeline(
    target: Target,
    request: PipelineRequest,
    root: Path,
    options: RuntimeOptions,
    timeout: float,
    on_progress: ProgressCallback,
) -> PipelineSeen:
    """Run a pipeline, once for each arrival. Raises HarnessError: the process cannot start, ends without an answer or takes too long."""
    requirements = (*target.connect, *target.pipelines, *options.requirements)
    environment = prepare(with_requirements(target, requirements), on_progress=on_progress)
    work = program.stage(target, root)
    for file, text in request.definitions.items():
        (work / "project" / file).parent.mkdir(parents=True)
        (work / "project" / file).write_text(text, encoding="utf-8")
    spec = {
        "name": "trial",
        "storage": (work / "storage").as_uri(),
        "database": request.database,
        "configuration": {**request.conf},
        "libraries": [{"glob": {"include": file}} for file in request.definitions],
    }
    # JSON is YAML.
    (work / "project" / "spark-pipeline.yml").write_text(json.dumps(spec), encoding="utf-8")
    (work / "pipeline.json").write_text(json.dumps(asdict(request)), encoding="utf-8")
    on_progress(f"{target.name}: Spark's runner of pipelines")
    transport = program.start("driver.pipelines", environment, work, options.conf, None, variables=options.variables)
    said = deque[str](maxlen=20)
    reading, timer = Thread(target=lambda: said.extend(transport.log())), Timer(timeout, transport.kill)
    try:
        reading.start()
        timer.start()
        deque(transport.answers(), maxlen=0)  # what the runner prints
        ended = transport.ending()
    finally:
        timer.cancel()
        transport.close()
        reading.join()
    redact = without_secrets(secrets_of({**options.conf, **options.variables}))
    try:
        return PipelineSeen.model_validate_json(redact((work / "answer.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        last = next((line.strip() for line in reversed(said) if line.strip()), "")
        raise HarnessError(redact(f"Spark's runner of pipelines ended with {ended}: {last}")) from None
