"""Stoker tends the LLM engines of one machine: it plans, starts, proves and fronts them."""

__version__ = "0.1.0"
