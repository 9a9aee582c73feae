"""Every law, in the order in which they are told."""

from conformance.invariants import (
    drops_are_counted,
    nothing_early,
    nothing_lost,
    nothing_twice,
    nothing_waits,
    read_once,
    replays_agree,
    state_holds_the_rest,
    watermark_follows_rows,
    watermark_never_falls,
)

INVARIANTS = (
    nothing_twice.LAW,
    replays_agree.LAW,
    nothing_early.LAW,
    nothing_waits.LAW,
    read_once.LAW,
    nothing_lost.LAW,
    state_holds_the_rest.LAW,
    drops_are_counted.LAW,
    watermark_never_falls.LAW,
    watermark_follows_rows.LAW,
)
