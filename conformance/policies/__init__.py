"""Watermark policies as parts: the rules of several engines, each a small frozen value, to read one trace under any of them.

No engine runs here. A policy (``policy``) computes the watermark of one input from events, readings of a clock and idle polls
(``trace``), all of them explicit. An engine's rules (``rules``) are such a policy for each input, and what the engine makes of
it: when it emits a watermark (``throttling``), how it joins several inputs (``coalescing``), what it calls late and when a
window is complete (``lateness``). ``known`` lists them by name; ``reading.read(trace, rules)`` reads a trace under one of
them; ``from_case`` makes a trace of a Spark case; ``checking`` holds a case of ``cases/policies`` against its reading.
"""
