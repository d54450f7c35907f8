"""The clients that are known, one file each."""
