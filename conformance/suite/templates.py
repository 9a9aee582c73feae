"""Templates for new cases, each valid but without expectations, which ``conformance record`` fills in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["window", "session", "deduplication", "join", "call"]

_HEAD = """# Check it with `conformance validate`; fill in the expectations from a real Spark with `conformance record`.
title: {title}
why: |
  Why does this matter to you, and why do you expect this result?
"""

_WINDOW = """streams:
  events: event_time TIMESTAMP, key STRING, amount INT
query:
  - from: events
  - withWatermark: [event_time, 10 minutes]
  - groupBy: ["window(event_time, '5 minutes')", key]
    agg: [sum(amount) AS total]
  - select: [window.start, window.end, key, total]
outputMode: append
steps:
  - name: two rows in the same window    # a time without a date is on 1970-01-01, UTC
    add: {events: [["12:01", a, 1], ["12:02", a, 2]]}
  - name: a row that advances the watermark to 12:20
    add: {events: [["12:30", b, 4]]}
  - name: a late row for the first window, which has closed
    add: {events: [["12:03", a, 8]]}
"""

_SESSION = """streams:
  events: event_time TIMESTAMP, key STRING
query:
  - from: events
  - withWatermark: [event_time, 10 minutes]
  - groupBy: ["session_window(event_time, '5 minutes')", key]
    agg: [count(*) AS events]
  - select: [session_window.start, session_window.end, key, events]
steps:
  - name: two rows within the gap
    add: {events: [["12:01", a], ["12:04", a]]}
  - name: a row that advances the watermark past the end of the session
    add: {events: [["12:30", b]]}
"""

_DEDUPLICATION = """streams:
  events: event_time TIMESTAMP, id STRING
query:
  - from: events
  - withWatermark: [event_time, 10 minutes]
  - dropDuplicates: [id, event_time]
steps:
  - name: a row and its duplicate
    add: {events: [["12:01", a], ["12:01", a]]}
  - name: a row that advances the watermark to 12:20
    add: {events: [["12:30", b]]}
  - name: the duplicate again, now late
    add: {events: [["12:01", a]]}
"""

_JOIN = """streams:
  orders: order_id STRING, order_time TIMESTAMP
  payments: paid_id STRING, payment_time TIMESTAMP
query:
  - from: orders
  - withWatermark: [order_time, 10 minutes]
  - join:
      - from: payments
      - withWatermark: [payment_time, 10 minutes]
    on: order_id = paid_id AND payment_time BETWEEN order_time AND order_time + INTERVAL 5 MINUTES
    how: leftOuter
  - select: [order_id, order_time, paid_id]
steps:
  - name: one paid order and one unpaid order
    add: {orders: [[a, "12:00"], [b, "12:01"]], payments: [[a, "12:03"]]}
  - name: rows that advance both watermarks
    add: {orders: [[c, "12:40"]], payments: [[d, "12:40"]]}
"""

_CALL = """streams:
  events: event_time TIMESTAMP, key STRING, amount INT
query:
  - from: events
  - call: my_job:totals    # def totals(spark, events): ... returns a DataFrame; run with --allow-code
outputMode: append
steps:
  - name: two rows in the same window
    add: {events: [["12:01", a, 1], ["12:02", a, 2]]}
  - name: a row that advances the watermark
    add: {events: [["12:30", b, 4]]}
  - name: another row for the first window
    add: {events: [["12:03", a, 8]]}
"""

TEMPLATES: Mapping[Kind, str] = {
    "window": _HEAD.format(title="A window is emitted once, without late rows") + _WINDOW,
    "session": _HEAD.format(title="A session is emitted when the watermark passes its end") + _SESSION,
    "deduplication": _HEAD.format(title="A duplicate is dropped, whether it is late or not") + _DEDUPLICATION,
    "join": _HEAD.format(title="An order that is not paid in time is emitted without a payment") + _JOIN,
    "call": _HEAD.format(title="My job computes the same totals on every Spark version") + _CALL,
}
"""Kind of query → the text of a case."""
