"""What runs of real engines on GPUs noted, made into pages."""
