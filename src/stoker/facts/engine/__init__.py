"""Reads engines: their flags by version, and what an image or an environment holds."""
