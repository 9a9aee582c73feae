"""Calling the author's functions, without a pyspark."""

import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from harness.driver.jobs.own_code import AuthorCode, AuthorFailed, OwnQueries, printed


@pytest.fixture
def folder(tmp_path):
    before = {*sys.modules}, [*sys.path]
    yield tmp_path
    for name in {*sys.modules} - before[0]:
        if name.startswith("acme"):
            del sys.modules[name]
    sys.path[:] = before[1]


SINK = """
import sys

written = []

def write(frame, batch_id):
    print("writing", batch_id)
    if frame == "bad":
        raise ValueError(batch_id)
    if frame == "gone":
        sys.exit(1)
    written.append((frame, batch_id))
"""


def test_a_sink_gets_each_micro_batch_and_its_faults_are_its_own(folder):
    (folder / "acme_sinks.py").write_text(SINK)
    write = AuthorCode([str(folder)]).sink("acme_sinks:write").batch
    write("rows", 7)
    assert sys.modules["acme_sinks"].written == [("rows", 7)]
    for frame, raised in (("bad", "ValueError(8)"), ("gone", "SystemExit(1)")):
        with pytest.raises(AuthorFailed) as caught:
            write(frame, 8)
        mistake = caught.value.mistake
        assert (mistake.raised, mistake.during, mistake.printed) == (raised, "in the sink", "writing 8\n")
        assert mistake.at.startswith("acme_sinks.py:")


def test_each_case_has_modules_of_its_own_and_keeps_them(folder):
    """A decorator made a Python function once for all cases of an engine, whatever their settings."""
    (folder / "acme_helper.py").write_text("made = object()\n")
    (folder / "acme_job.py").write_text("import acme_helper\n\ndef job():\n    return acme_helper.made\n")
    one, other = AuthorCode([str(folder)]), AuthorCode([str(folder)])
    first, second = one.function("acme_job:job"), other.function("acme_job:job")
    assert first() is not second()
    assert one.function("acme_job:job") is first
    assert sys.modules["acme_helper"].made is first()
    assert sys.modules["pytest"] is pytest


def test_modules_of_the_driver_stay_though_they_lie_in_the_folder_of_a_job(folder):
    """With ``--work`` below ``--code``, the driver lost its own modules."""
    (folder / "acme_other.py").write_text("def job():\n    pass\n")
    ours = sys.modules[AuthorCode.__module__]
    AuthorCode([str(folder), str(Path(ours.__file__).parents[1])]).function("acme_other:job")
    assert sys.modules[AuthorCode.__module__] is ours


def test_a_function_of_the_whole_result_starts_queries_of_its_own(folder):
    (folder / "acme_whole.py").write_text("def write(frame):\n    frame.start()\n")
    sink = AuthorCode([str(folder)]).sink("acme_whole:write")
    assert sink.batch is None
    done = []
    theirs = SimpleNamespace(
        id="theirs",
        processAllAvailable=lambda: done.append("drained"),
        stop=lambda: done.append("stopped"),
        exception=lambda: None,
    )
    active = [SimpleNamespace(id="captured")]
    session = SimpleNamespace(streams=SimpleNamespace(active=active))
    queries = OwnQueries()
    queries.start(sink.whole, SimpleNamespace(start=lambda: active.append(theirs)), session, "captured")
    queries.drain(lambda query, wait, rows: wait())
    queries.stop()
    queries.stop()
    assert done == ["drained", "stopped"]
    failing = OwnQueries()
    theirs.exception = lambda: ValueError("no disk")
    failing.start(lambda _: None, None, session, "captured")
    with pytest.raises(ValueError, match="no disk"):
        failing.drain(lambda query, wait, rows: wait())


def test_workers_that_see_no_module_get_functions_whole(folder, monkeypatch):
    registered = []
    fake = ModuleType("pyspark.cloudpickle")
    vars(fake)["register_pickle_by_value"] = lambda module: registered.append(module.__name__)
    monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))
    monkeypatch.setitem(sys.modules, "pyspark.cloudpickle", fake)
    (folder / "acme_pkg").mkdir()
    (folder / "acme_pkg" / "names.py").write_text("def shout(text):\n    return text.upper()\n")
    (folder / "acme_jobs.py").write_text("from acme_pkg.names import shout\n\ndef build(spark):\n    pass\n")
    AuthorCode([str(folder)]).function("acme_jobs:build")
    assert registered == []
    AuthorCode([str(folder)], by_value=True).function("acme_jobs:build")
    assert sorted(registered) == ["acme_jobs", "acme_pkg.names"]


def test_what_one_thread_prints_is_not_that_of_another():
    started, go_on = threading.Event(), threading.Event()

    def other():
        started.wait()
        print("of the other")
        go_on.set()

    thread = threading.Thread(target=other)
    thread.start()
    with printed() as output:
        print("mine")
        print("usage: job.py [-h]", file=sys.stderr)
        started.set()
        go_on.wait()
    thread.join()
    assert "".join(output) == "mine\nusage: job.py [-h]\n"
