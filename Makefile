# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DEMO := .venv/.demo
# Python keeps what it compiles, even where the surroundings forbid it: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test tests coverage lint pins bench paper docs audit faults bundle calibrate proofs clean

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --editable ".[dev]"
	touch $(READY)

$(DEMO): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --editable ".[demo]"
	touch $(DEMO)

# Writes ./demo, which must not exist yet.
demo: $(DEMO)
	$(BIN)/tacit demo --out demo

# Three processes for two cores: where one waits for a disk, a clock or a browser, another computes.
# WORKERS=0 runs the tests in one process.
WORKERS ?= 3
FAST := -n $(WORKERS) --dist loadgroup -m "not slow"
# Lint and types run beside the tests: one of two cores would wait for them.
test: $(READY)
	$(MAKE) --no-print-directory --jobs=2 lint tests

# Linear algebra in one thread, as the command `tacit` has it: threads of three processes would only wait for each other.
tests: export OPENBLAS_NUM_THREADS := 1
tests: $(READY)
	$(BIN)/pytest $(FAST)

# Which lines the fast tests run: the table, and htmlcov/ to look at.
coverage: $(READY)
	$(BIN)/pytest $(FAST) --cov --cov-report=term --cov-report=html

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

audit: $(READY)
	$(BIN)/python tests/privacy/audit.py
	$(BIN)/pytest -m slow tests/privacy tests/holder tests/cli tests/test_estimator.py

# Real processes and real faults: sites killed, a SuperLink restarted, wires cut, clocks wrong, fifty sites; half an hour.
faults: $(READY)
	$(BIN)/pytest -m slow tests/federation tests/deploy

# dist/bundle: wheels with hashes, for machines without a package index.
bundle: $(READY)
	rm -rf dist/bundle
	$(BIN)/python deploy/bundle.py dist/bundle

calibrate: $(READY)
	$(BIN)/pytest -m slow tests/analyst tests/experiments

# Needs Coq (Debian: apt-get install coq). Compiles the proofs from nothing, prints what each theorem rests on,
# has a second checker read them, and compares the program with them; then shows that wrong constants fail.
proofs: $(READY)
	$(BIN)/python proofs/check.py --kernel
	$(BIN)/pytest -n 2 --dist loadgroup tests/proofs

# Every benchmark with its bars; what it printed is kept in benchmarks/results. DATA=folder with the UCI files adds accuracy.py.
bench: $(READY)
	$(BIN)/python benchmarks --check $(if $(DATA),--data $(DATA))

# constraints.txt: what `dev` was last tested with, with hashes and without addresses (needs uv).
pins:
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev --generate-hashes --no-annotate \
	  --no-header --no-emit-index-url --no-emit-find-links --output-file constraints.txt pyproject.toml

# make paper DATA=folder with the UCI files [OUT=results]: every table and figure of the 2023 paper, then docs/paper.md.
# Chains come first, side by side where there is a GPU; what follows finds them.
OUT ?= results
paper: $(READY)
	$(BIN)/python -m experiments compute simulated --out $(OUT)/parts/simulated
	$(BIN)/python -m experiments compute one --out $(OUT)/parts/one
	$(BIN)/python -m experiments compute real --data $(DATA) --out $(OUT)/parts/real
	$(BIN)/python -m experiments audit --out $(OUT)
	$(BIN)/python -m experiments runtimes --out $(OUT)
	$(BIN)/python -m experiments real --data $(DATA) --out $(OUT)
	$(BIN)/python -m experiments simulated --out $(OUT)
	$(BIN)/python -m experiments one --out $(OUT)
	$(BIN)/python -m experiments mmd --out $(OUT)
	$(BIN)/python -m experiments page --out $(OUT)

docs: $(READY)
	$(BIN)/python docs/commands.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf .venv demo site
