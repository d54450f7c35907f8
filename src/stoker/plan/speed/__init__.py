"""Predicts how fast a model runs on a machine, and how far that is from what its memory allows. Pure."""
