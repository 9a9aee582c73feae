"""The program inside the engine: standard library and pyspark, nothing else, CPython 3.8 upward.

It reads requests as JSON lines from standard input and answers with observations on standard output; ``harness/engine/protocol.py``
describes every message. A request holds a case without its expectations: the engine never sees what it is expected to say.
"""

PROTOCOL = 1
