"""The control API; later the dashboard. It offers flows over HTTP and knows nothing else."""
