"""What Spark did with a case that Python code builds, kept as a case file beside the test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.output_file import FileKind, any_content, write_file
from conformance.language.printing import printed
from conformance.language.problem import InvalidCase, Report
from conformance.language.reader import read_case
from conformance.language.source import read_yaml
from conformance.suite.record_expectations import fill_in_expectations

Json: TypeAlias = Any

UPDATE = "run pytest --conformance-update"
_KIND = FileKind("a recorded case", any_content)


class NotRecorded(AssertionError):
    """There is no recorded case to compare with, or it is of another case; the message says how to record it."""


@dataclass(frozen=True)
class RecordedCase:
    """A case file with the expectations that an engine gave it."""

    file: Path

    def read(self, written: Mapping[str, Json]) -> Case:
        """The recorded case.

        Args:
            written: the case that the test builds now, structured like its YAML.

        Raises:
            NotRecorded: there is no file, or its streams, query or steps are not those of the test.
            InvalidCase: the file was edited, and is no longer a valid case.
        """
        if not self.file.is_file():
            raise NotRecorded(f"{self.file} does not exist: {UPDATE}")
        report = Report(self.file)
        node = read_yaml(self.file, report)
        if node is None:
            raise InvalidCase(report.problems)
        if _asked(node.plain()) != _asked(written):
            raise NotRecorded(f"the test is not the one that {self.file} has recorded: {UPDATE}")
        return read_case(self.file, self.file.stem)

    def write(self, written: Mapping[str, Json], case: Case, observation: Observation) -> None:
        """Write the case, with expectations that the observation meets.

        Raises:
            WrongUsage: see `fill_in_expectations`.
            CannotWriteFile: see `conformance.core.output_file`.
        """
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_file(self.file, fill_in_expectations(printed(written), case, observation, replace=True), _KIND)


def _asked(written: Any) -> str:
    """What a case asks of an engine; equal texts, equal questions."""
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
