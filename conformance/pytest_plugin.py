"""The options of ``pytest cases --spark 3.5``; with ``--spark``, ``conformance.pytest_items`` collects and runs cases.

Every run of pytest imports this module where the suite is installed, also those that have nothing to do with it. What knows cases and
engines takes half a second to import, so it is imported only with ``--spark``.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "conformance of Spark's watermarks")
    group.addoption(
        "--spark",
        action="append",
        metavar="VERSION",
        help="run cases on this Spark: a version (3.5.9), line (3.5) or range (>=3.4); newest, lines, all, installed; repeatable",
    )
    group.addoption(
        "--spark-step-timeout",
        type=float,
        metavar="SECONDS",
        help="time limit of one step of a case",
    )
    group.addoption(
        "--spark-runtime",
        metavar="WHERE",
        default="local",
        help="local: run engines on this machine; container: run each in a container",
    )
    group.addoption(
        "--spark-image",
        action="append",
        metavar="VERSION=IMAGE",
        help="container image of a version, a line or all; {spark} is the version; repeatable",
    )
    group.addoption(
        "--env",
        action="append",
        metavar="NAME",
        help="pass this environment variable to engines; they get only the most common ones; repeatable",
    )
    group.addoption(
        "--allow-code", action="store_true", help="let cases run their own code: Python, any SQL, any setting"
    )
    group.addoption(
        "--code",
        action="append",
        metavar="FOLDER",
        help="folder of your modules; by default the root of your project and its src; repeatable",
    )
    group.addoption("--requirements", metavar="FILE", help="Python packages of your code, a requirement per line")
    group.addoption(
        "--package",
        action="append",
        metavar="VERSION=PACKAGE",
        help="Java package from Maven, such as 3.5=io.delta:delta-spark_2.12:3.2.0, for a version, a line or all; repeatable",
    )
    group.addoption("--conf", action="append", metavar="KEY=VALUE", help="Spark setting of each engine; repeatable")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--spark"):
        from conformance import pytest_items

        config.pluginmanager.register(pytest_items)
