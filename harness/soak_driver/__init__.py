"""The program of a soak, inside the engine: standard library and pyspark, nothing else of the host's, CPython 3.8 upward.

It makes the stream, runs the query over it, and puts the laws' questions to what came out. Requests and answers are JSON lines, as for
the driver; ``harness/soak/messages.py`` describes them. It knows no law: what it is asked, it answers with rows.
"""
