# Everything here works with only Python >= 3.11 (with pip and venv) and make.

PYTHON = python3
ARGS =
BIN = .venv/bin
INSTALLED = .venv/.installed

.PHONY: help demo test check static bench setup-ci clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/  make \1	\2/p' Makefile
	@echo
	@echo '  ARGS="..." is handed on by demo and test; PYTHON=python3.12 picks the interpreter.'

demo: $(INSTALLED) ## Run the demo: agent runs that survive killed workers
	$(BIN)/runlane demo $(ARGS)

test: $(INSTALLED) ## Run the tests, for example: make test ARGS="tests/server -x"
	$(BIN)/pytest $(ARGS)

check: static ## Lint, check types and architecture, then run all tests, two at a time
	$(BIN)/pytest -n 2

static: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: $(INSTALLED) ## Run every benchmark
	$(BIN)/python -m bench all

setup-ci: ## Install redis-server, a C compiler and ip from apt, as root, without starting anything
	@set -e; \
	packages=''; \
	command -v redis-server >/dev/null || packages="$$packages redis-server"; \
	command -v cc >/dev/null || packages="$$packages gcc libc6-dev"; \
	command -v ip >/dev/null || packages="$$packages iproute2"; \
	if [ -z "$$packages" ]; then echo 'setup-ci: all parts are there, nothing done'; exit 0; fi; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	    echo "setup-ci: needs root and apt; install by hand:$$packages" >&2; exit 1; fi; \
	policy=/usr/sbin/policy-rc.d; \
	if [ ! -e $$policy ]; then \
	    trap 'rm -f '$$policy EXIT; \
	    printf '#!/bin/sh\nexit 101\n' > $$policy; chmod 755 $$policy; \
	fi; \
	apt-get update -q; \
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$packages; \
	echo "setup-ci: installed$$packages; no daemon was started"

clean: ## Remove .venv, caches and the data of the development server
	rm -rf .venv .runlane .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis \
	    .coverage dist build
	find producer worker journal observability tests bench examples \
	    -name __pycache__ -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo 'runlane needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ...' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
	    { echo 'this Python has no venv module: apt install python3-venv, or another PYTHON=' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[worker,embedded,dev]'
	@touch $@
