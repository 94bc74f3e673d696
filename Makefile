# kdissect. `make run` and `make test` need Python 3.11 or newer, make, and a network to a package registry; nothing else.

PYTHON ?= python3
CAPTURE ?= pcaps/librdkafka.pcapng
SEED ?= $(shell date +%s)
COUNT ?= 20
PACKAGE ?= transport
TESTS ?=
SANITIZE ?= tests/protocol/kernel tests/cli/test_lines.py tests/capture/test_record_positions.py tests/transport/test_tcp_headers.py tests/export/test_table_cells.py tests/framing tests/proxy_server/test_made_packets.py tests/proxy_server/test_ordinary.py
VENV := .venv
BIN := $(VENV)/bin
KERNEL := dissector/protocol/kernel
LIBRARY := $(KERNEL)/libkernel.so
# What the C files share with Python: as in shared.py.
SHARED := bulk/cell_lines.py cli/render/lines.py exchange/listing.py framing/fast_path.py \
  protocol/codec/json_program.py protocol/codec/plan.py protocol/codec/program.py \
  protocol/kernel/json_messages.py protocol/kernel/secret_marks.py protocol/kernel/shredding.py \
  protocol/records/batch.py protocol/records/columns.py protocol/records/compression.py \
  protocol/records/entries.py protocol/records/legacy.py protocol/schema/field_enums.py \
  proxy_server/made_packets.py proxy_server/ordinary.py transport/deliveries.py transport/tcp_facts.py
INSTRUMENTED := build/sanitize/libkernel.so
WITH_SANITIZERS = LD_PRELOAD="$$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
  INSTRUMENTED_KERNEL=$(CURDIR)/$(INSTRUMENTED)
# Our own plugin is not loaded: of one that is, pytest rewrites the assertions in its whole package.
PYTEST := $(BIN)/python -m pytest --disable-plugin-autoload -p xdist -p pytest_asyncio.plugin -p _hypothesis_pytestplugin
# Of libraries that only `make test` installs, mypy does not know the types before.
UNKNOWN_TYPES = $(if $(wildcard $(VENV)/.tests),,--ignore-missing-imports --allow-subclassing-any --no-warn-return-any \
  --no-warn-unused-ignores)
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help run test test-all long spark check lint bench fuzz mutants exhaustive sanitize lab clients clients-page proxied client-faults proxied-page schemas vectors wheels constraints hooks clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-zA-Z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/kdissect: pyproject.toml constraints.txt hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "kdissect needs Python 3.11 or newer: make run PYTHON=python3.12"; exit 2; }
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (once)"
	@$(BIN)/python $(PIP_INSTALL) --constraint constraints.txt --editable .
	@touch $@

$(LIBRARY): $(wildcard $(KERNEL)/*.c $(KERNEL)/*.h) $(KERNEL)/build.py $(KERNEL)/shared.py $(addprefix dissector/,$(SHARED)) | $(BIN)/kdissect
	@test -z "$$(find $? -newer $@ 2>&1)" || $(BIN)/python $(PIP_INSTALL) --no-deps --editable .

$(VENV)/.check: $(BIN)/kdissect | $(LIBRARY)
	@echo "installing what the quick tests need (once)"
	@$(BIN)/python $(PIP_INSTALL) --constraint constraints.txt --editable '.[check,dev]'
	@touch $@

$(VENV)/.tests: $(BIN)/kdissect | $(LIBRARY)
	@echo "installing what the tests need (once)"
	@$(BIN)/python $(PIP_INSTALL) --constraint constraints.txt --editable '.[test,dev,connect]'
	@touch $(VENV)/.check $@

run: $(BIN)/kdissect $(LIBRARY) ## open a bundled capture (CAPTURE=FILE for another)
	@$(BIN)/kdissect $(CAPTURE)

test: $(VENV)/.tests ## style, types, import rules, and of each kind of test one or a few
	@$(MAKE) --no-print-directory --jobs=2 lint test-all  # mypy takes a minute or more of one core, in a fresh clone

test-all: $(VENV)/.tests
	@$(PYTEST) -n auto --dist worksteal -m 'not long and not spark and not exhaustive' $(TESTS)

long: $(VENV)/.tests ## the tests that take a third of a second of CPU or more each, which CI runs behind `make test`
	@$(PYTEST) -n auto --dist worksteal -m 'long and not spark and not exhaustive'

test-PACKAGE: ## the tests of one package: make test-transport, make test-tui
	@echo "name a package:" $(sort $(patsubst tests/%/__init__.py,test-%,$(wildcard tests/*/__init__.py))); exit 2

test-%: $(VENV)/.tests
	@test -d tests/$* || { echo "there is no folder tests/$*"; exit 2; }
	@$(PYTEST) -n auto --dist worksteal -m 'not spark and not exhaustive' tests/$*

spark: $(VENV)/.tests ## minutes of Spark: clusters, kills, rings, commands on tables (needs Java 17)
	@$(PYTEST) -n auto --dist loadfile -m spark

check: $(VENV)/.check lint ## the fast part of `make test`, under a minute, without Spark and other large libraries
	@$(PYTEST) -n logical --dist worksteal -m 'not slow and not long and not spark and not exhaustive' --hypothesis-profile=quick

lint: $(VENV)/.check ## style, types, import rules
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary $(UNKNOWN_TYPES)
	@$(BIN)/lint-imports --no-logo --verbose >/dev/null || $(BIN)/lint-imports

bench: $(VENV)/.tests ## time and memory beside tshark, on this machine (BENCH="speed start growth memory screen readers filter diff spark hostile")
	@$(BIN)/python -m tools.benchmarks $(BENCH)

fuzz: $(VENV)/.tests ## damaged input, random keys, then every property with fresh random examples (FUZZ="--count N --seed S --minutes M --kind K" SCREEN="--minutes M")
	@$(BIN)/python -m tools.fuzz $(FUZZ)
	@$(BIN)/python -m tools.fuzz.screen $(SCREEN)
	@$(PYTEST) -n auto --dist worksteal -m 'hypothesis and not spark' --hypothesis-profile=fresh

mutants: $(VENV)/.tests ## put small mistakes into a package and list those that its tests don't notice (PACKAGE=transport SEED=1 COUNT=200)
	@$(BIN)/python -m tools.mutants $(PACKAGE) --seed $(SEED) --count $(COUNT)

exhaustive: $(VENV)/.tests ## what `make test` leaves out: all captures, more cases and ways; every property with more examples
	@$(PYTEST) -n auto --dist worksteal -m 'exhaustive and not spark'
	@$(PYTEST) -n auto --dist worksteal -m 'hypothesis and not spark' --hypothesis-profile=exhaustive

sanitize: $(VENV)/.tests ## tests, then damaged input, with a kernel that stops at a wrong address or undefined behavior (SANITIZE="FILE ..." FUZZ="--minutes M"; needs gcc)
	@CC=gcc CFLAGS="-Werror -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all" \
	  $(BIN)/python $(KERNEL)/build.py $(INSTRUMENTED)
	@$(WITH_SANITIZERS) $(PYTEST) -n auto --dist worksteal $(SANITIZE)
	@$(WITH_SANITIZERS) $(BIN)/python -m tools.fuzz $(if $(FUZZ),$(FUZZ),--count 2000)

lab: $(VENV)/.tests ## record pcaps/ anew: a real broker and real clients (needs Java 17, Maven, dumpcap or tcpdump)
	@$(BIN)/python -m tools.lab
	@$(BIN)/python -m tools.lab.segments

clients: $(VENV)/.tests ## record twelve clients and their earlier releases in pcaps/clients/ anew and make their pages (needs what `make lab` needs, Go, npm, cargo, Python 3.10; an hour)
	@$(BIN)/python -m tools.lab.survey
	@$(BIN)/python -m tools.lab.survey --earlier
	@$(BIN)/python -m tools.lab.survey.page
	@$(BIN)/python -m tools.lab.survey.upgrades

proxied: $(VENV)/.tests ## run those clients through the proxy and hold it to the brokers' logs (as root; needs what `make clients` needs)
	@$(BIN)/python -m tools.lab.proxied
	@$(BIN)/python -m tools.lab.proxied --brokers 3 --way plain --way tls --way mtls --way PLAIN --way SCRAM --way OAUTHBEARER
	@$(BIN)/python -m tools.lab.proxied.page

client-faults: $(VENV)/.tests ## run them into faults that the proxy injects, and make docs/proxied-clients.md from the recordings (as root)
	@$(BIN)/python -m tools.lab.proxied.faults
	@$(BIN)/python -m tools.lab.proxied.page

proxied-page: $(VENV)/.tests ## make docs/proxied-clients.md from what is kept of both
	@$(BIN)/python -m tools.lab.proxied.page

clients-page: $(VENV)/.tests ## make docs/clients.md, docs/clients.html and docs/upgrades.md from the recordings
	@$(BIN)/python -m tools.lab.survey.page
	@$(BIN)/python -m tools.lab.survey.upgrades

schemas: $(VENV)/.tests ## import the schema tables anew from Apache's released jars (needs Java 17, Maven)
	@$(BIN)/python -m tools.lab.schemas

vectors: $(VENV)/.tests ## hold the codec against fresh messages from Apache's own (SEED=N COUNT=K; needs Java 17, Maven)
	@echo "SEED=$(SEED) COUNT=$(COUNT)"
	@$(BIN)/python -m tools.lab.vectors --seed $(SEED) --count $(COUNT) --out build/vectors
	@VECTORS=build/vectors $(PYTEST) -n auto tests/protocol/test_vectors.py

wheels: ## wheels for Linux and macOS, x86_64 and arm64, and a source archive, into dist/
	@rm -rf build/wheels && $(PYTHON) -m venv build/wheels
	@build/wheels/bin/python $(PIP_INSTALL) hatchling ziglang typer twine check-wheel-contents
	@build/wheels/bin/python tools/wheels.py
	@build/wheels/bin/twine check --strict dist/*
	@build/wheels/bin/check-wheel-contents dist/*.whl

.PHONY: try-wheel sbom docs docs-outputs pictures
try-wheel: ## the wheel of dist/ for this machine, in an environment of its own: help, samples, rows
	@rm -rf build/try && $(PYTHON) -m venv build/try/venv
	@build/try/venv/bin/python $(PIP_INSTALL) --only-binary kafka-dissector --find-links dist kafka-dissector
	@cd build/try && venv/bin/kdissect --version && venv/bin/kdissect samples && venv/bin/kdissect show samples/*.pcapng --limit 3

sbom: ## what the wheel of dist/ for this machine installs, as CycloneDX JSON: build/sbom.cdx.json
	@rm -rf build/sbom && $(PYTHON) -m venv build/sbom/tool && $(PYTHON) -m venv build/sbom/venv
	@build/sbom/tool/bin/python $(PIP_INSTALL) cyclonedx-bom
	@build/sbom/venv/bin/python $(PIP_INSTALL) --only-binary kafka-dissector --find-links dist kafka-dissector
	@build/sbom/tool/bin/cyclonedx-py environment build/sbom/venv --output-file build/sbom.cdx.json

$(VENV)/.docs: $(VENV)/.tests
	@echo "installing what the documentation needs (once)"
	@$(BIN)/python $(PIP_INSTALL) --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## the documentation as a site, in build/site; every link is checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "build/site/index.html"

pictures: $(VENV)/.tests ## draw the pictures of README and documentation (PICTURES="screen diff"; needs rsvg-convert, chromium)
	@$(BIN)/python -m tools.docs.pictures $(PICTURES)

docs-outputs: $(VENV)/.tests ## run the commands in the documentation and write what they print behind them
	@$(BIN)/python -m tools.docs.console

constraints: ## renew constraints.txt: the newest libraries that pyproject.toml allows
	@rm -rf build/constraints && $(PYTHON) -m venv build/constraints
	@build/constraints/bin/python $(PIP_INSTALL) --editable '.[test,dev,connect,docs]'
	@{ echo "# The libraries that every make target installs. Renewed by: make constraints"; \
	  build/constraints/bin/python -m pip freeze --exclude-editable --disable-pip-version-check; } >constraints.txt

hooks: $(VENV)/.tests ## run style, types and import rules before each commit
	@$(BIN)/pre-commit install

clean: ## forget what was built and installed
	@rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
