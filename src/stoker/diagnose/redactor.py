"""Takes out of texts that leave the machine what is nobody else's business: secrets, names, what was said to models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from stoker.diagnose.redact import hide_secrets
from stoker.plan.secrets import HIDDEN, hide

MAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
PRIVATE_KEY, ITS_END = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"), re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")
# Long and of all kinds of signs, as random keys are; digests have small letters alone, and names of code underscores.
KINDS = r"(?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[A-Z])(?=(?:[A-Za-z]*\d){3})"
RANDOM = re.compile(rf"(?<![\w/.]){KINDS}[A-Za-z0-9]{{32,}}(?![\w/.])")
QUERY = re.compile(r"\b((?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) [^\s?\"']*)\?[^\s\"']*")
# What a client said and what a model answered, by the names that engines and protocols give it.
FIELDS = (
    "prompts?", "contents?", "texts?", "inputs?", "messages", "input_ids", "prompt_token_ids", "instructions", "outputs?",
    "output_text", "output_ids", "reasoning", "reasoning_content", "arguments", "query", "documents", "generated_text",
    "completion",
)  # fmt: skip
SAID = re.compile(rf"""(?i)["']?\b(?:{"|".join(FIELDS)})["']?\s*[=:]\s*b?(?P<begin>["'\[{{])""")
CLOSES = {"[": "]", "{": "}"}
LEFT_OUT = "*** (what was said is left out)"
# How a line of a log begins; another one goes on with what was said in the line before.
STAMPED = re.compile(r"^\W*(?:\d{4}-\d\d|\d\d:\d\d|\d+\.\d+|\d\d-\d\d |\((?:\w+ )?\w*pid=|[A-Z]{4,} |[IWED] |stoker: )")
LEAST_SECRET = 6  # a shorter one is hidden by its name alone: SOME_KEY=true would blot out every `true`
LEAST_NAME = 3
COMMON_NAMES = frozenset({"root", "user", "ubuntu", "debian", "admin", "nvidia", "localhost", "spark", "stoker", "home"})


class Redactor:
    """Knows the values of this machine's secrets, and what to write in the place of the names of its people and its own."""

    def __init__(self, secrets: Iterable[str], names: Mapping[str, str]) -> None:
        known = (secret for secret in secrets if len(secret) >= LEAST_SECRET)
        self._secrets = frozenset(form for secret in known for form in _forms(secret))
        self._instead = {name: text for name, text in names.items() if len(name) >= LEAST_NAME and name not in COMMON_NAMES}
        words = "|".join(map(re.escape, self._instead))
        self._names = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None

    def text(self, text: str) -> str:
        """Returns a text, such as a file of settings, without secrets and names."""
        return "\n".join(self._lines(text.split("\n")))

    def log(self, lines: Iterable[str]) -> Iterator[str]:
        """Yields the lines of a log, also without what clients and models said, over however many lines that goes."""
        goes_on = False
        for line in self._lines(lines):
            if goes_on and not STAMPED.match(line):
                continue
            shown, goes_on = _without_words(line)
            yield shown

    def _lines(self, lines: Iterable[str]) -> Iterator[str]:
        in_key = False
        for line in lines:
            if in_key or PRIVATE_KEY.search(line):
                in_key = ITS_END.search(line) is None
                yield HIDDEN
            else:
                yield self._line(line)

    def _line(self, line: str) -> str:
        line = QUERY.sub(rf"\1?{HIDDEN}", hide_secrets(hide(line, self._secrets)))
        line = RANDOM.sub(HIDDEN, MAIL.sub(HIDDEN, line))
        return self._names.sub(lambda found: self._instead[found[0]], line) if self._names else line


def _forms(secret: str) -> tuple[str, ...]:
    """A secret as it is, in JSON, in Python's and in an address."""
    return secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe="")


def _without_words(line: str) -> tuple[str, bool]:
    """Cuts a line where somebody's words begin, and tells whether they go on in the next."""
    found = SAID.search(line)
    if found is None:
        return line, False
    begin = found["begin"]
    return line[: found.start("begin")] + LEFT_OUT, CLOSES.get(begin, begin) not in line[found.end() :]
