"""Watermark policies of several engines as small frozen values, to replay one trace under any of them. No engine runs here.

``rules`` says what the rules of an engine consist of, ``engines`` has those of each engine and its policies by name, ``replay``
processes a ``trace``, ``from_case`` converts a Spark case to one, and ``case`` is a policy case and its check.
"""
