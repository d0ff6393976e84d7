# Each command sets up what it needs in .venv, from a fresh clone: make run, make test, make bench, make lint.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
TORCHX_0_7 := $(VENV)/torchx-0.7
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# pytest-xdist's workers: end-to-end tests mostly wait, so a small machine takes more workers than it has cores.
WORKERS ?= 4

.DEFAULT_GOAL := help
.PHONY: help run test bench lint format examples clean

help:
	@echo "make run       open the dashboard (ARGS=... are handed on)"
	@echo "make test      every test (ARGS=... are handed to pytest)"
	@echo "make lint      ruff, the type checker, the import rules"
	@echo "make bench     the benchmarks"
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

# The release before, which tests/interop drives as a process of its own: its dependencies would undo ours.
$(TORCHX_0_7)/.installed: | $(VENV)/.test
	@echo "Installing torchx 0.7.0 for tests/interop"
	@$(PYTHON) -m venv $(TORCHX_0_7)
	@$(TORCHX_0_7)/bin/python -m pip --disable-pip-version-check --quiet install 'torchx==0.7.0' kubernetes 2>/dev/null || echo "torchx 0.7.0 is not to be had here: what tests it will skip"
	@touch $@

$(VENV)/.lint: pyproject.toml $(VENV)/.test
	@echo "Installing the lint tools"
	@$(PIP) install --editable '.[lint]'
	@mkdir -p .typecheck && ln -sfn .. .typecheck/torchx_tui
	@touch $@

run: $(VENV)/.run
	@$(BIN)/torchx-tui $(ARGS)

test: $(VENV)/.test $(TORCHX_0_7)/.installed
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) $(ARGS)

bench: $(VENV)/.test
	@$(BIN)/python -m benchmarks $(ARGS)

lint: $(VENV)/.lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports

format: $(VENV)/.lint
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

examples: $(VENV)/.run
	@$(PIP) install --editable '.[examples]'

clean:
	rm -rf $(VENV) build .typecheck *.egg-info
