# The two commands of the README, and what a developer runs. Everything is set up on the first call.
SHELL := /bin/sh
VENV  := .venv
BIN   := $(VENV)/bin
PYTHON ?= python3
export PYTHON
# Images of containers often set it, and then each of the thousands of processes that the tests start compiles all anew, nearly
# half of what starting a daemon takes.
export PYTHONDONTWRITEBYTECODE =

.PHONY: up test test-engines test-gpu test-clients test-faults check lint types layers docs docs-check bench bench-gpu bench-gateway bench-accuracy bench-tuning soak clean

up: $(VENV)/.run
	@$(BIN)/stoker up

# In two processes, since tests of daemons wait more than they compute; a file's tests stay together. WORKERS=0 for one.
# AGAIN=--last-failed asks only what failed the last time.
WORKERS ?= 2
test: $(VENV)/.dev
	@tools/install-test-packages
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(TESTS) $(AGAIN)

# The real vLLM on the processor, LiteLLM with a fallback in front of it, and Prometheus behind it; tuning takes half an hour
# on two cores, the rest 22 minutes (28 one after the other), and to install them four once a machine. vLLM's Python is asked
# for here, so that a machine for which no such vLLM is made says so and goes on.
ENGINES ?= tests/with_vllm
test-engines: $(VENV)/.dev
	@vllm=$$(tools/make-vllm) && peers=$$(tools/make-peers litellm) || exit 1; \
	[ -x "$$peers/litellm" ] && litellm="$$peers/litellm" || litellm=; \
	[ -z "$$vllm" ] || STOKER_VLLM="$$vllm" STOKER_LITELLM="$$litellm" $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ENGINES) --durations=0 --durations-min=5 $(AGAIN)

# Real SGLang and vLLM on a GPU, from folders into which they were unpacked (SGLANG, VLLM), by hand: each engine on
# cards and cores of its own where there are two; bench-gpu has what is measured for longer (with STOKER_GPU_LOAD_GB=40 the loads
# of docs/measured/gpu.md). GPU_PYTHON is the Python whose torch sees the GPU, and runs the tests too where it has their
# packages (TEST_PYTHON). Results, logs and the page come to build/gpu, build/gpu-long.
GPU_PYTHON ?= python3
TEST_PYTHON ?= $(BIN)/python
GPU_TESTS ?= tests/with_gpu
GPU_PARTS ?=
GPU_OUT = build/gpu
bench-gpu: GPU_PARTS = --long
bench-gpu: GPU_OUT = build/gpu-long
test-gpu bench-gpu:
	@[ "$(TEST_PYTHON)" != "$(BIN)/python" ] || $(MAKE) $(VENV)/.dev
	@STOKER_SGLANG_SITE="$(SGLANG)" STOKER_VLLM_SITE="$(VLLM)" STOKER_GPU_PYTHON="$(GPU_PYTHON)" \
	    $(TEST_PYTHON) -m tools.gpu_tests $(GPU_PARTS) --out $(GPU_OUT) $(GPU_TESTS) $(AGAIN); failed=$$?; \
	$(TEST_PYTHON) -m benchmarks.gpu.page $(GPU_OUT); exit $$failed

# Large clients: LiteLLM, npm's openai, MCP's inspector, Schemathesis, what `export` writes by Ray's models and Kubernetes'
# schemas, and Open WebUI in a real Chromium, where there is one; four
# minutes, and five more to install them once a machine (3.4 GB).
test-clients: $(VENV)/.dev
	@clients=$$(tools/make-clients clients) && clusters=$$(tools/make-clients clusters) && \
	webui=$$(tools/make-clients open-webui) || exit 1; \
	STOKER_CLIENTS="$$clients" STOKER_CLUSTERS="$$clusters" STOKER_OPEN_WEBUI="$$webui" \
	    $(BIN)/python -m pytest tests/with_clients tests/with_clusters tests/with_webui

# Kills the daemon or its engine with -9 at random moments, plays random sequences of verbs and kills, lets engines of four
# kinds eat memory, and sends bent requests; twenty minutes.
FAULTS ?= 200
SEQUENCES ?= 300
EATERS ?= 50
FUZZ ?= 100000
test-faults: $(VENV)/.dev
	STOKER_FAULTS=$(FAULTS) STOKER_SEQUENCES=$(SEQUENCES) STOKER_EATERS=$(EATERS) STOKER_FUZZ=$(FUZZ) \
	    $(BIN)/python -m pytest -s tests/faults tests/supervise/test_memory_trials.py tests/gateway/test_fuzz.py $(AGAIN)

check: lint types layers docs-check

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

docs-check: $(VENV)/.dev
	$(BIN)/python tools/make_docs.py --check

docs: $(VENV)/.dev
	$(BIN)/python tools/make_docs.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/first_light.py

# The gateway beside its peers: speed (nothing else should run meanwhile; half an hour), then manners. apt-get install nginx
# haproxy caddy first; those from PyPI are made once a machine, in the user's cache folder.
bench-gateway: $(VENV)/.dev
	@PATH="$$(tools/make-peers):$$PATH"; export PATH; \
	$(BIN)/python -m benchmarks.gateway --write docs/measured/gateway.md && \
	$(BIN)/python -m benchmarks.gateway.behaviour --write docs/measured/gateway.md

# How truly `stoker bench` measures, beside the peers in TOOLS ("--tool llama-benchy=/opt/lb/bin/llama-benchy ..." and a
# --tokenizer folder; --repeats 3 for the spread, --lanes 4 for four scenes at once where there are 16 cores); nothing else
# should run meanwhile. Ours alone takes five minutes.
TOOLS ?=
bench-accuracy: $(VENV)/.dev
	$(BIN)/python -m benchmarks.bench_accuracy --write docs/measured/bench.md $(TOOLS)

# Tuning beside a sweep of everything, five seeds on code and on prose; nothing else should run meanwhile; an hour, or with LANES=5
# on ten quiet cores the fifth of it. RESUME=--resume goes on where it was.
LANES ?= 1
bench-tuning: $(VENV)/.dev
	$(BIN)/python -m benchmarks.tuning --lanes $(LANES) $(RESUME) --write docs/measured/tuning.md

# An hour of streams, departures and switches; nothing may be wrong, lost or leaked. MINUTES=3 for a try.
MINUTES ?= 60
soak: $(VENV)/.dev
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES) --streams 256 --write docs/measured/gateway.md

clean:
	rm -rf $(VENV) build dist

# The environment is made again when the lock file or the project file changes.
$(VENV)/.run: lock/run.txt pyproject.toml
	@tools/make-environment run

$(VENV)/.dev: lock/dev.txt lock/run.txt pyproject.toml
	@tools/make-environment dev
