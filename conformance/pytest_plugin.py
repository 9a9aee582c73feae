"""The options of ``pytest cases --spark 3.5``, and the fixture ``watermark_case``.

Every run of pytest imports this module where the suite is installed, also those that have nothing to do with it. What knows cases and
engines (``conformance.pytest_items``) takes half a second to import, so it is imported only with ``--spark`` or for a test that uses the
fixture.
"""

import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("harness", "reports")
"""Others may have packages of these names, too."""
_SITE = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    add = parser.getgroup("conformance", "conformance of Spark's watermarks").addoption
    add_repeatable = partial(add, action="append")
    add_repeatable(
        "--spark",
        metavar="VERSION",
        help="run cases on this Spark: a version (3.5.9), line (3.5) or range (>=3.4); newest, lines, all, installed; repeatable",
    )
    add("--spark-step-timeout", type=float, metavar="SECONDS", help="time limit of one step of a case")
    add(
        "--spark-runtime",
        metavar="WHERE",
        default="local",
        help="local: run engines on this machine; container: run each in a container",
    )
    add_repeatable(
        "--spark-image",
        metavar="VERSION=IMAGE",
        help="container image of a version, a line or all; {spark} is the version; repeatable",
    )
    add_repeatable(
        "--env",
        metavar="NAME",
        help="pass this environment variable to engines; they get only the most common ones; repeatable",
    )
    add("--allow-code", action="store_true", help="let cases run their own code: Python, any SQL, any setting")
    add_repeatable(
        "--code",
        metavar="FOLDER",
        help="folder of your modules; by default the root of your project and its src; repeatable",
    )
    add("--requirements", metavar="FILE", help="Python packages of your code, a requirement per line")
    add_repeatable(
        "--package",
        metavar="VERSION=PACKAGE",
        help="Java package from Maven, such as 3.5=io.delta:delta-spark_2.12:3.2.0, for a version, a line or all; repeatable",
    )
    add_repeatable(
        "--jar",
        metavar="FILE",
        help="jar of your code; one for each version of Scala, such as 2.12=a.jar, if needed; repeatable",
    )
    add_repeatable("--conf", metavar="KEY=VALUE", help="Spark setting of each engine; repeatable")
    add(
        "--conformance-update",
        action="store_true",
        help="write what Spark does into the recorded cases of watermark_case(…).expect_recorded()",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--spark"):
        config.pluginmanager.register(_imported(config, "conformance.pytest_items"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "conformance_target" in metafunc.fixturenames:
        try:
            targets = _imported(metafunc.config, "conformance.pytest_items").chosen_targets(metafunc.config)
        except pytest.UsageError as error:
            # Shown without a traceback, and other files still run.
            raise pytest.Collector.CollectError(str(error)) from None
        names = [target.name for target in targets]
        # The scope groups the tests by version, so that each process needs one engine at a time.
        metafunc.parametrize("conformance_target", targets, ids=names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def conformance_target(request: pytest.FixtureRequest) -> Any:
    """The version of Spark on which ``watermark_case`` runs."""
    return request.param


@pytest.fixture
def watermark_case(request: pytest.FixtureRequest, conformance_target: Any) -> Iterator[Any]:
    """``watermark_case(build, orders="order_time TIMESTAMP")``: a case on a function of yours, on each version of ``--spark``."""
    cases = _imported(request.config, "conformance.pytest_items").CasesOfATest(request, conformance_target)
    yield cases
    cases.fail_unless_run()


def _imported(config: pytest.Config, name: str) -> Any:
    """A module of ours; UsageError if a package of the user's with the name of one of ours cannot be shared."""
    for package in _NAMES:
        _share(package, config.rootpath)
    return import_module(name)


def _share(package: str, root: Path) -> None:
    """Where a project has a package of this name, let it have our modules, too: ``import`` knows one package of a name.

    The project's is that of its root or, if there is none, the one that Python finds first.
    """
    ours = _SITE / package
    if (module := sys.modules.get(package)) is None:
        spec = PathFinder.find_spec(package, [str(root), *sys.path])
        if spec is None or spec.loader is None or spec.origin is None or _is_ours(spec.origin, ours):
            return
        module = module_from_spec(spec)
        sys.modules[package] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise pytest.UsageError(f"conformance: {spec.origin} cannot be imported: {error!r}") from error
    if module.__file__ is None or _is_ours(module.__file__, ours) or str(ours) in getattr(module, "__path__", ()):
        return
    theirs = [Path(folder) for folder in getattr(module, "__path__", ())]
    both = {file.stem for folder in theirs for file in folder.iterdir()} & {file.stem for file in ours.iterdir()}
    if clash := sorted(both - {"__init__", "__pycache__"}):
        raise pytest.UsageError(
            f"conformance: your package {Path(module.__file__).parent} and its own package {package} both have a module "
            f"{clash[0]}: rename yours, or run cases with `conformance run`"
        )
    module.__path__ = [*map(str, theirs), str(ours)]


def _is_ours(file: str, ours: Path) -> bool:
    return Path(file).resolve().parent == ours.resolve()
