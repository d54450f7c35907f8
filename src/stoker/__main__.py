"""Runs the command line as `python -m stoker`."""

from stoker.cli.main import main

if __name__ == "__main__":
    main()
