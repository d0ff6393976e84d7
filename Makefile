# Each command sets up what it needs in .venv, from a fresh clone: make run, make test, make bench, make lint.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
TORCHX_0_7 := $(VENV)/torchx-0.7
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# pytest-xdist's workers: end-to-end tests mostly wait, so a small machine takes more workers than it has cores. A worker
# that has none left takes some of another's (worksteal): the long ones stand side by side.
WORKERS ?= 6

.DEFAULT_GOAL := help
.PHONY: help run check test soak oracle mutants bench lint format examples clean services-up services-down

help:
	@echo "make run       open the dashboard (ARGS=... are handed on)"
	@echo "make check     lint, and the tests of what differs from main"
	@echo "make test      every test (ARGS=... are handed to pytest)"
	@echo "make soak      many random keys and inputs, for minutes"
	@echo "make oracle    every case that is held against TorchX, its release 0.7.0 too, counted for docs/reference/compatibility.md"
	@echo "make mutants   which changes of a room's code no test notices (ROOM=specs N=100 SEED=1)"
	@echo "make lint      ruff, the type checker, the import rules"
	@echo "make bench     the benchmarks"
	@echo "make services-up    start Docker, Kubernetes and Slurm for the tests (as root, on Debian; SERVICES=docker for some)"
	@echo "make services-down  stop them"
	@echo "make examples  install what examples/ trains with (torch, scikit-learn)"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "torchx-tui needs Python 3.10 or newer; set PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "This Python has no venv module. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(BIN)/python
	@echo "Installing torchx-tui"
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.run
	@echo "Installing the test tools"
	@$(PIP) install --editable '.[test]'
	@$(PIP) install --editable '.[interop]' 2>/dev/null || echo "torchx-nightly is not to be had here: tests/interop will skip"
	@touch $@

# The release before, which `make oracle` drives as a process of its own: its dependencies would undo ours.
$(TORCHX_0_7)/.installed: | $(VENV)/.test
	@echo "Installing torchx 0.7.0 for make oracle"
	@$(PYTHON) -m venv $(TORCHX_0_7)
	@$(TORCHX_0_7)/bin/python -m pip --disable-pip-version-check --quiet install 'torchx==0.7.0' kubernetes 2>/dev/null || echo "torchx 0.7.0 is not to be had here: what tests it will skip"
	@touch $@

$(VENV)/.lint: pyproject.toml $(VENV)/.test
	@echo "Installing the lint tools"
	@$(PIP) install --editable '.[lint]'
	@mkdir -p .typecheck && ln -sfn .. .typecheck/torchx_tui && ln -sfn ../benchmarks .typecheck/benchmarks
	@touch $@

run: $(VENV)/.run
	@$(BIN)/torchx-tui $(ARGS)

check: $(VENV)/.lint
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet .
	@$(BIN)/pyrefly check --summary=none & types=$$!; $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --changed --quiet; tests=$$?; \
		wait $$types && exit $$tests

test: $(VENV)/.test
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal $(ARGS)

soak: $(VENV)/.test
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) -m soak tests/tui $(ARGS)

# The tests of tests/interop that count cases, or that ask 0.7.0.
oracle: $(VENV)/.test $(TORCHX_0_7)/.installed
	@ALL_ORACLE_CASES=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) \
		tests/interop -k 'oracle or 0.7.0 or torchx_says'
	@$(BIN)/python docs/reference/compatibility.py

services-up services-down:
	@tests/services/services.sh $(@:services-%=%) $(SERVICES)

mutants: $(VENV)/.test
	@$(BIN)/python -W ignore -m tests.mutants $(ROOM) -n $(or $(N),100) --seed $(or $(SEED),1) $(ARGS)

bench: $(VENV)/.test
	@$(BIN)/python -m benchmarks $(ARGS)

lint: $(VENV)/.lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyrefly check --summary=none
	@$(BIN)/lint-imports

format: $(VENV)/.lint
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

examples: $(VENV)/.run
	@$(PIP) install --editable '.[examples]'

clean:
	rm -rf $(VENV) build .typecheck *.egg-info
