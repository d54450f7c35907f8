"""What the generated pages of `docs/` say: a file for each kind of page."""
