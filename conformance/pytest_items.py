"""Cases as pytest items: ``pytest cases --spark 3.5``. ``conformance.pytest_plugin`` registers this module where ``--spark`` is given.

An item is ``cases/late-drops/x.yaml::[spark-3.5.9]``, or ``cases/policies/x.yaml::[model]`` for a case on a watermark policy, which
needs no engine. Without ``--spark`` nothing is collected; with it, YAML files in a folder named ``cases`` or in a suite (a folder
with ``behaviours.yaml``) are, and no others.

Each process has one engine at a time. With pytest-xdist, ``--dist loadgroup`` keeps each version on one worker. xdist 3.8 does so by
appending a suffix to node ids, which pytest 9.2 prevents; so the scheduler here reads the version from the id itself.
The fixture ``watermark_case`` uses the same engines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.core.case import Case
from conformance.core.errors import WrongUsage
from conformance.core.wording import printable, without_commands
from conformance.judging.verdict import AS_THE_CASE_SAYS
from conformance.language import InvalidCase, read_any
from conformance.language.catalogue import Catalogue
from conformance.own_job.case_run import CaseResult, NotRecorded, RecordedCase, run_on, with_folders
from conformance.own_job.watermark_case import Job, NotACase, WatermarkCase, watermark_case
from conformance.policies.case import TARGET, PolicyCase, check
from conformance.runner.execution import Engines
from conformance.runner.project import ProjectSettings, own_job
from conformance.runner.resources import STEP_TIMEOUT_S, choose_targets
from conformance.suite import discovery
from harness.environments import provision
from harness.runtimes.cluster import settings_of
from harness.runtimes.options import RUNTIME_NAMES, RuntimeOptions, variables_named
from harness.scheduling.cell_run import Limits
from harness.targets.targets import Target

_TARGETS = pytest.StashKey[tuple[Target, ...]]()


def chosen_targets(config: pytest.Config) -> tuple[Target, ...]:
    """The versions of ``--spark``, chosen at the first call, or the newest that runs here; UsageError if there is none."""
    if _TARGETS in config.stash:
        return config.stash[_TARGETS]
    try:
        targets = choose_targets(config.getoption("--spark") or ["newest"]).targets
        if config.getoption("--spark-runtime") == "local":
            provision.check_those_by_name(targets)
    except (ValueError, RuntimeError) as error:
        raise pytest.UsageError(str(error)) from error
    return config.stash.setdefault(_TARGETS, targets)


class SharedEngines:
    """One engine at a time in this process, for cases that may run code and for those that may not; UsageError if an option is wrong."""

    def __init__(self, config: pytest.Config) -> None:
        runtime = config.getoption("--spark-runtime")
        if runtime not in RUNTIME_NAMES:
            raise pytest.UsageError(f"--spark-runtime: {runtime!r} is not one of {', '.join(RUNTIME_NAMES)}")
        if config.getoption("--env") and runtime == "container":
            raise pytest.UsageError("--env: a container gets no variables of this machine: omit --spark-runtime")
        self._config = config
        limit = config.getoption("--spark-step-timeout")
        self._limits = Limits(jobs=1, step_timeout=STEP_TIMEOUT_S if limit is None else limit)
        self._folders: tuple[Path, ...] = ()
        self._open: dict[bool, Engines] = {}
        try:
            # What is wrong with the options is said before anything runs.
            self._options(allow_code=bool(config.getoption("--allow-code")))
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
        config.add_cleanup(self.close)

    @classmethod
    def of(cls, config: pytest.Config) -> SharedEngines:
        if _SHARED not in config.stash:
            config.stash[_SHARED] = cls(config)
        return config.stash[_SHARED]

    def engines(self, *, allow_code: bool, folder: Path | None = None) -> Engines:
        """The engines for a case, whose module is in this folder or those of ``--code``; an engine of the other kind is ended first."""
        for allowed, engines in self._open.items():
            if allowed != allow_code:
                engines.close_engine()
        if folder is not None and folder not in self._folders:
            self._folders = (*self._folders, folder)
            if allow_code in self._open:
                self._open.pop(allow_code).close()
        if allow_code not in self._open:
            self._open[allow_code] = Engines(self._options(allow_code=allow_code), self._limits)
        return self._open[allow_code]

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _options(self, *, allow_code: bool) -> RuntimeOptions:
        config = self._config
        job = _own_job(config, allow_code=allow_code)
        return replace(
            job,
            runtime=config.getoption("--spark-runtime"),
            images=tuple(config.getoption("--spark-image") or ()),
            own_code=with_folders(job.own_code, self._folders if allow_code else ()),
            variables=variables_named(config.getoption("--env") or ()),
        )


_SHARED = pytest.StashKey[SharedEngines]()


def _own_job(config: pytest.Config, *, allow_code: bool) -> RuntimeOptions:
    """What engines need for the user's own code, by the options and the ``pyproject.toml`` of pytest's root; WrongUsage if one is wrong."""
    given = {name: config.getoption(f"--{name}") for name in ("code", "requirements", "package", "jar", "conf")}
    in_containers = config.getoption("--spark-runtime") == "container"
    for name in ("requirements", "package", "jar", "conf"):
        if given[name] and in_containers:
            raise WrongUsage(f"--{name}: a container has its own engine: omit --spark-runtime")
    job = own_job(
        ProjectSettings.read(config.rootpath),
        allow_code=allow_code,
        code=[Path(folder) for folder in given["code"] or ()],
        requirements=Path(given["requirements"]) if given["requirements"] else None,
        packages=given["package"] or (),
        jars=given["jar"] or (),
        conf=settings_of(given["conf"] or ()),
    )
    return RuntimeOptions(own_code=job.own_code) if in_containers else job


FOLDER = "watermark_cases"
"""The folder of the recorded cases, beside the test."""

_WRITTEN = pytest.StashKey[set[Path]]()


class CasesOfATest:
    """The value of the fixture: ``watermark_case(build, orders="…")`` begins a case that runs on the version of the test."""

    def __init__(self, request: pytest.FixtureRequest, target: Target) -> None:
        self._request, self._target = request, target
        self._not_run: dict[int, WatermarkCase] = {}
        self._recorded = 0

    def __call__(self, build: Job, /, **streams: str) -> WatermarkCase:
        return replace(watermark_case(build, **streams), runner=self._run, _not_run=self._not_run)

    def fail_unless_run(self) -> None:
        """A case that does not ``run()`` compares nothing of what it expects, whatever other cases of the test did."""
        if left := len(self._not_run):
            of = "the case" if left == 1 else f"{left} cases"
            pytest.fail(f"{of} of this test never ran: end it with .run()", pytrace=False)

    def _run(self, case: WatermarkCase, spark: str | None) -> CaseResult:
        if spark is not None:
            raise NotACase(f"run(spark={spark!r}): in a test, --spark gives the versions: call run()")
        self._not_run.pop(id(case), None)
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

    def _compared(self, folder: Path | None, question: Case) -> CaseResult:
        result = self._result(folder, question)
        result.raise_unless_as_expected()
        return result

    def _result(self, folder: Path | None, question: Case) -> CaseResult:
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


_CELL = re.compile(
    r"\.ya?ml::[a-z0-9.-]*\[(?P<of_case>[^\]]+)\]|\.py::.*\[(?:.*-)?(?P<of_test>spark-\d+\.\d+\.\d+)(?:-.*)?\]$"
)

_CATALOGUES = pytest.StashKey[dict[Path, Catalogue | None]]()


def pytest_configure(config: pytest.Config) -> None:
    shipped = Catalogue.at(discovery.shipped())
    for tag, entry in ((shipped and shipped.tags) or {}).items():
        config.addinivalue_line("markers", f"{tag}: {entry['sentence']}")
    chosen_targets(config)
    SharedEngines.of(config)
    config.stash[_CATALOGUES] = {}


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix not in discovery.SUFFIXES:
        return None
    root = discovery.root_of(file_path)
    if root is None or discovery.is_catalogue(file_path, root):
        return None
    return CaseFile.from_parent(parent, path=file_path, root=root)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByTarget(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            return target_in(nodeid) or super()._split_scope(nodeid)

    return ByTarget(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort cases by version, after all other tests, and those with code last, so that one engine at a time is enough."""
    versions = {item.target.version for item in items if isinstance(item, CaseItem)}
    order = {version: number for number, version in enumerate(sorted(versions), 1)}

    def place(item: pytest.Item) -> tuple[int, bool]:
        return (order[item.target.version], bool(item.case.needs_code)) if isinstance(item, CaseItem) else (0, False)

    items.sort(key=place)


def target_in(nodeid: str) -> str | None:
    """The target of a case, ``cases/late-drops/x.yaml::[spark-3.5.9]``, or of a test with ``watermark_case``; None of other tests."""
    cell = _CELL.search(nodeid)
    return cell and (cell["of_case"] or cell["of_test"])


class Unexpected(Exception): ...


def _shown(text: str) -> str:
    """The text without what acts on a terminal, or what a workflow would obey."""
    return without_commands(printable(text, keep="\n"))


class CaseFile(pytest.File):
    """A file with one case, or with a matrix of cases; one item per case and target."""

    def __init__(self, *, root: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._root = root

    def collect(self) -> Iterator[CaseItem | PolicyItem]:
        try:
            cases = read_any(self.path, discovery.id_of(self.path, self._root), self._catalogue())
        except InvalidCase as error:
            problems = (_shown(problem.render(relative_to=self.config.rootpath)) for problem in error.problems)
            raise self.CollectError("\n".join(problems)) from error
        for case in cases:
            if isinstance(case, PolicyCase):
                yield PolicyItem.from_parent(self, name=f"[{TARGET}]", case=case)
                continue
            for target in chosen_targets(self.config):
                yield CaseItem.from_parent(self, name=f"{case.expansion}[{target.name}]", case=case, target=target)

    def _catalogue(self) -> Catalogue | None:
        known = self.config.stash[_CATALOGUES]
        if self._root not in known:
            known[self._root] = Catalogue.at(self._root)
        return known[self._root]


class _Item(pytest.Item):
    """A case on a target; its failure is shown without a traceback."""

    def __init__(
        self, *, name: str, parent: CaseFile, case: Case | PolicyCase, on: str = TARGET, **kwargs: Any
    ) -> None:
        # From pytest 9.2 on, an id is a value: read from text, `[spark-3.5.9]` are parameters, but they are not where pytest
        # appends the name to the parent's id. Ids of last failures are read from text, so these must be too.
        super().__init__(name=name, parent=parent, nodeid=f"{parent.nodeid}::{name}", **kwargs)
        self._title = case.lines.get("title", 1) - 1, f"{case.id} on {on}"
        for tag in case.tags:
            self.add_marker(tag)
        self.user_properties.append(("case", case.id))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, *self._title

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        return str(excinfo.value if isinstance(excinfo.value, Unexpected) else super().repr_failure(excinfo, style))


class CaseItem(_Item):
    def __init__(self, *, case: Case, target: Target, **kwargs: Any) -> None:
        super().__init__(case=case, on=target.name, **kwargs)
        self.case = case
        self.target = target
        self.add_marker(pytest.mark.xdist_group(target.name))
        self.user_properties.append(("spark", str(target.version)))

    def runtest(self) -> None:
        engines = SharedEngines.of(self.config).engines(allow_code=bool(self.config.getoption("--allow-code")))
        verdict = run_on(engines, self.case, self.target).verdict
        if verdict.status == "not-applicable":
            pytest.skip(verdict.notes[0])
        self.user_properties.append(("status", verdict.status))
        if verdict.status not in AS_THE_CASE_SAYS:
            raise Unexpected(_shown(verdict.describe()))


class PolicyItem(_Item):
    def __init__(self, *, case: PolicyCase, **kwargs: Any) -> None:
        super().__init__(case=case, **kwargs)
        self.case = case

    def runtest(self) -> None:
        if problems := check(self.case):
            raise Unexpected(_shown("\n".join([self.case.title, *map(str, problems)])))
