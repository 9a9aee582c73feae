"""Watermark policies of several engines as small frozen values, to replay one trace under any of them. No engine runs here.

``policy`` computes the watermark of one input from the events, clock readings and idle polls of a ``trace``. ``engine_rules``
combines policies with the other rules of an engine, whose own parts are in ``engines``. ``catalogue`` lists the
policies by name, ``replay`` processes a trace, ``from_case`` converts a Spark case to a trace, and ``case`` is a policy case and its
check.
"""
