"""Owns the engines: one task a service, one writer of its state."""
