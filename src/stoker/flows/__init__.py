"""One file a use: the only code that joins rooms."""
