"""`docs/filters.md`: the gateway's filters, from their files."""

from __future__ import annotations

from stoker.gateway.filters import find, names
from stoker.records import FilterView

NOTE = "<!-- Written by tools/make_docs.py from src/stoker/gateway/filters. -->"
INTRODUCTION = """\
The gateway passes requests and replies on byte for byte. A filter changes one named thing in them, for a service that
opts in:

```toml
[service.coder]
filters = ["merge-turns", "cap-tokens=4096"]
```

They are applied in that order. Each reply of such a service lists them in the header `x-stoker-filters`, whether they had
anything to change or not. What a filter does not change stays byte for byte: of a request only the fields that it sets are
written anew, of a stream only the events in which it changes something. Errors of the engine, compressed replies, whole
replies over 4 MiB and events over 512 KiB are passed on as they come. A service whose filters read replies is asked for them
uncompressed. A change of `filters` is no change of the plan: the engine stays as it is. `stoker rules --filters` shows the
same on a terminal.
"""


def pages() -> dict[str, str]:
    """Returns the page by its path in `docs/`."""
    sections = [line for name in names() for line in _section(find(name).view())]
    return {"filters.md": "\n".join(["# Filters", "", NOTE, "", INTRODUCTION, *sections])}


def _section(one: FilterView) -> list[str]:
    lines = [f"## {one.name}", "", one.summary, "", f"**Why.** {one.why}", ""]
    takes = f" After the `=`: {one.takes}." if one.takes else ""
    lines += [f"**Said** as `{one.example}`.{takes}", ""]
    lines += [f"**Where.** The {' and the '.join(one.parts)} of {', '.join(f'`{path}`' for path in one.paths)}.", ""]
    rules = ", ".join(f"[{rule}](rules/{rule}.md)" for rule in one.rules)
    return lines + ([f"**Evidence.** {rules}", ""] if rules else [])
