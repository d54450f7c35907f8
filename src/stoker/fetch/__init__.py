"""Fetches models from a hub: what engines need of them, resumably, verified, and with patience that has a limit."""
