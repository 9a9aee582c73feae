"""The throttles by name, and what each takes: Hazelcast Jet's, which differ between releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from conformance.policies.frames import Frames
from conformance.policies.parameter import Parameter
from conformance.policies.throttling import ByFrame, FrameBorder, MinStep, SuppressDuplicates, Throttle

Release: TypeAlias = Literal["jet-0.5", "jet-0.6"]


@dataclass(frozen=True)
class KnownThrottle:
    meaning: str
    make: Callable[[Mapping[str, Any], Release], Throttle]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


def _by_frame(given: Mapping[str, Any], release: Release) -> Throttle:
    frames = Frames(given["frame"], given.get("offset", 0))
    return ByFrame(frames) if release == "jet-0.5" else FrameBorder(frames)


THROTTLES: Mapping[str, KnownThrottle] = {
    "suppress-duplicates": KnownThrottle("Every watermark that is new.", lambda _given, _release: SuppressDuplicates()),
    "emit-by-min-step": KnownThrottle(
        "A watermark at least so much above the one emitted last.",
        lambda given, _release: MinStep(given["step"]),
        {"step": Parameter("the least progress, in the unit of event times", "positive")},
    ),
    "emit-by-frame": KnownThrottle(
        "At most one watermark per frame: the one that entered it (0.5), or the frame's border (0.6).",
        _by_frame,
        {
            "frame": Parameter("the length of a frame, in the unit of event times", "positive"),
            "offset": Parameter("where frames begin, in the unit of event times", default=0, required=False),
        },
    ),
}
