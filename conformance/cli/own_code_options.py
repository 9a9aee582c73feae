"""Options about the user's own code: whether it runs, and where it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import option
from conformance.runner.project import project_root
from harness.runtimes.own_code import OwnCode

OWN_CODE = "Your own code"
"""A panel of the help."""


@dataclass(frozen=True)
class Code:
    """The code of cases."""

    allow_code: Annotated[
        bool, option("Let cases run their own code: Python, any SQL, any setting.", None, OWN_CODE, "--allow-code")
    ] = False
    code: Annotated[
        list[Path] | None,
        option("Folder of your modules; by default your project's root and its src. Repeatable.", "FOLDER", OWN_CODE),
    ] = None

    def own_code(self) -> OwnCode | None:
        """The user's modules; None if cases may run no code.

        Raises:
            typer.BadParameter: ``--code`` without ``--allow-code``.
            NoSuchFolder: a folder of ``--code`` does not exist.
        """
        if self.code and not self.allow_code:
            raise typer.BadParameter("cases run your code only with --allow-code: add it", param_hint="--code")
        if not self.allow_code:
            return None
        return OwnCode.at(self.code) if self.code else OwnCode.of_project(project_root(Path.cwd()))
