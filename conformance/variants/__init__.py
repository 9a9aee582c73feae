"""Metamorphic variants: other ways to run a case that must not change its result.

Each entry of ``catalogue.variants`` transforms a case, and maps the observation of the transformed case back to the original one,
so that the expectations of the original case apply.
"""
