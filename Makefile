# make demo · make test · make check: each installs what it needs into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: help install demo test test-slow check format lint types docs package clean

help:
	@echo "make demo       install, then run zhat demo"
	@echo "make test       install, then run the fast tests"
	@echo "make test-slow  install, then run the tests that train or start programs many times"
	@echo "make check      format, lint, types, tests, docs: what a change must pass"
	@echo "make docs       build the documentation into docs/_build/html"
	@echo "make package    build sdist and wheel into dist/, and look whether an index would take them"

# The stamp is older than pyproject.toml or constraints.txt exactly when an install is due.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	touch $@

install: $(VENV)/installed

demo: install
	$(BIN)/zhat demo

test: install
	$(PYTEST) -n 2 --dist loadfile

test-slow: install
	$(PYTEST) -m slow

format: install
	$(BIN)/ruff format --check src tests benchmarks examples docs/*.py

lint: install
	$(BIN)/ruff check src tests benchmarks examples docs/*.py

types: install
	$(BIN)/mypy

docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

check: format lint types test docs

# In an environment of its own: building needs neither torch nor the tests.
package:
	$(PYTHON) -m venv build/packaging
	build/packaging/bin/python -m pip install --quiet --disable-pip-version-check build twine
	rm -rf dist
	build/packaging/bin/python -m build --outdir dist .
	build/packaging/bin/python -m twine check --strict dist/*

clean:
	rm -rf $(VENV) docs/_build build dist *.egg-info src/*.egg-info
