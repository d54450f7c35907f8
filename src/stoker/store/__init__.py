"""What has to survive the daemon, in one SQLite file."""
