"""A case that Python code builds, and its run on a miniature engine."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest

from conformance import NotAsExpected, run_case, watermark_case
from conformance.core.case import Add, Restart
from conformance.own_job.watermark_case import NotACase
from conformance.runner import resources
from conformance.runner.resources import OptionsClash
from tests.support.miniature.runtime import MiniatureRuntime

HERE = Path(__file__)
EVENTS = "event_time TIMESTAMP, count INT"


def build(spark, events):
    """The miniature engine knows this query only: sums of ten minutes, with a delay of 25 minutes."""
    raise AssertionError("a miniature engine imports nothing")


def joined(spark, orders, clicks):
    raise AssertionError


def any_streams(spark, *streams):
    raise AssertionError


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The options that each runtime was made with; their engines are miniature ones."""
    options = []

    def made(given, *_, **__):
        options.append(given)
        return MiniatureRuntime(tmp_path)

    monkeypatch.setattr(resources, "runtime_for", made)
    return options


@pytest.fixture
def windows():
    begun = watermark_case(build, events=EVENTS)
    return begun.add(events=[("12:00", 1), ("12:01", 2)]).expect(watermark="11:36", state=1)


def test_what_spark_did_is_the_result(asked, windows):
    result = windows.add(events=[("12:35", 1)]).expect(rows=[("12:00", "12:10", 3)], watermark="12:10").run("3.5.9")
    assert (result.verdict.status, str(result.verdict.version)) == ("conforms", "3.5.9")
    assert [len(step.batches) for step in result.observation.steps] == [2, 2]
    (options,) = asked
    assert HERE.parents[4] in options.own_code.folders


def test_what_is_not_as_expected_is_an_assertion_error(asked, windows):
    wrong = windows.add(events=[("12:35", 1)]).expect(rows=[("12:00", "12:10", 4)])
    with pytest.raises(NotAsExpected) as caught:
        wrong.run("3.5.9")
    assert isinstance(caught.value, AssertionError)
    said = str(caught.value)
    name = f"{__name__}.build"
    assert f"{name} on 3.5.9: violates" in said
    # There is no file with lines, so the step alone says where.
    assert f"step 2 ({name}.yaml), micro-batch" in said
    assert "12:00" in said
    assert caught.value.result.verdict.status == "violates"
    assert run_case(wrong.case(), spark="3.5.9", allow_code=True, check=False).verdict.status == "violates"


def test_a_beginning_can_be_shared(windows):
    first, second = windows.idle(), windows.restart("kill")
    assert (len(windows.steps), len(first.steps), len(second.steps)) == (1, 2, 2)
    assert isinstance(second.case().steps[1].action, Restart)


def test_it_is_the_case_of_the_yaml(windows):
    case = windows.output_mode("update").conf({"spark.sql.shuffle.partitions": 1}).conf({"spark.x": True}).case()
    assert case.output_mode == "update"
    assert dict(case.conf) == {"spark.sql.shuffle.partitions": "1", "spark.x": "true"}
    assert isinstance(case.steps[0].action, Add)
    assert [*case.streams] == ["events"]
    assert case.needs_code


def test_streams_are_in_the_order_of_the_parameters():
    case = watermark_case(joined, clicks="b INT", orders="a INT")
    assert case.written()["query"] == [{"call": f"{__name__}:joined", "with": ["orders", "clicks"]}]
    any_order = watermark_case(any_streams, clicks="b INT", orders="a INT")
    assert any_order.written()["query"][0]["with"] == ["clicks", "orders"]


@pytest.mark.parametrize(
    ("job", "id"),
    [
        ("acme_jobs.totals:build", "acme_jobs.totals.build"),
        ({"program": "jobs/clicked.py", "arguments": ["--day", "1"], "query": 2}, "jobs.clicked"),
        ({"main": "acme.Main", "jar": "target/jobs.jar"}, "acme.Main"),
        ({"jvm": "acme.Jobs.clicked"}, "acme.Jobs.clicked"),
        ({"sql": ["SELECT * FROM orders JOIN clicks USING (a)"]}, "SQL"),
    ],
)
def test_a_job_is_what_the_case_language_can_call(job, id):
    case = watermark_case(job, orders="a INT", clicks="a INT").idle()
    assert case.written()["query"] == [{"call": job, "with": ["orders", "clicks"]}]
    assert (case.function.folder, case.case().id) == (None, id)
    assert case.case().needs_code


def test_a_job_that_no_module_of_the_test_has_is_run_with_the_code_of_the_project(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    begun = watermark_case({"main": "acme.Main"}, events=EVENTS).add(events=[("12:00", 1)]).expect(watermark="11:35")
    assert begun.run("3.5.9").verdict.status == "conforms"
    (options,) = asked
    assert options.own_code.folders == (tmp_path,)


def test_values_of_python_are_those_of_the_language():
    zone = timezone(timedelta(hours=2))
    row = (datetime(2026, 3, 1, 12), datetime(2026, 3, 1, 12, tzinfo=zone), date(2026, 3, 1), Decimal("1.50"), {"a": 1})
    case = watermark_case(build, events="a INT").add(events=[row])
    plain = ["2026-03-01 12:00:00", "2026-03-01 10:00:00", "2026-03-01", Decimal("1.50"), {"a": 1}]
    assert case.steps == ({"add": {"events": [plain]}},)
    assert datetime(2026, 3, 1, 12, tzinfo=zone) == datetime(2026, 3, 1, 10, tzinfo=UTC)


def nested():
    def inside(spark, events): ...

    return inside


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: watermark_case(nested(), events=EVENTS), "inside': an engine must be able to import the function"),
        (lambda: watermark_case(lambda spark, events: None, events=EVENTS), "an engine must be able to import"),
        (
            lambda: watermark_case("job.py", events=EVENTS),
            'is not module:function; name a program as {"program": "jobs/',
        ),
        (lambda: watermark_case({"main": "a.B"}).idle().case(), "must not be empty: expected a list of streams"),
        (
            lambda: watermark_case({"mian": "a.B"}, events=EVENTS).idle().case(),
            "unknown key 'mian': did you mean 'main'",
        ),
        (lambda: watermark_case(build, orders=EVENTS), "takes the streams events, not orders: name each schema"),
        (lambda: watermark_case(joined, orders="a INT"), "give the schema of clicks, such as clicks="),
        (lambda: watermark_case(build, events=EVENTS).expect(rows=[]), r"expect\(…\) is about the step before it"),
        (
            lambda: watermark_case(build, events=EVENTS).idle().expect(rows=[]).expect(state=1),
            "step 1 has an expectation already",
        ),
        (lambda: watermark_case(build, events=EVENTS).idle().expect(rows=[]).expect_recorded(), "exclude each other"),
        (lambda: watermark_case(build, events=EVENTS).expect_recorded().idle().expect(rows=[]), "exclude each other"),
        (lambda: watermark_case(build, events=EVENTS).add(events=[(object(), 1)]), "is a object, which no case can"),
        (lambda: watermark_case(build, events=EVENTS).idle().run("3.5.9"), "the case expects nothing"),
        (lambda: watermark_case(build, events=EVENTS).expect_recorded().run(), "use the pytest fixture watermark_case"),
    ],
)
def test_calls_that_make_no_case(make, said):
    with pytest.raises(NotACase, match=said):
        make()


def test_a_problem_names_its_step(windows):
    with pytest.raises(NotACase) as caught:
        windows.add(event=[("12:35", 1)]).add(events=[("12:35", "x")]).expect(watermrk="12:00").case()
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["step 2", "step 3", "step 3"]
    assert "'event'" in lines[0]
    assert "watermark" in str(caught.value)


def test_one_case_runs_on_one_version(windows):
    with pytest.raises(OptionsClash, match="names 16 versions: a case runs on one"):
        windows.run("all")


def test_a_file_runs_without_code_unless_it_is_allowed(asked, tmp_path):
    with pytest.raises(OptionsClash, match="only with allow_code=True"):
        run_case("late-drops/window-still-open", spark="3.5.9", code=[tmp_path])
    cases = HERE.parents[3] / "support" / "miniature" / "cases" / "late-drops"
    assert run_case(cases / "windows.yaml", spark="3.5.9").verdict.status == "conforms"
    assert asked[0].own_code is None
