"""The page of ``explain --output``: the causes, a query over its micro-batches, which delay it needs, and what became of each row."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256

from markupsafe import Markup

from conformance.core.data import Json
from conformance.core.wording import duration
from conformance.query_progress.causes import rule
from conformance.query_progress.query_page import QueryPage
from reports.html.pages import rendered
from reports.html.standalone import asset


def explanation_page(pages: Iterable[QueryPage], notes: Iterable[str] = ()) -> str:
    """Return a page that needs no other file; ``notes``: what holds for all queries."""
    shown = [*pages]
    script = f"{asset('uplot.js')}\n{asset('explanation.js')}"
    return rendered(
        "explanation.html",
        title="Explanation",
        style=Markup(asset("report.css")),
        own_style=Markup(asset("explanation.css")),
        pages=shown,
        rule=rule,
        duration=duration,
        data=[*map(_data, shown)],
        notes=notes,
        script=Markup(script),
        script_hash=f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
    )


def _data(page: QueryPage) -> Json:
    """Return what the script draws."""
    points, delays = page.over_time.points, page.delays
    return {
        "batches": [point.batch for point in points],
        "clock": [point.clock for point in points],
        "values": [[point.values.get(series) for point in points] for series in page.over_time.series],
        "restarts": [at for at, point in enumerate(points) if point.begins],
        "delays": delays and {**delays.record, "labels": [row[:1] + row[-2:-1] for row in delays.table[1:]]},
    }
