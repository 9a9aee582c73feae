"""Where the times of engines in Java end."""

from conformance.policies.trace import MIN

MAX = -1 - MIN
"""``Long.MAX_VALUE``."""
