"""Metamorphic variants: other ways to run a case that must not change its answer.

One module a variant. Each turns a case into another one, and what an engine shows of that back into what it says of the
case; so the case's own expectations, with all their versions, are what it is judged by.
"""
