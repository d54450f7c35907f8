"""A Dockerfile that replaces the Python sources of an image's engine by those of one commit."""

from __future__ import annotations

import re

from stoker.errors import Refused
from stoker.launch.names import check_line
from stoker.records import ImageOverlay

SHAPES = {
    "base": re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:/-]*"),
    "package": re.compile(r"[a-z_][a-z0-9_]*"),
    "repository": re.compile(r"https://[a-zA-Z0-9._/-]+"),
    "commit": re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?"),
    "digest": re.compile(r"sha256:[0-9a-f]{64}"),
}
FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")
SHA256 = re.compile(r"[0-9a-f]{64}")
MOVES = (
    "# The tag may come to mean another image. Pin it: docker image inspect --format '{{{{index .RepoDigests 0}}}}' {base}\n"
)
TEMPLATE = """\
# Written by Stoker: {because}
{moves}
FROM {image} AS sources
RUN command -v git >/dev/null || {{ apt-get update && apt-get install -y --no-install-recommends git ca-certificates; }}
# One commit by its hash, which git checks against what it gets; a branch would be another program every day.
RUN set -eu; git init -q /sources; cd /sources; \\
    git fetch -q --depth=1 {repository} {commit}; \\
    git checkout -q --detach FETCH_HEAD; \\
    test "$(git rev-parse HEAD)" = {commit}{checks}

# A second stage, so that neither git nor the sources stay in the image.
FROM {image}
# Only what the repository holds is replaced. The compiled parts (.so) and the generated version file stay: they fit this
# machine's GPU and CUDA, and fit the sources as long as the commit is near the one that they were built from.
RUN --mount=type=bind,from=sources,source=/sources,target=/sources set -eu; \\
    place=$(python3 -c 'import importlib.util as u; print(u.find_spec("{package}").submodule_search_locations[0])'); \\
    cp -R /sources/{package}/. "$place"/; \\
    python3 -m compileall -q "$place"
LABEL stoker.overlay.base="{image}" stoker.overlay.commit="{commit}"
"""


def render_overlay(overlay: ImageOverlay) -> str:
    """Returns the text of the Dockerfile; raises Refused where a value could be more than what it is called."""
    for field, shape in SHAPES.items():
        value = getattr(overlay, field)
        if value is not None and not shape.fullmatch(value):
            raise Refused(f"{value!r} cannot be the {field} of an image overlay", why="it would be run by a shell as root")
    image = f"{overlay.base}@{overlay.digest}" if overlay.digest else overlay.base
    return TEMPLATE.format(
        because=check_line(overlay.because, "the reason"), moves="" if overlay.digest else MOVES.format(base=overlay.base),
        image=image, repository=overlay.repository, commit=overlay.commit, package=overlay.package,
        checks="".join(_check(file, sha256) for file, sha256 in overlay.checksums),
    )  # fmt: skip


def _check(file: str, sha256: str) -> str:
    if not FILE.fullmatch(file) or not SHA256.fullmatch(sha256):
        raise Refused(f"{file!r} with {sha256!r} cannot be a file's SHA-256", why="it would be run by a shell as root")
    return f'; \\\n    echo "{sha256}  {file}" | sha256sum -c -'
