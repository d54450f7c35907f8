"""`stoker rules`: what is known, and how well. Without one of its commands named, it shows rules."""

from __future__ import annotations

from stoker.cli.words import Words

HELP = """Show the rules: what is known to crash, to run out of memory, to be slow or to mislead, with its evidence.

--search looks through the rules, Stoker's own pages, and the folders of Markdown that [knowledge] in stoker.toml names.
Rules of your own lie in the folder `rules` beside stoker.toml; they win over those that ship. `stoker rules add` starts one.

\b
Example:
  stoker rules
  stoker rules --search "invalid device function"
  stoker rules sglang-attn-triton-required
  stoker rules --filters
  stoker rules add frobnicator-askew coder --cause "..." --fix "..."
"""
COMMAND = Words(
    __name__, __path__, "show", "[OPTIONS] [RULE_ID]", name="rules", help=HELP,
    short_help="Show what is known to go wrong, with its evidence.",
)  # fmt: skip
