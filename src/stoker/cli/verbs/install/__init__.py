"""`stoker install`: what systemd or Prometheus needs. Without one of its commands named, it is about a service."""

from __future__ import annotations

from stoker.cli.words import Words

HELP = """Show the systemd units and the sudoers lines that run a service from boot on.

One unit for the daemon, one for the service, and a sudoers file that allows its user to start, stop and restart that one
unit without a password, and the daemon that of a service with a `unit`. This verb only prints them: Stoker never runs as
root, so putting them in place stays with you. --verify checks what is in place against what would be printed now, and
that the service comes back after a reboot; exit code 1 if not. `stoker install prometheus` does the same for Prometheus,
Alertmanager and Grafana; a service of that name is `stoker install service prometheus`.

\b
Example:
  stoker install demo --dry-run
  stoker install coder --user alice --dry-run
  stoker install coder --verify
  stoker install prometheus --to ~/monitoring --webhook http://127.0.0.1:9000/alert
"""
COMMAND = Words(
    __name__, __path__, "service", "[OPTIONS] SERVICE", name="install", help=HELP,
    short_help="Show the units and sudoers lines for a service.",
)  # fmt: skip
