"""Engines of watermark policies: their own classes, asked what a trace does.

``engines.yaml`` says which engines there are and what each needs. An engine is a JVM that runs a Java source file of ``java/`` with the
engine's jars; it reads a trace as a line of JSON and writes the answers as another, so it answers any number of traces. The questions and
answers are those of ``conformance.policies.replay``, which the model answers too.
"""
