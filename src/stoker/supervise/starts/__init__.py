"""Where the time of an engine's start went, read from its own log lines. Pure."""
