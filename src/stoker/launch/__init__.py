"""Turns a plan into the exact program to run. Pure."""
