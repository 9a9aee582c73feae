"""The engines of a pytest process, by the options of ``conformance.pytest_plugin``: shared by cases and by the fixture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.core.errors import WrongUsage
from conformance.own_job.case_run import with_folders
from conformance.runner.execution import Engines
from conformance.runner.project import Project, own_job
from conformance.runner.resources import STEP_TIMEOUT_S, choose_targets
from harness.environments import provision
from harness.runtimes.cluster import settings_of
from harness.runtimes.options import NAMES, RuntimeOptions, variables_named
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
        if runtime not in NAMES:
            raise pytest.UsageError(f"--spark-runtime: {runtime!r} is not one of {', '.join(NAMES)}")
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
    given = {name: config.getoption(f"--{name}") for name in ("code", "requirements", "package", "conf")}
    in_containers = config.getoption("--spark-runtime") == "container"
    for name in ("requirements", "package", "conf"):
        if given[name] and in_containers:
            raise WrongUsage(f"--{name}: a container has its own engine: omit --spark-runtime")
    job = own_job(
        Project.read(config.rootpath),
        allow_code=allow_code,
        code=[Path(folder) for folder in given["code"] or ()],
        requirements=Path(given["requirements"]) if given["requirements"] else None,
        packages=given["package"] or (),
        conf=settings_of(given["conf"] or ()),
    )
    return RuntimeOptions(own_code=job.own_code) if in_containers else job
