# Each target sets up what it needs; a fresh clone needs Python 3.11 or newer and nothing else.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check bench clean
.DEFAULT_GOAL := demo

$(READY): setup.py constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	@echo 'Installing about 100 packages into .venv (2.3 GB there): a few minutes, once.'
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --disable-pip-version-check --constraint constraints.txt --editable '.[dev]' \
	  | awk '/^Collecting/ {print "  found " $$2; fflush()} /^Installing collected/ {print "  unpacking them all"; fflush()}'
	@touch $@

demo: $(READY)
	@echo 'A tour on 27,254 WordNet glosses: about two minutes.'
	@$(BIN)/sbertkit demo

test: $(READY)
	@echo 'About 8,500 tests: 20 minutes on two cores.'
	@$(BIN)/python -m pytest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict sbertkit
	$(BIN)/mypy tests eval examples setup.py
	$(BIN)/lint-imports

# Long: nothing else should run on the cores meanwhile. SBERTKIT_DATA names the data sets.
bench: $(READY)
	$(BIN)/python -m pytest -m slow
	for script in encode cold_start encode_memory index_memory index_changes self_search; do $(BIN)/python eval/$$script.py || exit 1; done
	if [ -n "$$SBERTKIT_DATA" ]; then \
	  for script in shell_encode sts precision retrieval retrieval_modes train_speed guard resume; do $(BIN)/python eval/$$script.py || exit 1; done; \
	else echo 'SBERTKIT_DATA is not set: STS and training left out'; fi
	$(BIN)/python eval/tables.py

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
