"""Questions to a running engine whose answers prove something."""
