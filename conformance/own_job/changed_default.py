"""Settings whose default a release changed: a job that differs on a newer version may do so because of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from conformance.core.data import read_data
from conformance.core.versions import SparkVersion

ANSI = "spark.sql.ansi.enabled"


@dataclass(frozen=True)
class ChangedDefault:
    """An entry of ``changed_defaults.yaml``, which says what each field is."""

    key: str
    value: str
    because: str
    mend: str
    errors: tuple[Mapping[str, str], ...]
    source: str

    @property
    def setting(self) -> str:
        """``spark.sql.ansi.enabled=false``"""
        return f"{self.key}={self.value}"

    def cause(self, tried_on: SparkVersion, message: str = "") -> str:
        """Say that it causes what changes, since nothing does with the setting; ``message``: of the error without the setting."""
        fitting = (error["mend"] for error in self.errors if message and re.search(error["says"], message))
        named = _INSTEAD.search(message)
        mend = next(fitting, self.mend).format(instead=named[1] if named else _ANY_INSTEAD)
        return f"{self.because} ({self.source}); with {self.setting}, {tried_on} changes nothing, as was tried. Better {mend}"


_INSTEAD = re.compile(r"Use (?:the SQL function )?[`'](try_\w+|get)\b")
"""The function that Spark's message of an error of ANSI mode names."""
_ANY_INSTEAD = "try_cast, try_to_timestamp, try_divide or try_element_at"


def changed_defaults(before: SparkVersion, after: SparkVersion, plans: Iterable[str]) -> Iterator[ChangedDefault]:
    """Yield the settings whose default changed from one version to the other, as far as a query with these plans may meet that."""
    text = "\n".join(plans)
    for entry in read_data("conformance.own_job", "changed_defaults.yaml"):
        if before < SparkVersion.parse(entry["from"]) <= after and re.search(entry.get("plan", ""), text):
            named = {name: entry[name] for name in ("key", "value", "because", "mend", "source")}
            yield ChangedDefault(errors=tuple(entry.get("errors", ())), **named)
