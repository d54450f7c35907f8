"""Measures an endpoint: sends loads that are known exactly, notes when each token came, and makes figures of it.

One thread and one epoll, no event loop: see docs/decisions/0019-measuring-by-the-kernels-clock.md.
"""
