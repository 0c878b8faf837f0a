# Each target does the set-up it needs; the work is in small scripts under deploy/.
.DEFAULT_GOAL := help
.PHONY: help run quick test check check-long check-system behaviours promises fmt bench soak lock run-setup dev-setup

PYTEST_WORKERS ?= 2
ARGS ?=
SHARE ?= all
# Unset, whatever the shell says: else every worker of every run compiles every test anew.
export PYTHONDONTWRITEBYTECODE =
bin := .venv/bin

help:
	@echo 'make run     start the daemon on its embedded defaults (ARGS="--config my.toml" to change them)'
	@echo 'make run-setup   install what the daemon needs, without starting it'
	@echo 'make quick   lint and the fast tests, before every commit'
	@echo 'make test    run every test but the long searches (ARGS="-k draft" for some)'
	@echo 'make check   lint, layers, types, tests and coverage: the one gate, also of CI'
	@echo 'make check-long   the long searches (SHARE=3/24 for one share): hours, not minutes'
	@echo 'make check-system   the fast tests on the Python of the system, which may be an older one'
	@echo 'make behaviours   print every required behaviour, and the tests that prove it'
	@echo 'make promises   print which tests prove which promise on which channel'
	@echo 'make fmt     format the code and mend what the linter can'
	@echo 'make bench   measure start, memory, turns, each channel, the local model (ARGS="six slack" for some)'
	@echo 'make soak    let people write for ten minutes while everything fails (ARGS="--minutes 1 --channels all")'
	@echo 'make lock    renew the lock files after a change of dependencies (ARGS=--upgrade for the newest)'

run: run-setup
	@$(bin)/python deploy/fetch_model.py || echo 'model: going on without it'
	@$(bin)/zeroclaw run $(ARGS)

quick: dev-setup
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/python -m pytest -n $(PYTEST_WORKERS) --hypothesis-profile=quick -m "not slow" tests/unit tests/spec $(ARGS)

test: dev-setup
	@sh deploy/test.sh $(PYTEST_WORKERS) $(ARGS)

check: dev-setup
	sh deploy/check.sh $(PYTEST_WORKERS)

check-long: dev-setup
	$(bin)/python -m pytest -n $(PYTEST_WORKERS) --long=$(SHARE) $(ARGS)

check-system: dev-setup
	@sh deploy/system_python.sh $(PYTEST_WORKERS)

behaviours: dev-setup
	@$(bin)/python -m tests.spec.behaviours

promises: dev-setup
	@$(bin)/python -m tests.spec.promises

fmt: dev-setup
	$(bin)/ruff check --fix-only .
	$(bin)/ruff format .

bench: dev-setup
	$(bin)/python -m tests.bench $(ARGS)

soak: dev-setup
	$(bin)/python -m tests.soak $(ARGS)

lock:
	sh deploy/lock.sh $(ARGS)

run-setup:
	@sh deploy/debian.sh run
	@sh deploy/setup.sh run

dev-setup:
	@sh deploy/debian.sh dev
	@sh deploy/setup.sh dev
	@$(bin)/python deploy/fetch_model.py || echo 'model: going on without it'
