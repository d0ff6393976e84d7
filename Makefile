# Each command sets up what it needs in .venv, from a fresh clone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# pytest-xdist's workers. End-to-end tests mostly wait, so even a small machine runs more workers than it has cores. Idle
# workers take tests from others (worksteal), so that long tests run in parallel.
WORKERS ?= 6

.DEFAULT_GOAL := help
.PHONY: help run check test test-all soak oracle bench lint format examples clean services-up services-down

help:
	@echo "make run       open the dashboard (ARGS="..." passes arguments)"
	@echo "make check     lint, and run the tests of what differs from main"
	@echo "make test      run the tests that take minutes (ARGS="..." passes arguments to pytest)"
	@echo "make test-all  run all tests"
	@echo "make soak      send random keys and inputs for minutes"
	@echo "make oracle    compare all cases with TorchX, and write docs/reference/compatibility.md"
	@echo "make lint      run ruff, the type checker and the import rules"
	@echo "make bench     run the benchmarks (SCALE=0.1 for smaller ones)"
	@echo "make services-up    start Docker, Kubernetes and Slurm for the tests (root, Debian; SERVICES="docker slurm" SLURM_RELEASE=24.11)"
	@echo "make services-down  stop these services"
	@echo "make examples  install torch, scikit-learn, transformers and lightning for examples/"

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
	@$(PIP) install --editable '.[interop]' 2>/dev/null || echo "torchx-nightly is not available: tests/interop will be skipped"
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

# 200 examples of each Hypothesis test instead of 20.
test-all: $(VENV)/.test
	@HYPOTHESIS_EXAMPLES=200 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal -m "not soak" $(ARGS)

soak: $(VENV)/.test
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) -m soak tests/tui $(ARGS)

# The tests of tests/interop that count cases.
oracle: $(VENV)/.test
	@ALL_ORACLE_CASES=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) \
		tests/interop -k 'oracle or torchx_says'
	@$(BIN)/python docs/reference/compatibility.py

services-up services-down:
	@tests/services/services.sh $(@:services-%=%) $(SERVICES)

bench: $(VENV)/.test
	@SCALE=$(or $(SCALE),1) $(BIN)/python -m benchmarks $(ARGS)

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
