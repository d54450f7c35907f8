"""One file a verb; each defines `COMMAND`."""
