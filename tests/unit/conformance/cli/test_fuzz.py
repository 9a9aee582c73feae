"""``conformance maintain fuzz`` from the outside: what it says, what it writes, how it ends."""

import os
import re
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from itertools import count

import pytest
import typer
from typer.testing import CliRunner

from conformance.cli.fuzz import seconds
from conformance.cli.main import app, main
from conformance.core import child_process
from conformance.core.child_process import limited_memory
from conformance.core.versions import SparkVersion
from conformance.fuzzing import campaign, comparison
from conformance.fuzzing.comparison import ModelOracle, OracleAnswer
from conformance.language import read_case
from conformance.model.catalogue import rules_of
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle import prediction
from tests.support.limits import LIMITED

WRONG = next(wrong for wrong in WRONG_MODELS if wrong.name == "there is no delay")


def run(*arguments):
    return CliRunner().invoke(app, ["maintain", "fuzz", *arguments])


@pytest.fixture
def two_versions(monkeypatch):
    versions = [SparkVersion.parse(text) for text in ("3.3.4", "3.4.4")]
    monkeypatch.setattr(campaign, "releases", lambda: versions)


@pytest.fixture
def one_of_them_wrong(monkeypatch, two_versions):
    def oracle(version):
        rules = rules_of(version)
        return ModelOracle(version, WRONG.of(rules) if version.line == "3.4" else rules)

    monkeypatch.setattr(comparison, "ModelOracle", oracle)


def test_where_all_is_known_nothing_is_found(two_versions, tmp_path):
    done = run("--model", "--max-cases", "40", "--seed", "3", "--output", str(tmp_path / "found"))
    assert done.exit_code == 0, done.output
    assert "seed 3" in done.output
    assert "0 discrepancies" in done.output
    assert re.search(r"\d+  late_watermark \(SPARK-40925\)", done.output)
    assert re.search(r"rules reached: \d\d of \d\d; not reached: ", done.output)
    assert not (tmp_path / "found").exists()


def test_a_find_is_written_and_the_command_ends_with_1(one_of_them_wrong, tmp_path):
    done = run("--model", "--max-cases", "5", "--seed", "3", "--family", "windows", "--output", str(tmp_path / "found"))
    assert done.exit_code == 1, done.output
    files = sorted((tmp_path / "found").iterdir())
    assert files
    for file in files:
        case = read_case(file, file.stem)
        assert len(case.steps) <= 2
        assert f"--model --family windows --seed 3 --output {tmp_path / 'found'}" in file.read_text()
        assert file.name in done.output.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "nothing to test: pass --spark, --model, or both"),
        (["--model", "--family", "joinz"], "joins"),
        (["--model", "--time", "soon"], "is not a length of time"),
        (["--model", "--state-store", "rocksdb"], "the reference model has no state store"),
        (["--spark", "3.5", "--state-store", "memory"], "'memory' is not one of hdfs, rocksdb"),
        (["--model", "--seed", "-1"], "seed"),
    ],
)
def test_wrong_usage_ends_with_2(arguments, why):
    done = run(*arguments)
    assert done.exit_code == 2
    assert why in re.sub(r"[\s│]+", " ", done.output)


@pytest.fixture
def stopped_at_the_third_batch(monkeypatch, two_versions, request):
    """The signal comes while cases are being answered, as from Ctrl-C in a terminal or from a service manager."""
    batches = count(1)

    class Stopping(ModelOracle):
        def answers(self, cases):
            if next(batches) == 3:
                os.kill(os.getpid(), request.param)
            return super().answers(cases)

    monkeypatch.setattr(comparison, "ModelOracle", Stopping)
    before = signal.signal(request.param, signal.default_int_handler)  # under nohup, SIGHUP is ignored and stays so
    yield
    signal.signal(request.param, before)


def test_a_campaign_whose_engine_dies_is_not_a_campaign_without_finds(two_versions, monkeypatch, tmp_path):
    """After some answers the engine does not start any more, also for cases that the model does not predict."""

    @dataclass(frozen=True)
    class Dying(ModelOracle):
        at_once: int = 2  # it is asked for four cases at a time

        def answers(self, cases):
            said = super().answers(cases)
            return [said[0], *(OracleAnswer(None, "the engine ended with signal 9") for _ in cases[1:])]

    monkeypatch.setattr(comparison, "ModelOracle", Dying)
    done = run("--model", "--max-cases", "4", "--seed", "3", "--output", str(tmp_path / "found"))
    assert "4 cases in" in done.output
    assert done.exit_code == 3
    assert "6 of 8 answers are missing, so these cases were not compared; the last: the engine" in done.output


@pytest.mark.skipif(not LIMITED, reason="the system does not limit memory")
@pytest.mark.usefixtures("two_versions")
def test_a_case_on_which_the_model_takes_all_memory_is_not_predicted(monkeypatch, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_AS)
    monkeypatch.setattr(prediction, "_predicted_case", lambda *_: bytearray(2 * campaign._MEMORY))
    done = run("--model", "--max-cases", "2", "--seed", "11", "--output", str(tmp_path / "found"))
    assert done.exit_code == 0, done.output
    assert "a case on which it fails: MemoryError" in done.output
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.skipif(not LIMITED, reason="the system does not limit memory")
def test_an_engine_of_a_campaign_takes_the_memory_that_it_needs():
    program = "import resource, time; time.sleep(0.3); print(resource.getrlimit(resource.RLIMIT_AS))"
    with limited_memory(1 << 30):
        done = child_process.run([sys.executable, "-I", "-c", program], cwd=child_process.OUTSIDE, environ={})
        assert resource.getrlimit(resource.RLIMIT_AS)[0] > 0
    assert done.stdout.strip() == str(resource.getrlimit(resource.RLIMIT_AS))


STOPPING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


@pytest.mark.parametrize("stopped_at_the_third_batch", [signal.SIGINT, signal.SIGHUP], indirect=True)
@pytest.mark.usefixtures("stopped_at_the_third_batch")
def test_a_stop_is_clean_and_loses_nothing(tmp_path, capsys):
    before = [signal.getsignal(number) for number in STOPPING]
    with pytest.raises(SystemExit) as ended:
        main(["maintain", "fuzz", "--model", "--seed", "5", "--output", str(tmp_path / "found")])
    out, err = capsys.readouterr()
    assert ended.value.code == 130, err
    assert err.startswith("seed 5; model-3.3.4 and model-3.4.4")
    assert "rules reached" in out
    assert "interrupted: run it again with the same seed: conformance maintain fuzz --model --seed 5" in err
    assert "Traceback" not in err
    assert [signal.getsignal(number) for number in STOPPING] == before


def test_without_hypothesis_it_says_what_to_install():
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from conformance.cli.main import main\nmain(['maintain', 'fuzz', '--model', '--time', '1s'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "pip install 'watermark-conformance[fuzz]'" in done.stderr


@pytest.mark.parametrize(("text", "length"), [("90", 90), ("30s", 30), ("10m", 600), ("1h30m", 5400), ("0.5m", 30)])
def test_a_length_of_time(text, length):
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "0", "0s", "ten", "10 m", "5d", "m", "-5"])
def test_invalid_durations(text):
    with pytest.raises(typer.BadParameter):
        seconds(text)
