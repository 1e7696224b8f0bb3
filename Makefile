# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test engines spark data lint bench docs clean

demo: $(VENV)/.installed
	$(BIN)/privet demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 -m "not data and not engines and not spark"

engines: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 -m engines

spark: $(VENV)/.installed-test
	@java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || { echo "Spark needs Java 17 or newer: install it (Debian: apt install openjdk-17-jre-headless)"; exit 1; }
	@$(BIN)/python -c "import pyspark" 2>/dev/null || { echo "Spark is not installed: $(BIN)/pip install -e '.[spark]' (about 500 MB)"; exit 1; }
	$(BIN)/python -m pytest -m spark tests/engines/test_spark.py

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
