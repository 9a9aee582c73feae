"""Metamorphic variants: other ways to run a case that must not change its result.

Each class of ``catalogue`` is a variant. It transforms a case, and maps the observation of the transformed case back to the original one,
so that the expectations of the original case apply.
"""
