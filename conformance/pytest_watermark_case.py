"""What the pytest fixture ``watermark_case`` does; ``conformance.pytest_plugin`` imports this module when a test uses it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.core.case import Case
from conformance.own_job.case_run import CaseResult, NotRecorded, RecordedCase, run_on
from conformance.own_job.watermark_case import Job, NotACase, WatermarkCase, watermark_case
from conformance.pytest_engines import SharedEngines
from harness.targets.targets import Target

FOLDER = "watermark_cases"
"""The folder of the recorded cases, beside the test."""

_WRITTEN = pytest.StashKey[set[Path]]()


class CasesOfATest:
    """The value of the fixture: ``watermark_case(build, orders="…")`` begins a case that runs on the version of the test."""

    def __init__(self, request: pytest.FixtureRequest, target: Target) -> None:
        self._request = request
        self._target = target
        self._begun = 0
        self._runs = 0
        self._recorded = 0

    def __call__(self, build: Job, /, **streams: str) -> WatermarkCase:
        self._begun += 1
        return replace(watermark_case(build, **streams), runner=self._run)

    def fail_unless_run(self) -> None:
        """A test that forgets ``run()`` compares nothing."""
        if self._begun and not self._runs:
            pytest.fail("the case of this test never ran: end it with .run()", pytrace=False)

    def _run(self, case: WatermarkCase, spark: str | None) -> CaseResult:
        if spark is not None:
            raise NotACase(f"run(spark={spark!r}): in a test, --spark gives the versions: call run()")
        self._runs += 1
        if not case.recorded:
            return self._compared(case.function.folder, case.checked_case())
        recorded = RecordedCase(self._file())
        written = self._request.config.stash.setdefault(_WRITTEN, set())
        if self._request.config.getoption("--conformance-update") and recorded.file not in written:
            return self._record(case, recorded)
        return self._compared(case.function.folder, recorded.read(case.written()))

    def _record(self, case: WatermarkCase, recorded: RecordedCase) -> CaseResult:
        question = case.case()
        result = self._result(case.function.folder, question)
        seen = result.observation
        if seen is None or seen.own_code_error is not None or result.verdict.status == "broken":
            raise NotRecorded(f"nothing was recorded\n{result.verdict.describe()}")
        recorded.write(case.written(), question, seen)
        self._request.config.stash[_WRITTEN].add(recorded.file)
        return result

    def _compared(self, folder: Path, question: Case) -> CaseResult:
        result = self._result(folder, question)
        result.raise_unless_as_expected()
        return result

    def _result(self, folder: Path, question: Case) -> CaseResult:
        engines = SharedEngines.of(self._request.config).engines(allow_code=True, folder=folder)
        return run_on(engines, question, self._target)

    def _file(self) -> Path:
        """``watermark_cases/test_totals.test_late.yaml``; a second case of the test has a number."""
        node = self._request.node
        name = node.nodeid.partition("::")[2].replace(self._target.name, "")
        self._recorded += 1
        number = f"-{self._recorded}" if self._recorded > 1 else ""
        safe = re.sub(r"[^A-Za-z0-9_]+", ".", name).strip(".")
        return Path(node.path).parent / FOLDER / f"{node.path.stem}.{safe}{number}.yaml"
