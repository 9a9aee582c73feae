"""The program of a soak inside the engine: standard library, pyspark and the driver, CPython 3.7 or newer.

It generates the stream, runs the query over it, and runs the invariants' SQL over the results; ``tools/soak/engine.py`` describes the
requests. It knows no invariant: it answers queries with rows.
"""
