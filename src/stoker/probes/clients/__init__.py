"""Asks what clients start for themselves."""
