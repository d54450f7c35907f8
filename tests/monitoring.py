"""A real Prometheus and a real Alertmanager beside a Stoker of a test's own, and the webhook at which alerts arrive."""

from __future__ import annotations

import contextlib
import http.server
import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import httpx

from home import Home, wait_for
from real_tools import need
from stoker.facts.machine.ports import pick_free_port

Alert = dict[str, Any]
PROMPTS = ("Write a function that adds two numbers.", "Write a function that counts vowels.", "Who are you?")


class Webhook:
    """Takes what Alertmanager sends; `alerts` are those that came, the oldest first."""

    def __init__(self) -> None:
        alerts = self.alerts = queue.SimpleQueue[Alert]()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                for alert in body["alerts"]:
                    alerts.put(alert)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/alert"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Monitoring:
    """What `stoker install prometheus` writes, run by the real programs, every window `scale` times as long."""

    def __init__(self, home: Home, scale: float, *words: str) -> None:
        self.folder = home.folder / "monitoring"
        self.webhook = Webhook()
        self._ports = {name: pick_free_port("127.0.0.1") for name in ("prometheus", "prometheus-alertmanager")}
        gateway = home.daemon.url.removeprefix("http://")
        home.run(
            "install", "prometheus", "--to", str(self.folder), "--gateway", gateway, "--webhook", self.webhook.url,
            "--alertmanager", self._address("prometheus-alertmanager"), "--scale", str(scale), *words,
        )  # fmt: skip
        shutil.copy(home.paths.key_file, self.folder / "stoker.key")
        self._running = [
            self._start("prometheus", "prometheus.yml", "--storage.tsdb.path"),
            self._start("prometheus-alertmanager", "alertmanager.yml", "--storage.path", "--cluster.listen-address="),
        ]

    def _address(self, program: str) -> str:
        return f"127.0.0.1:{self._ports[program]}"

    def _start(self, program: str, config: str, storage: str, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{program}.log").open("wb") as log:
            return subprocess.Popen(
                [
                    need(program), f"--config.file={config}", f"{storage}={self.folder / program}",
                    f"--web.listen-address={self._address(program)}", *words,
                ],
                cwd=self.folder, stdout=log, stderr=log,
            )  # fmt: skip

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """Returns what Prometheus answers; nothing while it does not listen yet, or listens and still starts (503)."""
        try:
            reply = httpx.get(
                f"http://{self._address('prometheus')}/api/v1/query", params={"query": expression}, trust_env=False
            )
        except httpx.TransportError:
            return []
        if reply.status_code == 503:
            return []
        assert reply.status_code == 200, reply.text
        found: list[dict[str, Any]] = reply.json()["data"]["result"]
        return found

    def value(self, expression: str) -> float | None:
        """Returns the one number that an expression has now."""
        found = self.ask(expression)
        return float(found[0]["value"][1]) if found else None

    def await_alert(self, name: str, status: str, limit_s: float) -> Alert:
        """Returns the alert of that name and status that came to the webhook; others are passed over."""

        def found() -> Alert | None:
            with contextlib.suppress(queue.Empty):
                alert = self.webhook.alerts.get_nowait()
                return alert if (alert["labels"]["alertname"], alert["status"]) == (name, status) else None
            return None

        return wait_for(f"{name} to be {status} at the webhook", found, limit_s)

    def await_alerts(self, name: str, status: str, services: set[str], limit_s: float) -> dict[str, Alert]:
        """Returns the alerts of that name and status about so many services, in whatever order they came to the webhook."""
        told: dict[str, Alert] = {}
        while services - told.keys():
            alert = self.await_alert(name, status, limit_s)
            told[alert["labels"]["service"]] = alert
        return told

    def end(self) -> None:
        """Ends both programs."""
        for one in self._running:
            one.terminate()
            one.wait(20)
        self.webhook.close()


@contextlib.contextmanager
def monitored(home: Home, scale: float, *words: str) -> Iterator[Monitoring]:
    """Runs both programs beside a daemon that is up."""
    one = Monitoring(home, scale, *words)
    try:
        yield one
    finally:
        one.end()


@contextlib.contextmanager
def asking(home: Home, model: str) -> Iterator[None]:
    """Asks a model again and again, one request after the other, whether it answers or not."""
    url, key, over = f"{home.daemon.url}/v1/chat/completions", home.daemon.key, threading.Event()

    def ask() -> None:
        with httpx.Client(trust_env=False, headers={"authorization": f"Bearer {key}"}, timeout=60) as client:
            count = 0
            while not over.is_set():
                count += 1
                body = {
                    "model": model, "max_tokens": 64, "temperature": 0, "stream": True,
                    "messages": [{"role": "user", "content": PROMPTS[count % len(PROMPTS)]}],
                }  # fmt: skip
                with contextlib.suppress(httpx.TransportError):
                    if client.post(url, json=body).status_code != httpx.codes.OK:
                        over.wait(0.2)  # it is being exchanged: no need to ask a thousand times

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
