"""Decides how a service runs: settings with reasons, and the memory they need. Pure."""
