"""Cases as pytest items: ``pytest cases --spark 3.5``. ``conformance.pytest_plugin`` registers this module where ``--spark`` is given.

An item is ``cases/late-drops/x.yaml::[spark-3.5.9]``, or ``cases/policies/x.yaml::[model]`` for a case on a watermark policy, which
needs no engine. Without ``--spark`` nothing is collected; with it, YAML files in a folder named ``cases`` or in a suite (a folder
with ``behaviours.yaml``) are, and no others.

Each process has one engine at a time. With pytest-xdist, ``--dist loadgroup`` keeps each version on one worker. xdist 3.8 does so by
appending a suffix to node ids, which pytest 9.2 prevents; so the scheduler here reads the version from the id itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.core.case import Case
from conformance.core.wording import printable, without_commands
from conformance.judging.verdict import AS_THE_CASE_SAYS
from conformance.language import InvalidCase, read_any
from conformance.language.catalogue import Catalogue
from conformance.own_job.case_run import run_on
from conformance.policies.case import TARGET, PolicyCase, check
from conformance.pytest_engines import SharedEngines, chosen_targets
from conformance.suite import discovery
from harness.targets.targets import Target

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
