"""Brings a model's files here whole, and in front of the engine in time."""
