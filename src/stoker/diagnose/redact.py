"""Takes secrets out of the lines of a log that are shown."""

from __future__ import annotations

import re

from stoker.plan.secrets import HIDDEN, TOKEN

NAME = (
    r"[\w.-]*(?:(?:api|secret|access|master|private|encryption)[_-]?(?:access[_-]?)?key|token|secret|password|passwd"
    r"|passphrase|credentials?|cookie)"
)
# max_tokens=512 and token=None hold nothing, but a secret may begin like either.
NUMBERED = r"(?!['\"\s:=]*(?:None|null|True|False|[\d.]+)(?:[\s,;)}\]'\"]|$))"
ASSIGNED = re.compile(
    rf"(?i)(?P<name>(?<![A-Za-z0-9]){NAME}['\"]?\s*[=:]\s*){NUMBERED}"
    rf"(?P<value>'[^']*'|\"[^\"]*\"|\[[^\]]*\]|[^\s,;)}}'\"]+)"
)
BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{4,}")
FLAG = re.compile(r"""(--(?:[a-z-]+-)?(?:api-key|token|password|secret))(['"]?(?:\s*,\s*|\s+|=)['"]?)([^\s'",]+)""")
ADDRESS = re.compile(r"(\w+://)[^\s/@:]+:[^\s/@]+@")
HOME = re.compile(r"(/(?:home|Users)/)[^/\s'\":,)]+")


def hide_secrets(text: str) -> str:
    """Returns a line without keys, tokens, passwords and the names of people's home folders."""
    text = ADDRESS.sub(rf"\1{HIDDEN}@", TOKEN.sub(HIDDEN, text))
    text = BEARER.sub(rf"\1 {HIDDEN}", text)
    text = FLAG.sub(rf"\1\2{HIDDEN}", text)
    text = ASSIGNED.sub(lambda found: f"{found['name']}{HIDDEN}", text)
    return HOME.sub(r"\1…", text)
