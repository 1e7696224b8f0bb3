# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests and clusters start many processes: without this each compiles all libraries again where the environment says so.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test engines spark browser data lint bench docs wheel network clean

demo: $(VENV)/.installed
	$(BIN)/privet demo --force

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not data and not engines and not spark and not network and not browser"

engines: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m engines

network: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m network tests/network

spark: $(VENV)/.installed-test
	@java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || { echo "Spark needs Java 17 or newer: install it (Debian: apt install openjdk-17-jre-headless)"; exit 1; }
	@$(BIN)/python -c "import pyspark" 2>/dev/null || { echo "Spark is not installed: $(BIN)/pip install -e '.[spark]' (about 500 MB)"; exit 1; }
	$(BIN)/python -m pytest -m spark tests/engines/test_spark.py

browser: $(VENV)/.installed-test $(VENV)/.installed-browser
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get install --yes --quiet chromium chromium-driver; } \
	  || { echo "The pages are tried in Chromium: install it (Debian: apt install chromium chromium-driver)"; exit 1; }
	$(BIN)/python -m pytest -m browser tests/report

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

wheel: $(VENV)/.installed-build
	.ci/wheel $(BIN)/python

# Without --no-compile, pip compiles all modules of all libraries, which takes as long as unpacking them.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit('Privet needs Python 3.11 or newer: make PYTHON=python3.12 ...' if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(PIP) -e ".[$*]"
	touch $@

clean:
	rm -rf $(VENV) docs/_build docs/gallery docs/sg_execution_times.rst build dist
