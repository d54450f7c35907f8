"""`stoker alerts`: what is wrong, what was, and what was done about it."""

from __future__ import annotations

from stoker.cli.words import Words

HELP = """Show what is wrong now, what was within the last day, and what was done about it by [watch.act].

Exit code 1 where something of severity warning or critical is wrong now and not silenced.

\b
Example:
  stoker alerts
  stoker alerts --since 7d --json     alerts[].{id,about,severity,state,title,why,fix,since,...}, acts[]
  stoker alerts --all                 what is watched: every alert, its number and its evidence
  stoker alerts silence accept-rate-dropped coder --for 2h
"""
COMMAND = Words(
    __name__, __path__, "list", "[OPTIONS]", name="alerts", help=HELP, short_help="Show what is wrong, and what was."
)
