"""``conformance run`` with miniature engines: what is asked, what is known, and in which parts."""

import json
import subprocess
import sys
from math import ceil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.runner import resources
from conformance.suite import discovery
from conformance.suite.selection import estimated_batches
from harness.engine.engine import NOTHING_ELSE
from harness.engine.request import request_for
from harness.scheduling import cell_run
from reports.results.reading import Results
from tests.support.miniature.runtime import MiniatureRuntime

TEXT = (Path(__file__).parents[3] / "support" / "miniature" / "cases" / "late-drops" / "windows.yaml").read_text()


class Here:
    """A folder with two cases, and ``conformance run`` in it."""

    mode, fingerprint = "right", "an engine"

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.started = 0
        (folder / "cases").mkdir()
        for name, minutes in (("one", 25), ("two", 26)):
            (folder / "cases" / f"{name}.yaml").write_text(TEXT.replace("25 minutes", f"{minutes} minutes"))
        monkeypatch.setattr(resources, "runtime_for", self._runtime)
        monkeypatch.chdir(folder)

    def run(self, *arguments, paths=("cases",), code=None):
        done = CliRunner().invoke(app, ["run", *paths, "--spark", "3.5.9", *arguments])
        assert code is None or done.exit_code == code, done.output
        return done.output

    def commit(self):
        identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
        for arguments in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "x"]):
            subprocess.run(["git", *arguments], cwd=self.folder, check=True)

    def _runtime(self, options, *_, **__):
        here = self
        self.options = options

        class Counted(MiniatureRuntime):
            def start(self, target, *, on_progress, needs=NOTHING_ELSE):
                here.started += 1
                return super().start(target, on_progress=on_progress, needs=needs)

        return Counted(self.folder, self.mode, fingerprint=self.fingerprint)


@pytest.fixture
def here(tmp_path, monkeypatch):
    return Here(tmp_path, monkeypatch)


def test_a_second_run_says_how_many_answers_were_known(here):
    assert "from the cache" not in here.run()
    before = Results.read(here.folder / "results.jsonl")
    # What was observed stays in the file until it is asked for, and the second run writes another file there.
    first = {cell.model_dump_json(exclude={"reused"}) for cell in before.cells}
    assert "2 of 2 answers from the cache; --fresh ignores it" in here.run()
    assert here.started == 1
    after = Results.read(here.folder / "results.jsonl")
    assert first == {cell.model_dump_json(exclude={"reused"}) for cell in after.cells}
    assert [{cell.reused for cell in each.cells} for each in (before, after)] == [{False}, {True}]
    assert after.header.targets == before.header.targets
    assert "from the cache" not in here.run("--fresh")
    assert here.started == 2


@pytest.fixture
def lost(here, monkeypatch):
    """A run on a cluster, whose answers are not cached, that was lost before one of three cases had its answer."""
    words = ["conformance", "run", "--connect", "sc://localhost:1/;token=sesame", "cases"]
    monkeypatch.setattr(sys, "argv", words)
    (here.folder / "cases" / "poison.yaml").write_text(TEXT)
    here.mode, here.fingerprint = "dies-of-poison", None
    here.run(code=3)
    here.mode, here.started = "right", 0
    monkeypatch.setattr(sys, "argv", [*words[:3], "sc://localhost:1/;token=another", *words[4:], "--resume"])
    return here


def test_a_run_is_resumed_where_the_engine_was_lost(lost):
    file = lost.folder / "results.jsonl"
    before = {cell.case: cell.model_dump_json() for cell in Results.read(file).cells}
    assert [case for case, cell in before.items() if '"status":"broken"' in cell] == ["poison"]
    said = lost.run("--resume", code=0)
    assert "keeps 2 answers of results.jsonl" in said
    assert "[1/1]" in said
    after = {cell.case: cell.model_dump_json() for cell in Results.read(file).cells}
    assert {case for case in after if after[case] != before[case]} == {"poison"}
    assert lost.started == 1
    assert "keeps 3 answers of results.jsonl" in lost.run("--resume", code=0)
    assert lost.started == 1
    assert Results.read(file).header.targets[0].java == "17"


@pytest.mark.parametrize("other", ["cases", "command", "engine", "file"])
def test_a_run_resumes_no_other_run(lost, monkeypatch, other):
    file = lost.folder / "results.jsonl"
    before = file.read_bytes()
    match other:
        case "cases":
            (lost.folder / "cases" / "one.yaml").write_text(TEXT.replace("25 minutes", "27 minutes"))
        case "command":
            monkeypatch.setattr(sys, "argv", [*sys.argv, "--conf", "spark.x=1"])
        case "engine":
            lost.mode = "has"
        case "file":
            file.rename(lost.folder / "elsewhere.jsonl")
    said = lost.run("--resume", code=2)
    assert {"engine": "is not as it was when", "file": "there is no such file"}.get(other, "is of another run") in said
    if other != "file":
        assert file.read_bytes() == before
    assert lost.started == (other == "engine")


def test_repetitions_are_never_taken_from_earlier_runs(here):
    here.run()
    assert "from the cache" not in here.run("--repeat", "2")
    assert here.started == 2


def test_shards_together_are_the_whole(here):
    here.run("--shard", "1/3", "--output", "1.jsonl")
    here.run("--shard", "2/3", "--output", "2.jsonl")
    here.run("--shard", "3/3", "--output", "3.jsonl")
    done = CliRunner().invoke(app, ["maintain", "combine", "1.jsonl", "2.jsonl", "3.jsonl"])
    assert "2 cases × 1 version" in done.output
    refused = CliRunner().invoke(app, ["maintain", "combine", "1.jsonl", "3.jsonl"])
    assert "of the 3 shards of spark-3.5.9, these are missing: 2/3" in refused.output


def test_a_plan_says_how_many_machines_answer_in_time_and_starts_nothing(here, monkeypatch):
    monkeypatch.setattr("conformance.runner.cases._BATCH_S", 60)
    asked = ("--spark", "3.4.4", "--plan")
    said = here.run(*asked, "text", code=0).splitlines()
    plan = json.loads(here.run(*asked, "json", code=0))
    batches = sum(map(estimated_batches, discovery.load([here.folder / "cases"]).cases))
    assert (plan["cells"], plan["minutes"]) == (2 * 2, ceil(2 * (20 / 60 + batches)))
    starts = 2 * 20 / 60  # on each machine
    of = ceil(2 * batches / (15 - starts))
    assert plan["shards"] == [f"{number}/{of}" for number in range(1, of + 1)]
    assert said[-2:] == [
        f"about {plan['minutes']} min on two quiet cores, without answers that are cached",
        f"within 15 min each on {len(plan['shards'])} machines: --shard {plan['shards'][0]} to --shard {plan['shards'][-1]}",
    ]
    assert here.started == 0
    assert not (here.folder / "results.jsonl").exists()


def test_no_shard_of_the_suite_takes_longer_by_its_own_plan_than_the_plan_of_all_says():
    def plan(*words):
        return json.loads(CliRunner().invoke(app, ["run", "--spark", "lines", *words, "--plan", "json"]).output)

    shards = plan("--all")["shards"]
    assert len(shards) > 1
    assert max(plan("--shard", shard)["minutes"] for shard in (shards[0], shards[-1])) <= 15


def test_since_runs_what_was_touched(here):
    here.commit()
    assert "nothing to run: no case has changed since HEAD" in here.run("--since", "HEAD", code=0)
    assert not (here.folder / "results.jsonl").exists()
    (here.folder / "cases" / "two.yaml").write_text(TEXT)
    here.run("--since", "HEAD")
    assert Results.read(here.folder / "results.jsonl").header.cases == ("two",)


@pytest.fixture
def suite(here, monkeypatch):
    """The two cases are the suite that ships; only one of them has a tag, `smoke`."""
    one = here.folder / "cases" / "one.yaml"
    one.write_text(one.read_text().replace("title:", "tags: [smoke]\ntitle:", 1))
    monkeypatch.setattr(discovery, "shipped", lambda: here.folder / "cases")
    return here


def ran(here):
    return Results.read(here.folder / "results.jsonl").header.cases


def test_where_nothing_is_named_the_smoke_cases_run_and_the_second_line_says_so(suite):
    said = "violate\n1 of 2 cases, those tagged smoke; `conformance run --all` runs all of them\n"
    assert said in suite.run(paths=(), code=0)
    assert ran(suite) == ("one",)


@pytest.mark.parametrize("more", [["--spark", "3.4.4"], ["--variant", "restart"], ["--repeat", "2"]])
def test_versions_variants_and_repetitions_are_of_the_smoke_cases(suite, more):
    assert "1 of 2 cases, those tagged smoke" in suite.run(*more, paths=(), code=0)
    assert {case.partition("@")[0] for case in ran(suite)} == {"one"}


@pytest.mark.parametrize("more", [["--all"], ["--shard", "1/1"], ["--all", "--shard", "1/1"], ["cases"]])
def test_every_case_runs_where_all_or_a_part_of_all_is_named(suite, more):
    assert "those tagged smoke" not in suite.run(*more, paths=(), code=0)
    assert ran(suite) == ("one", "two")


def test_a_change_since_a_revision_is_sought_among_all_cases(suite):
    suite.commit()
    (suite.folder / "cases" / "two.yaml").write_text(TEXT)
    assert "those tagged smoke" not in suite.run("--since", "HEAD", paths=(), code=0)
    assert ran(suite) == ("two",)


@pytest.mark.parametrize("named", [["cases"], ["--tag", "smoke"], ["--since", "HEAD"]])
def test_all_cases_and_only_some_are_a_contradiction(suite, named):
    said = suite.run("--all", *named, paths=(), code=2)
    assert f"--all runs every case of the suite: omit it or {'PATH' if named == ['cases'] else named[0]}" in said
    assert suite.started == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--shard", "6/5"], "'6/5' is not a shard; write 2/5 for the second of five parts"),
        (["--since", "HEAD"], "git cannot list the changes"),
        (["--master", "yarn"], "pass a folder that all of them share"),
        (["--master", "spark://127.0.0.1:7077", "--runtime", "container"], "a container has its own engine"),
        (["--conf", "spark.executor.memory=2g", "--runtime", "container"], "a container has its own engine"),
        (["--master", "local[4]"], "'local[4]' is not a master URL: use spark://host:7077"),
        (["--conf", "executor.memory=2g"], "'executor.memory=2g' is not a Spark setting; write one like --conf spark."),
        (["--with", "photon"], "unknown accelerator 'photon': expected one of comet"),
        (["--with", "comet", "--spark", "3.0.3"], "Comet has no package for Spark 3.0"),
        (["--with", "comet", "--connect", "sc://localhost"], "the jars of a container or a Connect server are its own"),
        (["--label", ""], "is not a label"),
        (["--label", "spark-9"], "is not a label"),
        (["--label", "two\nlines"], "is not a label"),
        (["--label", "mine", "--spark", "3.4.4"], "there are 2 versions"),
        (["--kafka", "kafka://localhost"], "is not HOST:PORT of a Kafka broker"),
        (["--kafka", "localhost:9092", "--runtime", "container"], "no network to reach a broker"),
        (["--kafka", "localhost:9092", "--connect", "sc://localhost"], "--connect"),
        (["--evidence", "other"], "'other' is not one of 'statestore'"),
    ],
)
def test_wrong_usage_starts_no_engine(here, monkeypatch, arguments, said):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(here.folder.parent))
    assert said in " ".join(here.run(*arguments, code=2).replace("│", " ").split())
    assert here.started == 0


def test_a_storage_that_is_not_writable_is_reported(here):
    (here.folder / "file").touch()
    told = here.run("--storage", "file/x", "--output", "kept.jsonl", code=3)
    assert "conformance: cannot write to file/x: " in told
    assert not (here.folder / "kept.jsonl").exists()


def test_a_column_has_the_name_its_user_gives_it(here):
    here.run("--label", "Databricks 17.3", "--output", "ours.jsonl", code=0)
    here.run("--output", "apache.jsonl", code=0)
    (target,) = Results.read(here.folder / "ours.jsonl").header.targets
    assert target.name == target.title == "Databricks 17.3"
    assert (target.spark, target.apache) == ("3.5.9", False)
    compared = CliRunner().invoke(app, ["maintain", "diff", "apache.jsonl", "ours.jsonl"])
    assert "2 cells compared: 2 the same, 0 different" in compared.output
    gated = CliRunner().invoke(
        app, ["gate", "apache.jsonl", "ours.jsonl", "--from", "3.5.9", "--to", "Databricks 17.3", "--cases", "cases"]
    )
    assert "3.5.9 → Databricks 17.3: no checkpoint was tried; none of 2 cases" in gated.output, gated.output
    told = CliRunner().invoke(app, ["report", "apache.jsonl", "ours.jsonl", "--cases", "cases", "--output", "site"])
    assert told.exit_code == 0, told.output
    assert "From 3.5.9 to Databricks 17.3" in (here.folder / "site" / "index.html").read_text()


def test_a_column_with_an_accelerator_is_named_after_it(here):
    here.run("--with", "comet", "--output", "comet.jsonl", code=0)
    (target,) = Results.read(here.folder / "comet.jsonl").header.targets
    assert (target.name, target.apache) == ("Apache DataFusion Comet 0.12.0 on Spark 3.5.9", False)
    assert here.options.accelerator.key == "comet"
    here.run("--with", "comet", "--label", "ours", "--output", "ours.jsonl", code=0)
    assert [each.name for each in Results.read(here.folder / "ours.jsonl").header.targets] == ["ours"]


def test_cases_from_outside_the_suite_are_said_to_run_without_a_sandbox(here):
    assert here.run().count("this is not a sandbox. --runtime container confines them.") == 1


def test_engines_get_the_variables_that_the_user_names(here, monkeypatch):
    monkeypatch.setenv("ORDERS_URL", "https://orders.test")
    monkeypatch.delenv("NOT_SET", raising=False)
    here.run("--env", "ORDERS_URL", "--env", "PATH", code=0)
    assert here.options.variables["ORDERS_URL"] == "https://orders.test"
    refused = here.run("--env", "NOT_SET", "--env", "ORDERS_URL", code=2)
    assert "NOT_SET is not set in this environment" in refused
    assert "https://orders.test" not in refused
    assert "omit --runtime" in here.run("--env", "ORDERS_URL", "--runtime", "container", code=2)


def test_tables_of_a_version_without_a_package_and_of_cases_that_cannot(here):
    refused = CliRunner().invoke(app, ["run", "cases", "--spark", "4.3.0", "--source", "delta"])
    assert refused.exit_code == 2
    assert "--source delta: Delta Lake has no package for Spark 4.3: choose one of 3.0, " in refused.output
    assert here.started == 0
    for name in ("one", "two"):
        path = here.folder / "cases" / f"{name}.yaml"
        path.write_text(path.read_text().replace("from: events", "from: events\n    name: mine"))
    assert "none of these cases can have its rows come from a table" in here.run("--source", "iceberg", code=2)


def test_evidence_of_the_state_is_asked_in_every_case_and_its_answers_are_others(here, monkeypatch):
    asked = []
    monkeypatch.setattr(
        cell_run, "request_for", lambda *given, **keys: asked.append(keys["conf"]) or request_for(*given, **keys)
    )
    here.run()
    assert "from the cache" not in here.run("--evidence", "statestore")
    assert asked == [{}, {}, {"spark.conformance.readState": "true"}, {"spark.conformance.readState": "true"}]
