"""A real Chromium, asked over its debugging pipe: opens a page, runs scripts in it, and tells what the page asked for."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), "")
END = b"\0"  # between messages


class Page:
    """One open page."""

    def __init__(self, commands: BinaryIO, replies: BinaryIO) -> None:
        self._commands, self._replies, self._number, self._session = commands, replies, 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **what: Any) -> Any:
        """Returns the answer to a command; events that come before it are kept."""
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        self._commands.write(json.dumps({"id": self._number, "method": method, "params": what, **session}).encode() + END)
        self._commands.flush()
        while True:
            told = self._read()
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]

    def _read(self) -> dict[str, Any]:
        letters = bytearray()
        while (letter := self._replies.read(1)) != END:
            assert letter, "Chromium has ended"
            letters += letter
        told: dict[str, Any] = json.loads(letters)
        if "id" not in told:
            self.events.append(told)
        return told

    def open(self, file: Path, **wish: str) -> None:
        """Opens a file as somebody who wishes dark or light would (`scheme`), until all of it is there."""
        self.visit(file.as_uri(), **wish)

    def visit(self, url: str, **wish: str) -> None:
        """Opens an address, as `open` opens a file."""
        features = [{"name": "prefers-color-scheme", "value": wish.get("scheme", "light")}]
        self.ask("Emulation.setEmulatedMedia", features=features)
        self.events.clear()
        self.ask("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._read()

    def run(self, script: str) -> Any:
        """Returns what a script says."""
        told = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def resize(self, width: int, height: int) -> None:
        """Gives the page another size; below 600 it is a phone's."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def click(self, what: str) -> None:
        """Clicks an element with the mouse, where it is; fails where something else lies there."""
        found = self.run(f"""(() => {{ const found = document.querySelector({json.dumps(what)});
            found.scrollIntoView({{ block: "center", behavior: "instant" }});
            const place = found.getBoundingClientRect(), x = place.x + place.width / 2, y = place.y + place.height / 2;
            const hit = document.elementFromPoint(x, y);
            return [x, y, found === hit || found.contains(hit)]; }})()""")
        assert found[2], f"something lies over {what}"
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=found[0], y=found[1], button="left", clickCount=1)

    def type(self, text: str) -> None:
        """Types where the focus is."""
        self.ask("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        """Presses a key by its name and number, as Enter (13) or Tab (9)."""
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code, **({"text": "\r"} if key == "Enter" else {})}
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, **about)

    def requests(self) -> list[str]:
        """Returns the addresses that the page asked for, itself first."""
        sent = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def faults(self) -> list[str]:
        """Returns what went wrong in it: exceptions, and what its policy forbade."""
        odd = ("Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"])[:500] for event in self.events if event["method"] in odd]

    def picture(self) -> bytes:
        """Returns the page as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot")["data"])


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """Runs a Chromium with a profile of its own, and gives one page."""
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()

    def place() -> None:
        """Puts the pipes where Chromium looks for them."""
        os.dup2(theirs_in, 3)
        os.dup2(theirs_out, 4)
        os.set_inheritable(3, True)
        os.set_inheritable(4, True)

    argv = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
            "--disable-background-networking", f"--user-data-dir={folder}"]  # fmt: skip
    with subprocess.Popen(
        argv, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        os.close(theirs_in)
        os.close(theirs_out)
        with os.fdopen(ours_out, "wb") as commands, os.fdopen(ours_in, "rb") as replies:
            try:
                yield Page(commands, replies)
            finally:
                running.kill()
