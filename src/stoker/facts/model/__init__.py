"""Reads models on disk by their headers, without loading them."""
