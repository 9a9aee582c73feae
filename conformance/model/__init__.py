"""The reference model: the watermark semantics of Structured Streaming as readable code. It predicts what each micro-batch emits,
drops and keeps.

One module per concept. Everything that differs between versions of Spark, or that a reader of the specification could misread, is a
field of ``rules.Rules``; ``catalogue`` has its values with their versions and sources. The model does not know case files, engines or
pyspark. What builds or runs a query raises ``errors.Refused`` where Spark refuses it, and ``errors.Unpredictable`` for what the model does
not know. As in Spark, instants in rows are microseconds since the epoch (``_us``) and watermarks are milliseconds (``_ms``).
"""
