"""Collects the training text from Debian packages: Python source and free documentation.

Every file goes to the held-out split or the training split by a hash of its path, so that both stay the same
when the list of packages grows.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html.parser
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import layout

SEPARATOR = "\x00"
HELD_OUT_PERCENT = 3
MIN_CHARS = 200
COMMON_WORDS = 8000


@dataclass(frozen=True)
class Source:
    """One Debian package, what is read from it, and under which licence it comes."""

    package: str
    kind: str
    pattern: str
    licence: str
    skip: str = r"$^"


STDLIB_SKIP = r"/(test|tests|idlelib|lib2to3|turtledemo|ensurepip|pydoc_data|__pycache__)/|_sysconfigdata|encodings/"
SOURCES = (
    Source("libpython3.11-stdlib", "code", r"\.py$", "PSF-2.0", STDLIB_SKIP),
    Source("libpython3.11-minimal", "code", r"\.py$", "PSF-2.0", STDLIB_SKIP),
    Source("idle-python3.11", "code", r"\.py$", "PSF-2.0", r"/idle_test/"),
    Source("python3-setuptools", "code", r"\.py$", "MIT", r"/(tests|_vendor)/"),
    Source("python3-docutils", "code", r"\.py$", "public domain, BSD-2-Clause", r"/(languages)/"),
    Source("python3-babel", "code", r"\.py$", "BSD-3-Clause"),
    Source("python3-jinja2", "code", r"\.py$", "BSD-3-Clause"),
    Source("python3-werkzeug", "code", r"\.py$", "BSD-3-Clause"),
    Source("python3-flask", "code", r"\.py$", "BSD-3-Clause"),
    Source("python3-django", "code", r"\.py$", "BSD-3-Clause", r"/(locale|migrations)/"),
    Source("python3-networkx", "code", r"\.py$", "BSD-3-Clause", r"/tests/"),
    Source("python3-sympy", "code", r"\.py$", "BSD-3-Clause", r"/(tests|benchmarks)/"),
    Source("python3-tornado", "code", r"\.py$", "Apache-2.0", r"/test/"),
    Source("python3-requests", "code", r"\.py$", "Apache-2.0"),
    Source("python3-attr", "code", r"\.py$", "MIT"),
    Source("python3.11-doc", "prose", r"_sources/.*\.rst\.txt$", "PSF-2.0", r"/changelog\.rst"),
    Source("python-django-doc", "prose", r"_sources/.*\.txt$", "BSD-3-Clause"),
    Source("debian-reference-en", "prose", r"\.en\.html$", "GPL-2.0-or-later"),
    Source("debian-policy", "prose", r"policy\.html/.*\.html$", "GPL-2.0-or-later", r"genindex|search"),
    Source("developers-reference", "prose", r"\.html$", "GPL-2.0-or-later", r"genindex|search"),
    Source("debian-faq", "prose", r"\.en\.html$", "GPL-2.0-or-later"),
    Source("debian-handbook", "prose", r"/en-US/.*\.html$", "GPL-2.0-or-later or CC-BY-SA-3.0"),
    Source("installation-guide-amd64", "prose", r"/en/.*\.html$", "GPL-2.0-or-later"),
    Source("debmake-doc", "prose", r"\.en\.html$", "MIT"),
    Source("maint-guide", "prose", r"\.en\.html$", "GPL-2.0-or-later"),
    Source("git-doc", "prose", r"\.txt(\.gz)?$", "GPL-2.0", r"RelNotes"),
)


class TextOnly(html.parser.HTMLParser):
    """Keeps the words of a page and drops its markup, scripts and navigation."""

    BLOCKS = frozenset(
        [
            "p",
            "div",
            "li",
            "dt",
            "dd",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "tr",
            "pre",
            "br",
            "table",
            "ul",
            "ol",
            "dl",
            "section",
        ]
    )
    DROPPED = frozenset(["script", "style", "head", "nav", "footer"])

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.dropped = 0
        self.verbatim = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.dropped += tag in self.DROPPED
        self.verbatim += tag == "pre"
        if tag in self.BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.dropped -= tag in self.DROPPED
        self.verbatim -= tag == "pre"
        if tag in self.BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.dropped:
            self.parts.append(data if self.verbatim else re.sub(r"\s+", " ", data))


def text_of_html(page: str) -> str:
    """The readable text of one HTML page."""
    parser = TextOnly()
    parser.feed(page)
    text = re.sub(r"[ \t]+\n", "\n", "".join(parser.parts))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def text_of_rst(page: str) -> str:
    """A reStructuredText page without index entries, targets and role names."""
    page = re.sub(
        r"^\.\. (index|_|highlight|module|sectionauthor|moduleauthor).*\n(?:[ \t]+.*\n)*", "", page, flags=re.MULTILINE
    )
    page = re.sub(r":[a-z:+-]+:`[!~]?([^`<]+?)(?: <[^`>]*>)?`", r"\1", page)
    page = re.sub(r"\n{3,}", "\n\n", page)
    return page.replace("``", "`").strip()


def read_document(path: Path) -> str:
    """The text of one file, whatever its markup and compression."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text = raw.decode("utf-8", "ignore").replace("\r\n", "\n").replace(SEPARATOR, "")
    readers: dict[str, Callable[[str], str]] = {".html": text_of_html, ".txt": text_of_rst}
    return readers.get(path.suffix, str)(text)


def fetch_package(package: str, folder: Path) -> Path:
    """Downloads and unpacks one Debian package; returns the folder it was unpacked to."""
    target = folder / package
    if not target.exists():
        subprocess.run(
            ["/usr/bin/apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package], cwd=folder, check=True
        )
        archive = next(folder.glob(f"{package}_*.deb"))
        subprocess.run(["/usr/bin/dpkg-deb", "-x", str(archive), str(target)], check=True)
    return target


def is_held_out(name: str) -> bool:
    """Whether a document belongs to the split that no model sees."""
    return hashlib.sha256(name.encode()).digest()[0] * 100 // 256 < HELD_OUT_PERCENT


def read_documents(source: Source, root: Path) -> Iterator[tuple[str, str]]:
    """Name and text of each wanted document of one package, in a stable order."""
    for path in sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink()):
        name = f"{source.package}/{path.relative_to(root)}"
        if re.search(source.pattern, name) and not re.search(source.skip, name):
            text = read_document(path)
            if len(text) >= MIN_CHARS:
                yield name, text


def collect(folder: Path) -> dict[str, list[str]]:
    """All documents by split name, such as `code.train`."""
    splits: dict[str, list[str]] = {f"{k}.{s}": [] for k in ("code", "prose") for s in ("train", "held_out")}
    for source in SOURCES:
        for name, text in read_documents(source, fetch_package(source.package, folder)):
            splits[f"{source.kind}.{'held_out' if is_held_out(name) else 'train'}"].append(text)
    return splits


def common_words(texts: Iterable[str]) -> list[str]:
    """The plain words that occur most often."""
    counts = Counter(word for text in texts for word in re.findall(r"\b[a-z]{3,11}\b", text))
    return sorted(word for word, _ in counts.most_common(COMMON_WORDS))


def main() -> None:
    """Writes one file a split, documents separated by a zero byte."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=layout.CORPUS)
    args = parser.parse_args()
    packages = args.out / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    splits = collect(packages)
    layout.VOCABULARY.write_text("\n".join(common_words(splits["prose.train"])) + "\n")
    for split, documents in splits.items():
        (args.out / f"{split}.txt").write_text(SEPARATOR.join(documents), encoding="utf-8")
        print(f"{split}: {len(documents)} documents, {sum(map(len, documents)) / 1e6:.1f} M characters")


if __name__ == "__main__":
    main()
