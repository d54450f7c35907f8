"""Decides which ways to draft tokens are worth a start, and which of them is best, from what few starts gave. Pure."""
