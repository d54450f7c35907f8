"""What probes are made of: the client with its limits, what it heard, how that is judged and kept, and their runner."""
