"""A small real server of the Model Context Protocol over its input and output; it can be slow, greedy, odd or deaf.

mcp_server.py LOG NAME [--slow SECONDS] [--child] [--chatty] [--deaf] [--silent] [--flood] [--dies] [--tools N]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PAGE = 50


def main() -> None:
    """Serves until its input ends, or as long as nobody ends it."""
    asked = _asked()
    with Path(asked.log).open("a") as log:
        log.write(f"{asked.name} {os.getpid()} {' '.join(sorted(os.environ))}\n")
    if asked.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if asked.child:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    time.sleep(asked.slow)  # the work that a slow server has: it imports, it connects
    if asked.dies:
        sys.exit("no such bank account")
    if asked.flood:
        sys.stderr.write("x" * 10_000_000)
    if asked.chatty:
        _say("Welcome to the server!")
        _say(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hello"}}))
        _say(json.dumps({"jsonrpc": "2.0", "id": 77, "method": "ping"}))
    for line in sys.stdin:
        message = json.loads(line)
        if asked.silent or "id" not in message or "method" not in message:
            continue
        _say(json.dumps({"jsonrpc": "2.0", "id": message["id"], **_answer(message, asked)}))
    while asked.deaf:
        time.sleep(1)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("log")
    parser.add_argument("name")
    parser.add_argument("--slow", type=float, default=0)
    parser.add_argument("--tools", type=int, default=2)
    for switch in ("child", "chatty", "deaf", "silent", "flood", "dies"):
        parser.add_argument(f"--{switch}", action="store_true")
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _answer(message: dict[str, Any], asked: argparse.Namespace) -> dict[str, Any]:
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        about = {"name": asked.name, "version": "1"}
        return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}}
    if method == "tools/list":
        first = int(params.get("cursor") or 0)
        shown = range(first, min(first + PAGE, asked.tools))
        tools = [{"name": f"tool_{one}", "inputSchema": {"type": "object", "properties": {}}} for one in shown]
        more = {"nextCursor": str(first + PAGE)} if first + PAGE < asked.tools else {}
        return {"result": {"tools": tools, **more}}
    return {"error": {"code": -32601, "message": f"there is no {method}"}}


if __name__ == "__main__":
    main()
