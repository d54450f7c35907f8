"""Compares two runs honestly: what differs first, then sizes with intervals, and a verdict only where a test has one.

Pure: records in, a `Comparison` out, the same every time. docs/bench-runs.md says how it decides.
"""
