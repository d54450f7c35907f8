"""Notices what a person would notice too late."""
