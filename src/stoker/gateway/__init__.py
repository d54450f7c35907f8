"""The one door to every engine: HTTP in front, a byte relay behind; it never answers for another model."""
