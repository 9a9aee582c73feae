"""Settings below ``spark.sql.streaming.`` that do not exist, or that no version of the case knows."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.core.versions import VersionRange, falling_into, releases
from conformance.language.confs import STREAMING, streaming_confs
from conformance.language.node import Entry, Node, child, entries_of, items_of
from conformance.language.problem import Report
from conformance.language.suggest import unknown


def check_confs(case: Node, report: Report) -> None:
    """Spark takes any name and changes nothing: the case would run as if the setting were not there."""
    spark = child(case, "spark")
    within = (
        falling_into(VersionRange.parse(spark.plain())) if spark is not None and report.is_valid(spark) else releases()
    )
    versions = list(within)
    known = streaming_confs()
    for entry in _entries(case):
        name = str(entry.key.value)
        if not name.startswith(STREAMING):
            continue
        conf = known.get(name)
        if conf is None:
            report.add(entry.key, unknown("setting of Spark", name, known))
        elif versions and not any(conf.on(version) for version in versions):
            until = f" and gone since {conf.until.line}" if conf.until else ""
            report.add(
                entry.key, f"{name} is known since Spark {conf.since.line}{until}, in none of the case's versions"
            )


def _entries(case: Node) -> Iterator[Entry]:
    yield from entries_of(child(case, "conf"))
    for step in items_of(child(case, "steps")):
        yield from entries_of(child(child(child(step, "restart"), "change"), "conf"))
