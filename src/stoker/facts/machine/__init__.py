"""Reads the machine: what it is, and what happens on it."""
