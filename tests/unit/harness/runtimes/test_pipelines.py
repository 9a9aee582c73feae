"""How Spark's runner of pipelines is started, and what is said if it gives no answer."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.runtimes import pipelines
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.pipelines import PipelineRequest, PipelineSeen
from harness.targets.targets import Targets

REQUEST = PipelineRequest(
    definitions={"0/a.py": "import dlt", "1/a.sql": "SET a = b;"},
    folders=["/code"],
    database="shop",
    conf={"a": "b"},
    schemas={},
    sources=[],
    created=[],
    sampled={},
    flows={"f": "t"},
    arrivals=[{}],
)


class Ended:
    """A process that has ended."""

    def answers(self) -> Iterator[str]:
        yield "2026-03-01 10:00:00: Creating Spark session...\n"

    def log(self) -> Iterator[str]:
        yield from ("a line\n", "KeyError: 'SECRET'\n", "\n")

    def ending(self) -> str:
        return "exit code 1"

    def close(self) -> None: ...

    kill = close


def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str | None) -> tuple[Path, PipelineSeen]:
    work: list[Path] = []

    def start(module, environment, folder, conf, cluster, *, variables):
        assert (module, environment, cluster) == ("driver.pipelines", "made", None)
        work.append(folder)
        if answer is not None:
            (folder / "answer.json").write_text(answer)
        return Ended()

    needs: list[tuple[str, ...]] = []
    monkeypatch.setattr(pipelines, "prepare", lambda target, **_: needs.append(target.packages) or "made")
    monkeypatch.setattr(pipelines.program, "start", start)
    target = Targets.load().choose(["4.3"]).targets[0]
    options = RuntimeOptions(conf={"spark.hadoop.fs.s3a.secret.key": "SECRET"}, requirements=("boto3",))
    seen = pipelines.run_pipeline(target, REQUEST, tmp_path, options, 9.0, lambda _: None)
    assert {"pyyaml>=6", "grpcio>=1.76", "boto3"} <= {*needs[0]}
    return work[0], seen


def test_it_gets_a_project_of_its_own_below_the_folder_of_the_trial(tmp_path, monkeypatch) -> None:
    tables = {"t": {"columns": ["n"], "rows": [[1], [None]]}}
    work, seen = ran(tmp_path, monkeypatch, json.dumps({"tables": tables}))
    assert seen.tables["t"].rows == ((1,), (None,))
    assert work.is_relative_to(tmp_path)
    assert (work / "project" / "1" / "a.sql").read_text() == "SET a = b;"
    spec = json.loads((work / "project" / "spark-pipeline.yml").read_text())
    assert (spec["storage"], spec["database"]) == ((work / "storage").as_uri(), "shop")
    assert [library["glob"]["include"] for library in spec["libraries"]] == ["0/a.py", "1/a.sql"]
    assert json.loads((work / "pipeline.json").read_text())["flows"] == {"f": "t"}
    assert (work / "engine" / "driver" / "pipelines.py").is_file()


def test_an_end_without_an_answer_is_an_error_with_the_last_line_and_no_secret(tmp_path, monkeypatch) -> None:
    with pytest.raises(HarnessError) as ended:
        ran(tmp_path, monkeypatch, None)
    assert str(ended.value).startswith("Spark's runner of pipelines ended with exit code 1: KeyError: ")
    assert "SECRET" not in str(ended.value)
    assert "SECRET" not in str(ran(tmp_path, monkeypatch, json.dumps({"error": "no SECRET"}))[1].error)
