"""Reads launches that people wrote: commands, scripts, containers, units and recipes. Pure: text in, records out."""
