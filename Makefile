# Each target sets up all it needs in a local virtual environment; only Python >= 3.11, make and git are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test test-extras test-slow lint bench constraints clean

demo: $(VENV)/.demo
	$(BIN)/evenrank demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not extras and not slow"

test-extras: $(VENV)/.extras
	$(BIN)/python -m pytest -m extras tests/extras

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)-bench/.done
	for script in trec_grid sgd measure moments deltr fastar bootstrap; do $(VENV)-bench/bin/python benchmarks/$$script.py --quick || exit 1; done

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("evenrank needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.demo pyproject.toml constraints.txt
	$(PIP) --requirement requirements-dev.txt
	touch $@

$(VENV)/.extras: $(VENV)/.dev constraints-extras.txt
	$(PIP) --constraint constraints-extras.txt --editable '.[torch]'
	touch $@

$(VENV)-bench/.done: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/python -m pip --disable-pip-version-check install --quiet --editable . --requirement benchmarks/requirements.txt
	touch $@

# The exact versions that demo and test install; made with uv, which records no address.
constraints: $(VENV)/.dev
	$(PIP) uv
	$(BIN)/uv pip compile --quiet --universal --no-header --no-annotate pyproject.toml requirements-dev.txt -o constraints.txt

clean:
	rm -rf $(VENV) $(VENV)-bench .pytest_cache .mypy_cache .ruff_cache .hypothesis
