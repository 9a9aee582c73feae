"""The jobs of ``repository``: what each reads, and the settings it runs with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parent / "repository"

BEFORE = "3.5.9"
AFTERS = ("4.0.5", "4.3.0")
SCHEMAS: Mapping[str, str] = {
    "orders": (
        "order_id BIGINT, ts TIMESTAMP, shop STRING, who STRING, cents STRING, qty INT, price DECIMAL(12,2), "
        "customer STRUCT<name: STRING, address: STRUCT<city: STRING, floor: INT>>, tags ARRAY<STRING>, code STRING, discount INT"
    ),
    "payments": (
        "pay_id BIGINT, paid_at TIMESTAMP, order_id BIGINT, order_text STRING, amount DECIMAL(12,2), method STRING"
    ),
    "clicks": "click_time TIMESTAMP, who STRING, page STRING, order_id BIGINT",
    "readings": "at TIMESTAMP, sensor STRING, local STRING, celsius DOUBLE",
    "scans": "scanned TIMESTAMP, cents STRING, qty INT",
    "lines": "logged TIMESTAMP, text STRING",
}
"""Stream → its schema; the rows are in ``samples``, in the order in which they arrive."""

TIMES = ("ts", "paid_at", "click_time", "at", "scanned", "logged")
"""The columns of event times."""

ANSI_OFF = {"spark.sql.ansi.enabled": "false"}
ANSI_ON = {"spark.sql.ansi.enabled": "true"}
NEW_YORK = {"spark.sql.session.timeZone": "America/New_York"}
KOLKATA = {"spark.sql.session.timeZone": "Asia/Kolkata"}
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
}
CHANGELOG = {**ROCKSDB, "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}


CUTS = (2, 4)
"""The arrivals after which checkpoints are resumed: before the late row and before the rows that close windows."""


@dataclass(frozen=True)
class Job:
    """A function of the repository, and how it runs."""

    function: str
    """``totals:revenue_of_text``, in the package ``shop``."""
    streams: tuple[str, ...] = ("orders",)
    conf: Mapping[str, str] = field(default_factory=dict)
    mode: str = "append"
    variant: str = ""
    """What the settings are, where several jobs have one function."""

    @property
    def cuts(self) -> tuple[int, ...]:
        return CUTS

    @property
    def name(self) -> str:
        """``totals:revenue_of_text, ANSI off``."""
        return f"{self.function}{f', {self.variant}' if self.variant else ''}"

    @property
    def file_name(self) -> str:
        """The name without what a file system may mind."""
        return self.name.replace(":", ".").replace(", ", "-").replace(" ", "-")

    @property
    def schemas(self) -> dict[str, str]:
        return {stream: SCHEMAS[stream] for stream in self.streams}

    @property
    def event_times(self) -> dict[str, str]:
        """Of a stream, what ``--event-time`` says."""
        return {}

    @property
    def arguments(self) -> dict[str, str]:
        """Of the function, beside the session and the streams."""
        return {}

    def time(self, line: str) -> str:
        """The event time of a line, which compares as text."""
        row = json.loads(line)
        return str(row[next(name for name in row if name in TIMES)])

    def lines(self, stream: str) -> list[str]:
        """The sample of a stream."""
        return (REPOSITORY / "samples" / f"{stream}.jsonl").read_text().splitlines()


PAID = ("orders", "payments")

JOBS: tuple[Job, ...] = (
    Job("totals:revenue_of_text"),
    Job("joins:paid_orders", PAID),
    Job("totals:revenue_of_text", conf=ANSI_OFF, variant="ANSI off"),
    Job("totals:revenue_of_text", conf=ANSI_ON, variant="ANSI on"),
    Job("totals:revenue_of_text", conf=ROCKSDB, variant="RocksDB"),
    Job("totals:revenue_in_decimals"),
    Job("totals:share_in_decimals", conf=ANSI_ON, variant="ANSI on"),
    Job("totals:by_code"),
    Job("totals:by_city"),
    Job("totals:by_customer", mode="update"),
    Job("visits:visits", ("clicks",)),
    Job("visits:spendings", conf=ROCKSDB, variant="RocksDB"),
    Job("joins:unpaid_orders", PAID),
    Job("joins:three_streams", ("orders", "payments", "clicks")),
    Job("visits:gone", ("clicks",)),
    Job("visits:running", ("clicks",), conf=ROCKSDB, mode="update", variant="RocksDB"),
    Job("dedup:by_key_and_time"),
    Job("dedup:within_watermark", conf=CHANGELOG, variant="RocksDB changelog"),
    Job("reports:best_customers"),
    Job("reports:activity", ("orders", "clicks")),
    Job("days:by_day", ("readings",), conf=NEW_YORK, variant="New York"),
    Job("days:from_text", ("readings",), conf=NEW_YORK, variant="New York"),
    Job("totals:numbers_in_text", ("lines",)),
    Job("totals:numbers_in_text", ("lines",), conf=ANSI_OFF, variant="ANSI off"),
    Job("totals:names"),
    Job("totals:sliding", conf=KOLKATA, mode="update", variant="Kolkata"),
    Job("totals:ever", mode="complete"),
    Job("joins:three_streams_outer", ("orders", "payments", "clicks")),
    Job("joins:paid_by_text", PAID),
    Job("joins:either", PAID, conf=ROCKSDB, variant="RocksDB"),
    Job("joins:who_clicked", ("orders", "clicks")),
    Job("dedup:then_windows", conf=ROCKSDB, variant="RocksDB"),
    Job("dedup:scanned_once", ("scans",)),
    Job("visits:visits_with_own_gap", ("clicks",)),
    Job("days:stamped", ("readings",)),
    Job("totals:paid_back"),
    Job("totals:windows_of_windows", conf=CHANGELOG, variant="RocksDB changelog"),
    Job("reports:cash_and_card", ("payments",)),
    Job("days:without_zone", ("readings",), conf=KOLKATA, variant="Kolkata"),
)
