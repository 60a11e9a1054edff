# Two commands: `make demo` shows what dpsc does, `make test` checks that it does it.
# Each sets up what it needs once (in .venv) and goes straight to work the next time.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
          $(BIN)/python -m pip install --quiet

.PHONY: demo test soak lint format bench mutants docs lock dist clean

demo: $(VENV)/.ready
	$(BIN)/dpsc demo --force --out demo-output

# A file's tests run in one process, so that what they share is made once; in the order of folders, which ends with
# many short examples: in the order of their number, a few long files would come last and leave a core idle.
# Bytecode is kept even where Python is told not to: every process would compile everything anew.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test: $(VENV)/.ready-dev
	$(PYTEST)

soak: $(VENV)/.ready-dev
	DPSC_SOAK=1 $(PYTEST)

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.ready-dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/panels.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/sweep.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/claims.py
	$(BIN)/python benchmarks/printed.py
	$(BIN)/python benchmarks/study.py
	$(BIN)/python benchmarks/averages.py
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/segments.py
	$(BIN)/python benchmarks/rolling.py
	$(BIN)/python benchmarks/groups.py --half design --runs 5
	$(BIN)/python benchmarks/groups.py
	$(BIN)/python benchmarks/demo.py
	$(BIN)/python benchmarks/demo_panel.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/scale.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/validation.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/which_method.py
	$(BIN)/python benchmarks/which_method_tables.py
	$(BIN)/python benchmarks/results_page.py
	$(BIN)/python benchmarks/quote.py

mutants: $(VENV)/.ready-dev
	$(BIN)/python tests/mutants.py

# Not --quiet: warnings would not be counted, and a link that leads nowhere would pass.
docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

# What users need, in the versions of constraints.txt, for all platforms, with the hashes of the index.
EXTRAS := console dask demo postgres sql xlsx
lock: $(VENV)/.ready-release
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile pyproject.toml $(EXTRAS:%=--extra %) \
	    --universal --python-version 3.11 --constraints constraints.txt --generate-hashes --no-annotate --quiet \
	    --output-file requirements.lock

# What is released, in dist: source, wheel, and an SBOM (CycloneDX) of the locked environment, in which the wheel runs.
dist: $(VENV)/.ready-release
	rm -rf dist build
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_BUILD_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv --without-pip build/locked
	$(BIN)/uv pip install --quiet --python build/locked/bin/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python build/locked/bin/python --no-deps dist/*.whl
	sed "s/^dynamic = .*/version = \"$$(build/locked/bin/python -c 'import dpsc; print(dpsc.__version__)')\"/" \
	    pyproject.toml > build/pyproject.toml
	$(BIN)/cyclonedx-py environment build/locked/bin/python --pyproject build/pyproject.toml --output-reproducible \
	    --output-file dist/dpsc-sbom.cdx.json
	cd dist && sha256sum * > SHA256SUMS

clean:
	rm -rf $(VENV) demo-output reproduction audit-output site build dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.ready

$(VENV)/.ready-docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/.ready

$(VENV)/.ready-release: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[release]'
	@touch $@ $(VENV)/.ready
