"""The program inside the engine: standard library and pyspark only, CPython 3.7 or newer.

It reads requests as JSON lines from standard input and writes observations to standard output; ``harness/engine/protocol.py``
describes every message. A request holds a case without its expectations: the engine never sees what it is expected to answer.
"""

PROTOCOL = 1
