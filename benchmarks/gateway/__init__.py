"""What a gateway adds between a client and an engine, measured beside its peers: `python -m benchmarks.gateway`."""
