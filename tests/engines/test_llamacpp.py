"""llama.cpp's words, compared whole, and what its real failures are said to mean."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import gguf
import pytest

from stoker.diagnose.sentence import in_one_sentence
from stoker.embedded import parse_words
from stoker.engines.llamacpp import ENGINE
from stoker.facts.machine.ports import pick_free_port
from stoker.flows.diagnose import Known, diagnose_source
from stoker.plan.choose import choose_plan
from stoker.records import MIB
from support import DEMO, make_model, make_wish, write_gguf

EMBEDDED = (sys.executable, "-P", "-m", "stoker.embedded")
METRICS = Path(__file__).parent / "logs" / "llamacpp-b11549-draft.metrics.txt"


def words_of(wish_changes: dict[str, object], draft: bool = False) -> str:
    model = make_model()
    wish = make_wish(context=1024, parallel=2, **wish_changes)
    drafter = make_model(name="Draft", path="/models/draft.gguf", file_bytes=90 * MIB) if draft else None
    spec = ENGINE.render(choose_plan(wish, model, drafter), 8123)
    if wish.server is None:
        assert spec.argv[:4] == EMBEDDED
    return " ".join(spec.argv[4:] if wish.server is None else spec.argv)


COMMON = "--model /models/small.gguf --alias small --host 127.0.0.1 --port 8123 --metrics --jinja --no-webui"
SIZED = f"{COMMON} --parallel 2 --ctx-size 2048"


@pytest.mark.parametrize(
    ("wish", "draft", "words"),
    [
        ({}, False, f"{COMMON} --parallel 2 --ctx-size 2048"),
        ({"server": "/opt/llama-server"}, False, f"/opt/llama-server {COMMON} --parallel 2 --ctx-size 2048"),
        (
            {"gpu_layers": 99, "threads": 8, "reasoning": "off"},
            False,
            f"{COMMON} --parallel 2 --ctx-size 2048 --threads 8 --n-gpu-layers 99 --reasoning off",
        ),
        ({"reasoning": "on"}, False, f"{COMMON} --parallel 2 --ctx-size 2048 --reasoning on"),
        ({"speculation": "ngram"}, False, f"{COMMON} --parallel 2 --ctx-size 2048 --spec-type ngram-simple"),
        (
            {"speculation": "draft", "draft": "d", "draft_tokens": 5},
            True,
            f"{SIZED} --spec-type draft-simple --spec-draft-model /models/draft.gguf --spec-draft-n-max 5",
        ),
    ],
    ids=["embedded", "server", "hardware", "reasoning", "ngram", "draft"],
)
def test_a_plan_becomes_exactly_these_words(wish: dict[str, object], draft: bool, words: str) -> None:
    assert words_of(wish, draft) == words


def test_the_embedded_server_understands_every_word_that_a_plan_can_hold() -> None:
    everything: dict[str, object] = {"gpu_layers": 9, "threads": 2, "reasoning": "off", "speculation": "draft", "draft": "d"}
    options = parse_words(words_of(everything, draft=True).split())
    assert (options.model, options.alias, options.port, options.ctx_size) == ("/models/small.gguf", "small", 8123, 2048)
    assert (options.parallel, options.n_gpu_layers, options.threads, options.reasoning) == (2, 9, 2, "off")
    assert (options.spec_type, options.spec_draft_model, options.spec_draft_n_max) == (
        "draft-simple",
        "/models/draft.gguf",
        3,
    )
    assert options.metrics
    assert options.jinja
    assert options.no_webui


def test_the_key_travels_in_the_environment_and_a_crash_starts_no_debugger() -> None:
    spec = ENGINE.render(choose_plan(make_wish(), make_model()), 1)
    assert spec.key_variable == "LLAMA_API_KEY"
    assert dict(spec.environment) == {"GGML_NO_BACKTRACE": "1"}


def test_only_an_external_server_is_asked_for_its_version() -> None:
    assert ENGINE.version_argv(None) is None
    assert ENGINE.version_argv("/opt/llama-server") == ("/opt/llama-server", "--version")
    assert ENGINE.parse_version("register_backend: CPU\nversion: 11549 (abc1234)\nbuilt with cc\n") == "11549"


def test_the_metrics_that_we_name_are_those_that_the_server_gives() -> None:
    given = {line.split("{")[0].split()[0] for line in METRICS.read_text().splitlines() if not line.startswith("#") and line}
    assert set(ENGINE.metrics.values()) <= given


def run_to_its_end(folder: Path, model: Path, *more: str, port: int | None = None) -> list[str]:
    """Starts the real embedded server, which must fail, and returns what it printed to its log."""
    log = folder / "engine.log"
    words = (
        "--model",
        str(model),
        "--alias",
        "x",
        "--host",
        "127.0.0.1",
        "--port",
        str(port or pick_free_port("127.0.0.1")),
    )
    with log.open("wb") as out:
        done = subprocess.run(
            (*EMBEDDED, *words, "--metrics", "--jinja", "--no-webui", "--ctx-size", "256", "--parallel", "1", *more),
            stdout=out, stderr=out, timeout=60, env={"GGML_NO_BACKTRACE": "1"}, check=False,
        )  # fmt: skip
    lines = log.read_text(errors="replace").splitlines()
    assert done.returncode not in (0, 2), lines
    return lines


def cut_half(file: Path) -> None:
    file.write_bytes(DEMO.read_bytes()[: DEMO.stat().st_size // 2])


def cut_header(file: Path) -> None:
    file.write_bytes(DEMO.read_bytes()[:5000])


def write_other_file(file: Path) -> None:
    file.write_bytes(b"<html>not found</html>" * 50)


def write_martian(file: Path) -> None:
    write_gguf(file, architecture="martian", pairs={"martian.context_length": (128, gguf.GGUFValueType.UINT32)})


def write_without_shape(file: Path) -> None:
    write_gguf(file, pairs={"llama.context_length": (128, gguf.GGUFValueType.UINT32)})


def rename_a_tensor(file: Path) -> None:
    file.write_bytes(DEMO.read_bytes().replace(b"blk.0.attn_q.weight", b"xlk.0.attn_q.weight", 1))


def repeat_a_token(file: Path) -> None:
    raw = bytearray(DEMO.read_bytes())
    tokens = gguf.GGUFReader(str(DEMO)).fields["tokenizer.ggml.tokens"]
    one, other = (bytes(tokens.parts[tokens.data[number]]) for number in find_same_length(tokens))
    place = raw.index(len(one).to_bytes(8, "little") + one)
    raw[place + 8 : place + 8 + len(one)] = other
    file.write_bytes(raw)


def find_same_length(tokens: gguf.ReaderField) -> tuple[int, int]:
    first = 1000
    length = len(tokens.parts[tokens.data[first]])
    return first, next(n for n in range(first + 1, 4000) if len(tokens.parts[tokens.data[n]]) == length)


def told_of(lines: list[str]) -> str:
    return in_one_sentence(diagnose_source(io.BytesIO("\n".join(lines).encode()), "llama", Known({})))


@pytest.mark.parametrize(
    ("spoil", "meaning"),
    [
        (cut_half, "(certain; rule gguf-cut-short)"),
        (cut_header, "(certain; rule gguf-cut-short)"),
        (Path.touch, "(certain; rule gguf-cut-short)"),
        (write_other_file, "(certain; rule gguf-not-one)"),
        (write_martian, "(certain; rule gguf-architecture-unknown)"),
        (write_without_shape, "key not found in model: llama.embedding_length"),
        (rename_a_tensor, "(certain; rule gguf-tensors-do-not-fit)"),
        (repeat_a_token, "id_to_token.size()"),
        (lambda file: None, "(certain; rule gguf-no-such-file)"),
    ],
    ids=["half", "header", "empty", "html", "martian", "shapeless", "tensor", "token", "missing"],
)
def test_a_real_servers_death_over_a_broken_model_is_explained(
    tmp_path: Path, spoil: Callable[[Path], None], meaning: str
) -> None:
    spoil(tmp_path / "model.gguf")
    lines = run_to_its_end(tmp_path, tmp_path / "model.gguf")
    assert meaning in told_of(lines), lines


def test_a_real_servers_death_over_a_taken_port_is_explained(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        lines = run_to_its_end(tmp_path, DEMO, port=taken.getsockname()[1])
    assert told_of(lines) == "The engine's port is taken by another program (certain; rule port-taken)"


def test_a_real_servers_death_over_a_missing_draft_is_explained(tmp_path: Path) -> None:
    missing = tmp_path / "draft.gguf"
    lines = run_to_its_end(tmp_path, DEMO, "--spec-type", "draft-simple", "--spec-draft-model", str(missing))
    assert "rule gguf-no-such-file" in told_of(lines)


def test_the_last_lines_of_a_dying_server_are_not_lost(tmp_path: Path) -> None:
    cut_header(tmp_path / "model.gguf")
    lines = run_to_its_end(tmp_path, tmp_path / "model.gguf")
    assert any("exiting due to model loading error" in line for line in lines)
    assert any("the embedded server did not start:" in line for line in lines)


def test_a_word_that_the_embedded_server_does_not_know_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_words(["--model", "a", "--colour", "red"])
    assert caught.value.code == 2
    assert "--colour" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("0.1 E ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 99", "host-out-of-memory"),
        ("0.1 E llama_init_from_model: failed to initialize the context: std::bad_alloc", "host-out-of-memory"),
        ("0.1 E ggml_backend_cuda: allocating 9 MiB on device 0: cudaMalloc failed: out of memory", "cuda-out-of-memory"),
        ("0.1 E CUDA error: out of memory", "cuda-out-of-memory"),
        ("0.1 E CUDA error: an illegal memory access was encountered", "an illegal memory access"),
        ("0.2 E spec common_specu: the target and draft vocabs are not compatible", "gguf-draft-vocabulary"),
    ],
)  # fmt: skip
def test_each_sign_has_its_meaning(line: str, meaning: str) -> None:
    assert meaning in told_of(["0.0 I llama_model_loader: loading", line, "0.9 I cleaning up"])


def test_the_cause_is_told_and_not_what_followed_from_it() -> None:
    lines = [
        "E llama_model_load: error loading model: unknown model architecture: 'martian'",
        "E llama_model_load_from_file_impl: failed to load model",
        "the embedded server did not start: Failed to init server",
    ]
    assert "rule gguf-architecture-unknown" in told_of(lines)
