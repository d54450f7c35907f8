"""Every client: its reader takes what it is told for right, and each fault in its file is found where it stands."""

from __future__ import annotations

import pytest

from stoker.clients import Needs, find, names
from stoker.clients.judge import judge
from stoker.clients.situation import facts_of
from stoker.errors import StokerError, WrongUse
from stoker.records import Finding, GatewayHere, ServedModel
from stoker.rules.compare import Value
from support import fails

URL = "http://127.0.0.1:8700/v1"
KEY_FILE = "/home/me/.local/state/stoker/gateway.key"
SERVED = (ServedModel("qwen3-coder", "coder", 65536, True), ServedModel("small", "small", 4096))
HERE = GatewayHere(URL, KEY_FILE, SERVED)
FILES = {"vibe": "config.toml", "opencode": "opencode.json", "openhands": "run.sh", "open-webui": "webui.env"}
Behind = dict[str, Value]
KEY = "sk-stoker-Zm9vYmFyYmF6cXV4"


def check(
    client: str, text: str, *, file: str = "", here: GatewayHere = HERE, is_open: bool = False,
    ports: dict[int, str] | None = None, behind: Behind | None = None,
) -> list[Finding]:  # fmt: skip
    """Returns the findings on a text; `behind` is what is known of the engine that answers."""
    one, name = find(client), file or FILES.get(client, "file")
    uses = one.read(text, name)
    grounds = [(facts_of(use, here, ports or {}, is_open), (behind or {}) if use.model else {}) for use in uses]
    return list(judge(grounds, client, name))


def ids(found: list[Finding]) -> set[str]:
    """Returns the rules of what is more than a note."""
    return {one.rule for one in found if one.level != "note"}


@pytest.mark.parametrize("name", names())
def test_nothing_is_found_in_what_a_client_is_told(name: str) -> None:
    text = find(name).render(Needs(URL, KEY_FILE, "qwen3-coder", 65536)).text
    assert check(name, text) == []


@pytest.mark.parametrize("name", names())
def test_what_a_client_is_told_names_address_model_and_where_the_key_is(name: str) -> None:
    rendered = find(name).render(Needs(URL, KEY_FILE, "qwen3-coder", None))
    assert "http://127.0.0.1:8700" in rendered.text
    assert "qwen3-coder" in rendered.text
    assert KEY_FILE in rendered.text or "API_KEY" in rendered.text
    assert all(setting.because for setting in rendered.settings)


@pytest.mark.parametrize("name", names())
def test_each_fault_of_an_address_is_found_on_its_line(name: str) -> None:
    text = find(name).render(Needs(URL, KEY_FILE, "qwen3-coder", 65536)).text
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "127.0.0.1:8700" in one)
    [zero] = check(name, text.replace("127.0.0.1:8700", "0.0.0.0:8700"))
    assert (zero.rule, zero.where.rpartition(":")[2]) == ("client-address-zero", str(line))
    [nobody] = check(name, text.replace("127.0.0.1:8700", "127.0.0.1:8000"))
    assert (nobody.rule, "127.0.0.1:8000" in nobody.what) == ("client-port-nobody", True)


@pytest.mark.parametrize("name", [name for name in names() if name != "open-webui"])
def test_a_model_that_the_gateway_does_not_have_is_named_beside_those_it_has(name: str) -> None:
    [found] = check(name, find(name).render(Needs(URL, KEY_FILE, "gpt-4o", 65536)).text)
    assert found.rule == "client-model-unknown"
    assert "`gpt-4o`; the gateway has `qwen3-coder`, `small`" in found.what


@pytest.mark.parametrize("name", names())
def test_without_a_daemon_nothing_is_said_of_models(name: str) -> None:
    text = find(name).render(Needs(URL, KEY_FILE, "gpt-4o", 65536)).text
    assert check(name, text, here=GatewayHere(URL, KEY_FILE, None)) == []


@pytest.mark.parametrize("name", [name for name in names() if name not in ("mistralai", "curl")])
def test_an_address_without_v1_is_found(name: str) -> None:
    text = find(name).render(Needs(URL, KEY_FILE, "qwen3-coder", 65536)).text
    assert ids(check(name, text.replace("8700/v1", "8700"))) == {"client-base-without-v1"}


def test_mistrals_library_wants_the_address_without_v1() -> None:
    text = 'client = Mistral(api_key=key, server_url="http://127.0.0.1:8700/v1")'
    assert ids(check("mistralai", text)) == {"mistralai-server-url-with-v1"}


@pytest.mark.parametrize(("who", "rule"), [("engine", "client-port-engine"), ("other", "client-port-other")])
def test_another_listener_is_told_from_nobody(who: str, rule: str) -> None:
    text = 'client = OpenAI(base_url="http://localhost:30000/v1")'
    assert [one.rule for one in check("openai", text, ports={30000: who})] == [rule]


def test_a_service_on_the_internet_is_none_of_our_business() -> None:
    assert check("openai", 'client = OpenAI(base_url="https://api.example.com", model="gpt-4o")') == []


SCRIPT = """\
curl http://127.0.0.1:8700/health
curl -H "Authorization: Bearer $OTHER" https://api.example.com/v1/chat/completions -d '{{"model": "gpt-5"}}'
curl "http://127.0.0.1:8700/v1/models?all=1"
curl http://127.0.0.1:8700/v1/chat/completions \\
  -H "Authorization: Bearer $KEY" -d '{{"model": "{model}"}}'
"""


def test_a_script_of_curls_is_judged_by_what_each_asks() -> None:
    assert check("curl", SCRIPT.format(model="qwen3-coder")) == []
    assert ids(check("curl", SCRIPT.format(model="gpt-5"))) == {"client-model-unknown"}


KEYS = {
    "litellm": "model_list:\n- model_name: a\n  litellm_params: {{model: x/qwen3-coder, api_base: {url}, api_key: {key}}}\n",
    "continue": "models:\n- {{name: a, model: qwen3-coder, apiBase: '{url}', apiKey: {key}, capabilities: [tool_use]}}\n",
    "opencode": '{{"provider": {{"x": {{"npm": "y", "options": {{"baseURL": "{url}", "apiKey": "{key}"}},'
    ' "models": {{"qwen3-coder": {{}}}}}}}}}}',
    "open-webui": "OPENAI_API_BASE_URL={url}\nOPENAI_API_KEY={key}\nENABLE_PERSISTENT_CONFIG=false\n",
    "openhands": "LLM_BASE_URL={url}\nLLM_MODEL=x/qwen3-coder\nLLM_API_KEY={key}\nAGENT_ENABLE_PROMPT_EXTENSIONS=false\n",
    "openai": 'OpenAI(base_url="{url}", api_key="{key}")',
    "mistralai": 'Mistral(server_url="http://127.0.0.1:8700", api_key="{key}")  # {url}',
    "curl": "curl -H 'authorization: Bearer {key}' {url}/chat/completions -d '{{\"model\": \"qwen3-coder\"}}'",
    "vibe": '[[providers]]\nname = "s"\napi_base = "{url}"\napi_key_env_var = "{key}"\n'
    '[[models]]\nname = "qwen3-coder"\nprovider = "s"\n',
}  # fmt: skip


@pytest.mark.parametrize("name", names())
def test_a_key_in_the_file_is_found_and_never_shown(name: str) -> None:
    text = KEYS[name].format(url=URL, key=KEY)
    [private], [opened] = check(name, text), check(name, text, is_open=True)
    assert (private.rule, private.level) == ("client-key-text", "note")
    assert (opened.rule, opened.level, opened.severity) == ("client-key-open", "warn", "security")
    assert KEY not in str(private) + str(opened)


@pytest.mark.parametrize(
    "key", ["EMPTY", "none", "not-used", "os.environ/STOKER_API_KEY", "{env:SOME_API_KEY}", "${SOME_API_KEY}"]
)
def test_a_reference_or_no_key_at_all_is_no_key_in_the_file(key: str) -> None:
    text = KEYS["continue"].format(url=URL, key=f"'{key}'")
    assert check("continue", text, is_open=True) == []


LITELLM = """\
model_list:
  - model_name: coder
    litellm_params:
      model: hosted_vllm/qwen3-coder
      api_base: http://127.0.0.1:8700/v1
      api_key: ${STOKER_API_KEY}
router_settings:
  num_retries: 2
litellm_settings:
  drop_params: true
  fallbacks: [{"coder": ["cloud"]}]
"""


def test_what_litellm_does_behind_its_clients_backs_is_found_line_by_line() -> None:
    found = {one.rule: one for one in check("litellm", LITELLM)}
    lines = {rule: int(one.where.rpartition(":")[2]) for rule, one in found.items()}
    assert lines == {
        "litellm-shell-variable": 6, "client-retries-single-engine": 8, "client-drop-params": 10,
        "router-silent-failover": 11,
    }  # fmt: skip
    assert all(one.level == "warn" for one in found.values())


@pytest.mark.parametrize("name", ["vibe", "opencode"])
def test_an_agent_whose_first_request_does_not_fit_is_told_so(name: str) -> None:
    [found] = check(name, find(name).render(Needs(URL, KEY_FILE, "small", 4096)).text)
    assert (found.rule, "`small` has 4,096 tokens" in found.what) == ("agent-prompt-14k-tokens", True)


def test_a_parser_that_the_server_lacks_is_found_where_the_file_names_the_model() -> None:
    text = find("opencode").render(Needs(URL, KEY_FILE, "qwen3-coder", 65536)).text
    vllm: Behind = {"engine": "vllm", "tools": True, "model": ("qwen3-coder",)}
    [found] = check("opencode", text, behind=vllm)
    assert found.rule == "vllm-auto-tool-choice-400"
    assert "qwen3-coder" in text.splitlines()[int(found.where.rpartition(":")[2]) - 1]
    [half] = check("opencode", text, behind={**vllm, "--tool-call-parser": "qwen3_coder"})
    assert half.rule == "vllm-tool-parser-not-enabled"
    assert check("opencode", text, behind={**vllm, "--tool-call-parser": "x", "--enable-auto-tool-choice": True}) == []
    assert ids(check("opencode", text, behind={**vllm, "engine": "sglang"})) == {"sglang-tool-parser-missing"}
    curl = find("curl").render(Needs(URL, KEY_FILE, "small", None)).text
    assert check("curl", curl, behind={"engine": "vllm", "tools": False}) == []


OPENHANDS = '[llm]\nmodel = "openai/small"\nbase_url = "http://127.0.0.1:8700/v1"\n'


def test_openhands_needs_its_switch_or_the_gateways_filter_for_mistrals_models() -> None:
    mistral: Behind = {"engine": "llamacpp", "model": ("mistral-small-4-119b",)}
    [found] = check("openhands", OPENHANDS, file="config.toml", behind={**mistral, "filters": ""})
    assert found.rule == "openhands-alternating-roles"
    off = OPENHANDS + "[agent]\nenable_prompt_extensions = false\n"
    assert check("openhands", off, file="config.toml", behind={**mistral, "filters": ""}) == []
    assert check("openhands", OPENHANDS, file="config.toml", behind={**mistral, "filters": "cap-tokens=9 merge-turns"}) == []
    assert (
        check("openhands", OPENHANDS, file="config.toml", behind={"engine": "llamacpp", "model": ("qwen3",), "filters": ""})
        == []
    )


def test_open_webuis_container_on_the_hosts_network_is_seen_by_everybody() -> None:
    run = (
        "docker run -d --name open-webui --network=host -e OPENAI_API_BASE_URL=http://localhost:8700/v1 \\\n"
        "  -e OPENAI_API_KEY=none -v open-webui:/app/backend/data ghcr.io/open-webui/open-webui:main"
    )
    found = check("open-webui", run)
    assert [one.rule for one in found] == ["openwebui-listens-everywhere", "openwebui-settings-kept"]
    assert ids(check("open-webui", run.replace("--name", "-e HOST=127.0.0.1 --name"))) == set()
    assert ids(check("open-webui", "services:\n  webui:\n    network_mode: host\n")) == {"openwebui-listens-everywhere"}


OPENCODE = """\
{
  // the house's own server
  "provider": {
    "stoker": {
      "options": {"baseURL": "http://127.0.0.1:8700/v1", "apiKey": "{env:STOKER_API_KEY}"}, /* a comment */
\t\t\t"models": {"qwen3-coder": {}, "small": {"id": "gpt-4o"},},
    },
  },
  "model": "stoker/qwen3-coder",
}
"""


def test_opencodes_comments_commas_and_tabs_are_read_and_its_faults_have_lines() -> None:
    found = {one.rule: one.where for one in check("opencode", OPENCODE)}
    assert found == {
        "opencode-titles-in-the-cloud": "opencode.json:9", "opencode-package-unsaid": "opencode.json:4",
        "client-model-unknown": "opencode.json:6",
    }  # fmt: skip


def test_opencodes_second_form_is_read_too() -> None:
    text = (
        '{"providers": {"s": {"package": "aisdk:@ai-sdk/openai-compatible", "settings": {"baseURL": "http://0.0.0.0:8700/v1"},'
        ' "models": {"qwen3-coder": {}}}}}'
    )
    assert ids(check("opencode", text)) == {"client-address-zero"}


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("vibe", "[[mcp_servers"),
        ("litellm", "model_list: ["),
        ("opencode", "{"),
        ("continue", "models: {"),
        ("openhands", "= 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_said_to_be_so(client: str, text: str) -> None:
    with pytest.raises(StokerError) as caught:
        find(client).read(text, "config.toml")
    assert "config.toml is not valid" in str(caught.value)


@pytest.mark.parametrize("client", names())
@pytest.mark.parametrize(
    "text", ["", "[]", "null", "models: 3", '{"provider": 3}', "mcp_servers = 3", "a = 1", "\x1b[31m = 1\n"]
)
def test_odd_files_are_read_or_refused_but_never_fail(client: str, text: str) -> None:
    try:
        assert ids(check(client, text)) == set()
    except StokerError as problem:
        assert "is not valid" in problem.what


def test_a_client_that_nobody_knows_is_answered_with_those_that_are() -> None:
    with fails(WrongUse, "no client called `litelm`", "did you mean `litellm`", "open-webui"):
        find("litelm")
    with fails(WrongUse, "no client called `../x`"):
        find("../x")
