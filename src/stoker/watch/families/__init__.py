"""What was read, as families of Prometheus's metrics: pure, one file for engines, machine and services."""
