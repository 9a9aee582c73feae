"""Options about the user's own code: whether it runs, where it is, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import option
from conformance.runner.project import PYPROJECT, TABLE, OwnJob, Project, own_job

OWN_CODE = "Your own code"
"""A panel of the help."""

Folders = Annotated[
    list[Path] | None,
    option("Folder of your modules; by default your project's root and its src. Repeatable.", "FOLDER", OWN_CODE),
]
Requirements = Annotated[Path | None, option("Python packages of your code, a requirement per line.", "FILE", OWN_CODE)]
Packages = Annotated[
    list[str] | None,
    option(
        "Java package from Maven, such as 3.5=io.delta:delta-spark_2.12:3.2.0, for a version, a line or all. Repeatable.",
        "VERSION=PACKAGE",
        OWN_CODE,
    ),
]


@dataclass(frozen=True)
class Needs:
    """Where the code is, and what it needs, for a command that always runs it."""

    code: Folders = None
    requirements: Requirements = None
    package: Packages = None

    def allowed(self) -> Code:
        """The same, of code that may run."""
        return Code(True, self.code, self.requirements, self.package)


@dataclass(frozen=True)
class Code:
    """The code of cases, and what it needs."""

    allow_code: Annotated[
        bool, option("Let cases run their own code: Python, any SQL, any setting.", None, OWN_CODE, "--allow-code")
    ] = False
    code: Folders = None
    requirements: Requirements = None
    package: Packages = None

    def job(self, conf: dict[str, str]) -> OwnJob:
        """What engines need, by these options and by ``[tool.conformance]`` of the project.

        Args:
            conf: Spark settings of the command.

        Raises:
            WrongUsage: see `conformance.runner.project.own_job`.
            NotAProject: see `Project.read`.
        """
        project = Project.read(Path.cwd())
        ignored = () if self.allow_code else project.needs_permission()
        if ignored:
            typer.echo(f"{PYPROJECT}: {', '.join(ignored)} in {TABLE} need --allow-code, and were left out", err=True)
        return own_job(
            project,
            allow_code=self.allow_code,
            code=self.code or (),
            requirements=self.requirements,
            packages=self.package or (),
            conf=conf,
        )
