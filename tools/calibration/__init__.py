"""Fits the factors of `stoker.plan.speed` to published measurements."""
