# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test engines data lint bench docs clean

demo: $(VENV)/.installed
	$(BIN)/privet demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 -m "not data and not engines"

engines: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 -m engines

data: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m data

lint: $(VENV)/.installed-test $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/speed.py

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit('Privet needs Python 3.11 or newer: make PYTHON=python3.12 ...' if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	touch $@

clean:
	rm -rf $(VENV) docs/_build build dist
