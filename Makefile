# Every target makes what it needs in .venv, given Python 3.11 or later: try `make demo`.
# `make PYTHON=python3.12 ...` chooses the interpreter, `make test ARGS="-k risk"` the tests.

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo live test test-slow lint reproduce bench fuzz docs dist versions clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' \
		| while IFS='|' read -r target text; do printf '  make %-9s %s\n' "$$target" "$$text"; done

demo: $(VENV)/.ready-demo ## Run the Mental Math study on the data that ships, and write its report
	$(BIN)/crossfade demo $(ARGS)

live: $(VENV)/.ready-live ## Calibrate a recorded person on a page in the browser; ARGS="--speed 4"
	$(BIN)/crossfade live --demo $(ARGS)

test: $(VENV)/.ready-test ## Run the tests but the slow ones; ARGS goes to pytest
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not slow" $(ARGS)

test-slow: $(VENV)/.ready-test ## Run the slow tests: fuzzing, Dask, browser and pages
	$(BIN)/python -m pytest -n 3 --dist worksteal -m slow $(ARGS)

lint: $(VENV)/.ready-lint ## Check format, style, types and docstrings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/check_docstrings.py

reproduce: $(VENV)/.ready-demo ## Run the paper's figures and numbers anew; ARGS="--matb FOLDER --wesad FOLDER"
	$(BIN)/python -m reproduction $(ARGS)

bench: $(VENV)/.ready-bench ## Measure speed and accuracy against the targets
	$(BIN)/python -m benchmarks $(ARGS)

fuzz: $(VENV)/.ready-test ## Draw hostile calls and damaged files for ten minutes; ARGS="--minutes 60"
	$(BIN)/python -m tests.fuzz $(ARGS)

docs: $(VENV)/.ready-docs ## Build the documentation in docs/_build/html
	$(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/html
	$(BIN)/python scripts/check_pages.py docs/_build/html

dist: $(VENV)/.ready-dist ## Build wheel and sdist in dist/, and try each in a fresh environment
	$(BIN)/python scripts/try_dist.py

versions: ## Run the tests on every Python found, and with the lowest versions allowed
	$(PYTHON) scripts/try_versions.py $(ARGS)

clean: ## Remove .venv and everything that was built
	rm -rf $(VENV) .versions build dist docs/_build docs/api docs/learn .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# .ready-NAME says that the package is installed with what NAME needs, in one call of pip. Python
# compiles what it imports, when it does: all at once would take ten seconds and 140 MB more.
# Groups need pip 25.1.
$(VENV)/.ready-demo: WITH = -e ".[plots,tables]"
$(VENV)/.ready-live: WITH = -e ".[live]"
$(VENV)/.ready-test: WITH = -e ".[all]" --group test
$(VENV)/.ready-lint: WITH = -e ".[plots,tables]" --group lint
$(VENV)/.ready-docs: WITH = -e ".[plots,tables,eeg,onnx]" --group docs
$(VENV)/.ready-bench: WITH = -e ".[all]" --group bench
$(VENV)/.ready-dist: WITH = --group dist
$(VENV)/.ready-dev: WITH = -e ".[all]" --group dev
$(VENV)/.ready-%: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Installing in $(VENV) what make $* needs (once; this may take a minute) ..."
	@$(PIP) install -qq --no-compile "pip>=25.1"
	@$(PIP) install -qq --no-compile -c constraints.txt $(WITH)
	@touch $@

# pip arrives last, so a half-made environment is made again.
$(BIN)/pip:
	@$(PYTHON) -c '' 2>/dev/null || { \
		echo "$(PYTHON) was not found. Install Python 3.11 or later," \
			"or name it: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Crossfade needs Python 3.11 or later; $(PYTHON) is" \
			"`$(PYTHON) -c 'import platform; print(platform.python_version())'`." \
			"Name a newer one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "The virtual environment could not be made. On Debian and Ubuntu," \
			"install what it needs (sudo apt install python3-venv) and try again." >&2; exit 1; }
