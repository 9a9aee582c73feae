"""The watermark semantics of Structured Streaming as a program one can read: what each micro-batch emits, drops and keeps.

One module per idea. What differs between versions of Spark, and everything a reader of the specification could get wrong,
is a field of ``rules.Rules``, and ``catalogue.RULES`` gives each its values with their versions and sources. The model knows
nothing of case files, of engines, and of pyspark. Instants are microseconds since the epoch (``_us``) where they are values
of rows, milliseconds (``_ms``) where they are watermarks, as they are in Spark.
"""
