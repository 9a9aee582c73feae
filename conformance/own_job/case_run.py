"""Runs a case from Python code: one case, one version, a result or an ``AssertionError``; and keeps what Spark did as a case file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.core.case import Case
from conformance.core.data import Json
from conformance.core.observation import Observation
from conformance.core.output_file import FileKind, any_content, write_file
from conformance.core.wording import printable
from conformance.judging.verdict import AS_THE_CASE_SAYS, Verdict, not_applicable
from conformance.language.printing import printed
from conformance.language.reader import read_case
from conformance.language.source import InvalidCase, ProblemReport, read_yaml
from conformance.runner.cases import JudgeCases
from conformance.runner.execution import Engines
from conformance.runner.project import ProjectSettings, own_job
from conformance.runner.resources import STEP_TIMEOUT_S, OptionsClash, single_target
from conformance.suite import discovery
from conformance.suite.record_expectations import fill_in_expectations
from harness.runtimes.own_code import OwnCode
from harness.scheduling.cell_run import Limits
from harness.targets.targets import Target


@dataclass(frozen=True)
class CaseResult:
    """What a version of Spark did with a case."""

    verdict: Verdict
    observation: Observation | None
    """None if the harness failed, or the case is not about this version."""

    def raise_unless_as_expected(self) -> None:
        """Raise NotAsExpected if something is not as the case says."""
        if self.verdict.status not in AS_THE_CASE_SAYS and self.verdict.status != "not-applicable":
            raise NotAsExpected(self)


class NotAsExpected(AssertionError):
    """Spark did not do what the case expects; the message lists the findings.

    Attributes:
        result: the verdict and what was observed.
    """

    def __init__(self, result: CaseResult) -> None:
        super().__init__(printable(result.verdict.describe(), keep="\n"))
        self.result = result


def run_case(
    case: Case | str | Path,
    *,
    spark: str = "newest",
    allow_code: bool = False,
    code: Sequence[Path] = (),
    check: bool = True,
) -> CaseResult:
    """Run a case on one version of Spark, in an engine of its own on this machine.

    The ``[tool.conformance]`` table of the nearest ``pyproject.toml`` counts as for ``conformance run``.

    Args:
        case: a case, a file with one case, or the id of a case of the suite.
        spark: a version (``3.5.9``), a line (``3.5``), ``newest`` or ``installed``.
        allow_code: whether the case may run Python code, any SQL and any setting.
        code: more folders with modules that the case calls; needs ``allow_code``.
        check: whether to raise if the result is not as expected.

    Raises:
        NotAsExpected: it is not, and ``check`` is set.
        WrongUsage: the case or the version is wrong, or there is none.
    """
    target, _ = single_target(
        spark, lambda number: OptionsClash(f"spark={spark!r} names {number} versions: a case runs on one")
    )
    job = own_job(ProjectSettings.read(Path.cwd()), allow_code=allow_code)
    options = replace(job, own_code=with_folders(job.own_code, code))
    with Engines(options, Limits(jobs=1, step_timeout=STEP_TIMEOUT_S)) as engines:
        result = run_on(engines, _read(case), target)
    if check:
        result.raise_unless_as_expected()
    return result


def with_folders(own_code: OwnCode | None, folders: Sequence[Path]) -> OwnCode | None:
    """The code, found in these folders too; raises WrongUsage if no code is allowed, or a folder does not exist."""
    if own_code is None and folders:
        raise OptionsClash("code: cases run your code only with allow_code=True")
    return own_code and OwnCode.at([*own_code.folders, *folders], "code")


def run_on(engines: Engines, case: Case, target: Target) -> CaseResult:
    """Run a case and judge what the engine did; a case that is not about the version does not run."""
    if (outside := not_applicable(case, target.version)) is not None:
        return CaseResult(outside, None)
    run = engines.run(case, target)
    return CaseResult(JudgeCases().verdict(run), next(iter(run.observations), None))


def _read(case: Case | str | Path) -> Case:
    if isinstance(case, Case):
        return case
    read = discovery.find(str(case))
    if not isinstance(read, Case):
        raise OptionsClash(f"{case} is a case on a watermark policy, which no Spark runs")
    return read


UPDATE = "run pytest --conformance-update"
_KIND = FileKind("a recorded case", any_content)


class NotRecorded(AssertionError):
    """There is no recorded case to compare with, or it is of another case; the message says how to record it."""


@dataclass(frozen=True)
class RecordedCase:
    file: Path

    def read(self, written: Mapping[str, Json]) -> Case:
        """The recorded case, of what the test builds now, ``written`` like YAML.

        Raises:
            NotRecorded: there is no file, or its streams, query or steps are not those of the test.
            InvalidCase: the file was edited, and is no longer a valid case.
        """
        if not self.file.is_file():
            raise NotRecorded(f"{self.file} does not exist: {UPDATE}")
        report = ProblemReport(self.file)
        if (node := read_yaml(self.file, report)) is None:
            raise InvalidCase(report.problems)
        if _asked(node.plain()) != _asked(written):
            raise NotRecorded(f"the test is not the one that {self.file} has recorded: {UPDATE}")
        return read_case(self.file, self.file.stem)

    def write(self, written: Mapping[str, Json], case: Case, observation: Observation) -> None:
        """Write the case, with expectations that the observation meets; see `fill_in_expectations` and `write_file` for errors."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_file(self.file, fill_in_expectations(printed(written), case, observation, replace=True), _KIND)


def _asked(written: Any) -> str:
    """The text of what a case asks of an engine."""
    if not isinstance(written, Mapping):
        return ""
    asked = {key: value for key, value in written.items() if key not in ("title", "strength")}
    steps = asked.get("steps")
    if isinstance(steps, list):
        asked["steps"] = [
            {key: value for key, value in step.items() if key != "expect"} if isinstance(step, Mapping) else step
            for step in steps
        ]
    return json.dumps(asked, sort_keys=True, default=str)
