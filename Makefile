# The two commands of the README, and what a developer runs. Everything is set up on the first call.
SHELL := /bin/sh
VENV  := .venv
BIN   := $(VENV)/bin
PYTHON ?= python3
export PYTHON

.PHONY: up test test-faults check lint types layers docs docs-check bench clean

up: $(VENV)/.run
	@$(BIN)/stoker up

test: $(VENV)/.dev
	@tools/install-test-packages
	$(BIN)/python -m pytest $(TESTS)

# Kills the daemon or its engine with -9 at 200 random moments; five minutes.
test-faults: $(VENV)/.dev
	STOKER_FAULTS=200 $(BIN)/python -m pytest -s tests/faults

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

clean:
	rm -rf $(VENV) build dist

# The environment is made again when the lock file or the project file changes.
$(VENV)/.run: lock/run.txt pyproject.toml
	@tools/make-environment run

$(VENV)/.dev: lock/dev.txt lock/run.txt pyproject.toml
	@tools/make-environment dev
