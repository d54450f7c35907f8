"""Containers through the API of docker or podman: its socket, its calls, their logs, limits and images."""
