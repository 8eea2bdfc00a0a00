# Two commands matter: `make demo` (the first paper on built-in data) and `make test`.
# Needed on the machine: Python >= 3.11, git, make. Another interpreter: `make demo PYTHON=/path/to/python3`.

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
INSTALLED := .venv/installed
BENCH := benchmarks/.venv
BENCH_PYTHON ?= python3.11

# The rules of the workflow call plain `python`: it must be the one of the environment.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: demo test lint format requirements bench help

help:
	@echo "make demo          run the first paper offline on built-in data, up to results/demo/report/index.html"
	@echo "make test          run the tests"
	@echo "make lint          check style of Python, notebooks and workflow"
	@echo "make format        rewrite Python, notebooks and workflow in the project's format"
	@echo "make requirements  compile requirements.txt anew from pyproject.toml (needs uv)"
	@echo "make bench         compare and measure the training engine (an hour on a quiet machine, 7 GB of packages)"

demo: $(INSTALLED)
	$(BIN)/snakemake --cores all --config scale=demo 'papers=[cfl]'

test: $(INSTALLED)
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/snakefmt --check workflow
	$(BIN)/snakemake --lint

format: $(INSTALLED)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/snakefmt workflow

requirements:
	uv pip compile pyproject.toml --extra test --generate-hashes --universal --no-emit-index-url \
		--python-version 3.11 --custom-compile-command "make requirements" --quiet -o requirements.txt

# The first script that fails ends it; what was measured before is written and stays.
bench: $(BENCH)/installed
	for script in engine scaling roofline; do \
		PYTHONPATH=src $(BENCH)/bin/python -W ignore benchmarks/$$script.py || exit; done

# The pinned simulators exist for Python 3.11 on Linux only.
$(BENCH)/installed: benchmarks/requirements.txt
	@command -v "$(BENCH_PYTHON)" >/dev/null || { echo "Python 3.11 was not found; name one: make bench BENCH_PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(BENCH_PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --require-hashes -r benchmarks/requirements.txt
	@touch $@

# The stamp is written last, so an interrupted installation is taken up again by the next `make`.
$(INSTALLED): requirements.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found; name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@
