"""What is measured, one command a file or folder; see `docs/measured/`."""
