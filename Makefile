# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DEMO := .venv/.demo

.PHONY: demo test lint bench paper docs audit calibrate proofs clean

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $(READY)

$(DEMO): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable ".[demo]"
	touch $(DEMO)

demo: $(DEMO)
	rm -rf demo
	$(BIN)/tacit demo --out demo

test: lint
	$(BIN)/pytest -n 2 --dist loadgroup -m "not slow"

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

audit: $(READY)
	$(BIN)/pytest -m slow tests/privacy tests/holder tests/cli

calibrate: $(READY)
	$(BIN)/pytest -m slow tests/analyst

# Needs Coq (Debian: apt-get install coq). Compiles the proofs from nothing, prints what each theorem rests on,
# has a second checker read them, and compares the program with them; then shows that wrong constants fail.
proofs: $(READY)
	$(BIN)/python proofs/check.py --kernel
	$(BIN)/pytest -n 2 --dist loadgroup tests/proofs

bench: $(READY)
	$(BIN)/python benchmarks/publish.py --check
	$(BIN)/python benchmarks/sources.py --check
	$(BIN)/python benchmarks/holders.py --check
	$(BIN)/python benchmarks/startup.py --check
	$(BIN)/python benchmarks/samplers.py --check
	$(BIN)/python benchmarks/mixing.py --check
	$(BIN)/python benchmarks/release_form.py --check
	$(BIN)/python benchmarks/scales.py --check
	$(BIN)/python benchmarks/stream.py --check
	$(BIN)/python benchmarks/averaging.py --check
	$(BIN)/python benchmarks/formula.py --check
	$(BIN)/python benchmarks/coverage.py --check
	$(BIN)/python benchmarks/robustness.py --check

# make paper DATA=folder with the UCI files [OUT=results]: every table and figure of the 2023 paper, then docs/paper.md.
OUT ?= results
paper: $(READY)
	$(BIN)/python -m experiments audit --out $(OUT)
	$(BIN)/python -m experiments runtimes --out $(OUT)
	$(BIN)/python -m experiments real --data $(DATA) --out $(OUT)
	$(BIN)/python -m experiments simulated --out $(OUT)
	$(BIN)/python -m experiments mmd --out $(OUT)
	$(BIN)/python -m experiments page --out $(OUT)

docs: $(READY)
	$(BIN)/python docs/commands.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf .venv demo site
