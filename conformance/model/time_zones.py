"""Instants and what a clock of the session time zone shows, by the rules of java.time, which Spark follows since 3.0 (SPARK-26651).

Both are µs since the epoch, what the clock shows as if it were UTC. No zone, None, is UTC.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from conformance.model.errors import Unpredictable

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1)
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")


def zone_named(name: str) -> tzinfo | None:
    """A zone as ``spark.sql.session.timeZone`` names it: ``UTC``, ``+05:30`` or ``Asia/Kolkata``.

    Raises Unpredictable: it is named otherwise, or this computer does not know it.
    """
    if name == "UTC":
        return None
    try:
        if offset := _OFFSET.fullmatch(name):
            length = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
            return timezone(-length if offset[1] == "-" else length)
        if "/" in name:
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    raise Unpredictable(f"the time zone {name}")


def offset_us(instant_us: int, zone: tzinfo | None) -> int:
    """What a clock of the zone is ahead of UTC at an instant, in µs."""
    if zone is None:
        return 0
    try:
        return _offset_us((_EPOCH + instant_us * _MICROSECOND).replace(tzinfo=UTC).astimezone(zone))
    except OverflowError:
        raise Unpredictable("a time zone outside the years 1 to 9999") from None


def instant_of(shown_us: int, zone: tzinfo | None, before_us: int | None = None) -> int:
    """The instant at which a clock of the zone shows a time.

    Of a time that it shows twice the first, unless the second has the offset ``before_us``; of a time that it skips, as much
    later as it skips. Source: ``ZonedDateTime.ofLocal``.
    """
    if zone is None:
        return shown_us
    if before_us is not None and offset_us(shown_us - before_us, zone) == before_us:
        return shown_us - before_us
    return shown_us - _offset_us((_EPOCH + shown_us * _MICROSECOND).replace(tzinfo=zone))


def truncated(instant_us: int, unit_us: int, zone: tzinfo | None) -> int:
    """The beginning of the second, minute, hour or day of a clock of the zone. Source: ``DateTimeUtils.truncTimestamp``."""
    offset = offset_us(instant_us, zone)
    shown = instant_us + offset
    return instant_of(shown - shown % unit_us, zone, offset)


def check_same_offset(zone: tzinfo | None, *instants_us: int) -> None:
    """Check that the clocks do not change between instants.

    Raises Unpredictable: they do: releases and kinds of intervals differ in whether a day is then 24 hours.
    """
    if zone is not None and len({offset_us(instant, zone) for instant in instants_us}) > 1:
        raise Unpredictable(f"an interval during which the clocks change in {zone}")


def _offset_us(moment: datetime) -> int:
    offset = moment.utcoffset() or timedelta(0)
    if offset % _MINUTE:
        # Before standard time: 3.0.2 corrects `date_trunc` there (SPARK-33404), and the databases of time zones differ.
        raise Unpredictable("an offset of seconds from UTC")
    return offset // _MICROSECOND
