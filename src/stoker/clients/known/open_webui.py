"""Open WebUI: environment variables, in an environment file, a compose file, or the command that starts its container."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stoker.clients import Client, Needs, Rendered
from stoker.clients.assigned import code_lines, find_assigned, join_uses
from stoker.records import ClientFact, ClientSetting, ClientUse, Written

URLS, KEYS = ("OPENAI_API_BASE_URL", "OPENAI_API_BASE_URLS"), ("OPENAI_API_KEY", "OPENAI_API_KEYS")
HOST_NETWORK = re.compile(r"--net(?:work)?[= ]host\b|network_mode:\s*[\"']?host\b|^\s*Network=host\b")
LOCAL = ("127.0.0.1", "localhost", "::1")


def read(text: str, name: str) -> tuple[ClientUse, ...]:
    """Returns the addresses with their keys, and who else reaches it."""
    urls = [one for found in find_assigned(text, URLS) for one in _split(found)]
    keys = [one for found in find_assigned(text, KEYS) for one in _split(found)]
    return (*join_uses(urls, keys, []), ClientUse(facts=tuple(_facts(text))))


def _split(found: Written) -> list[Written]:
    """The variables that end in S hold several, with semicolons between."""
    return [Written(value, found.path, found.line) for value in found.value.split(";") if value]


def _facts(text: str) -> Iterator[ClientFact]:
    network = next((number for number, line in code_lines(text) if HOST_NETWORK.search(line)), 0)
    hosts = find_assigned(text, ["HOST"])
    if network and not any(one.value in LOCAL for one in hosts):
        yield ClientFact("client_sets", "all addresses", network, "the host's network without `HOST=127.0.0.1`")
    kept = [one for one in find_assigned(text, ["ENABLE_PERSISTENT_CONFIG"]) if one.value.lower() == "false"]
    urls = find_assigned(text, URLS)
    if urls and not kept:
        yield ClientFact("client_lacks", "fresh settings", urls[0].line, f"`{urls[0].path}`")


def render(needs: Needs) -> Rendered:
    """Returns an environment file, below comments on how it is used."""
    text = (
        "# open-webui.env, mode 0600. The key comes from the gateway's file and stands in no command line:\n"
        f'#   OPENAI_API_KEY="$(cat {needs.key_file})" docker run -d --name open-webui --network host \\\n'
        "#     --env-file open-webui.env -e OPENAI_API_KEY -v open-webui:/app/backend/data \\\n"
        "#     ghcr.io/open-webui/open-webui:main\n"
        f"OPENAI_API_BASE_URL={needs.url}\nENABLE_PERSISTENT_CONFIG=false\nENABLE_OLLAMA_API=false\nHOST=127.0.0.1\nPORT=8080\n"
        f"TASK_MODEL_EXTERNAL={needs.model}\nENABLE_TITLE_GENERATION=false\nENABLE_TAGS_GENERATION=false\n"
        "ENABLE_FOLLOW_UP_GENERATION=false\n"
    )
    settings = (
        ClientSetting("--network host", "", "the gateway listens on loopback, which no other network reaches"),
        ClientSetting("HOST", "127.0.0.1", "on the host's network it otherwise listens on all addresses, port 8080"),
        ClientSetting("ENABLE_PERSISTENT_CONFIG", "false", "address and key are otherwise kept in its database at the first "
                      "start, and what you change here later is passed over"),
        ClientSetting("ENABLE_OLLAMA_API", "false", "it otherwise asks for an Ollama that is not there, and waits for it"),
        ClientSetting("ENABLE_TITLE_GENERATION, and the two below", "false",
                      "each chat otherwise asks the same engine thrice more"),
    )  # fmt: skip
    return Rendered("open-webui.env", text, settings)


CLIENT = Client("open-webui", "Open WebUI", read, render, offers_tools=True)
