# Each step of building and checking Forebay is one command: `make help` lists them. CI runs
# `make test`, nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
# Fixed in CI so that a run can be repeated; 0 draws a new one.
FUZZ_SEED ?= 1
BENCH ?= *

VENV := .venv
BIN := $(VENV)/bin
# Debian's own interpreter, also where another one comes first on the PATH.
PYTHON = $(firstword $(wildcard /usr/bin/python3.11 /usr/bin/python3) python3)

TEST_STEPS := lint unit mpi-test cli-test asan fuzz docs

.PHONY: help deps venv build demo test $(TEST_STEPS) ruff mypy clang-format clang-tidy tidy format \
        tsan bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

deps:
	@packaging/bootstrap.sh

venv: deps $(VENV)/.locked

$(VENV)/.locked: requirements.lock | deps
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than 3.11; name a newer one: make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --no-deps \
	  -r requirements.lock
	@touch $@

build: venv ## the library, the workloads for both MPIs, and the command .venv/bin/forebay
	@cmake --preset release -DPython3_EXECUTABLE=$(abspath $(BIN)/python) >/dev/null
	cmake --build --preset release -j $(JOBS)
	@packaging/install_command.sh

demo: build ## run bundled workloads stock and through Forebay, and print the comparison
	@packaging/demo.sh

test: venv ## everything CI runs, with a summary: all the steps below
	@.ci/steps $(TEST_STEPS)

lint: ruff mypy clang-format tidy clang-tidy ## style, types, the house rules, static analysis

ruff: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

mypy: venv
	$(BIN)/mypy --strict toolkit/forebay tests/tidy
	$(BIN)/mypy --strict docs/experiments/collective tests/experiments
	$(BIN)/mypy --strict docs/experiments/prefetch
	$(BIN)/mypy --strict docs/experiments/toolkit
	$(BIN)/mypy --strict proxies/readers
	$(BIN)/mypy --strict tests/foreign

clang-format: venv
	git ls-files -z '*.cpp' '*.hpp' '*.c' '*.h' | xargs -0 $(BIN)/clang-format --dry-run -Werror

tidy: venv
	$(BIN)/python -m pytest tests/tidy

clang-tidy: build
	$(BIN)/python packaging/checked_sources.py build | \
	  xargs -0 -P $(JOBS) -n 1 $(BIN)/clang-tidy -p build --config-file=.clang-tidy --quiet

unit: build ## tests of one process, beside the code
	ctest --test-dir build -L '^unit$$' -j $(JOBS) --output-on-failure --no-tests=error

mpi-test: build ## tests of many processes on both MPIs, the workloads, the testbed
	ctest --test-dir build -LE '^unit$$' -j $$((2 * $(JOBS))) --output-on-failure --no-tests=error

# Hundreds of processes load the same packages: what they compile of them is kept, if not beside them.
cli-test: export PYTHONPYCACHEPREFIX = $(abspath build/pycache)
cli-test: export PYTHONDONTWRITEBYTECODE =
cli-test: build ## the forebay command, and the pages made by the campaigns
	$(BIN)/python -m pytest -n $(JOBS) toolkit/tests tests/experiments

asan: deps ## the tests of one process under AddressSanitizer and UBSan
	@cmake --preset asan >/dev/null
	cmake --build --preset asan --target unit_tests -j $(JOBS)
	ctest --preset asan -L '^unit$$' -j $(JOBS) --no-tests=error

fuzz: deps ## each fuzzer for FUZZ_SECONDS (30)
	@cmake --preset fuzz >/dev/null
	cmake --build --preset fuzz --target fuzzers -j $(JOBS)
	@packaging/fuzz.sh $(JOBS) $(FUZZ_SECONDS) $(FUZZ_SEED)

docs: venv ## the pages of docs/ into site/, every link checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

tsan: deps ## tests of one process, reading ahead, and ranks under ThreadSanitizer (not in `make test`)
	@cmake --preset tsan >/dev/null
	cmake --build --preset tsan --target unit_tests thread_tests -j $(JOBS)
	ctest --preset tsan -L '^(unit|posix|threads)$$' -j $(JOBS) --no-tests=error

bench: venv ## each micro-benchmark, or that of BENCH=name, as unlisted_bench (not in `make test`)
	@cmake --preset release -DPython3_EXECUTABLE=$(abspath $(BIN)/python) -DFOREBAY_BENCH=ON >/dev/null
	cmake --build --preset release --target benchmarks -j $(JOBS)
	@for program in build/bench/$(BENCH); do "$$program"; done

format: venv ## rewrite the sources in the house style
	git ls-files -z '*.cpp' '*.hpp' '*.c' '*.h' | xargs -0 $(BIN)/clang-format -i
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove everything that was built, .venv too
	rm -rf build build-asan build-tsan build-dev site $(VENV)
