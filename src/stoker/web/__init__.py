"""The control API and the dashboard. It offers flows over HTTP and knows nothing else."""
