# What a person and CI run. Every step installs what it needs; nothing has to be prepared but Python and Java.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.locked
UV := $(BIN)/uv

FAST := not kafka and not spark and not slow

# Without a cache every Python process compiles all that it imports: more than half of what the tests cost. It lies beside the
# packages, so that none of it is in the tree. An empty variable counts as not set.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/$(VENV)/pycache

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else "kagent needs Python 3.11, 3.12 or 3.13, and %s is %d.%d: run `make PYTHON=python3.12 setup`." % (sys.executable, *v))'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo 'This Python cannot make virtual environments: install the package python3-venv.' >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(UV) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r <(awk '/^uv==/{on=1} on{print} on&&!/\\$$/{exit}' requirements.lock)
	$(UV) pip install --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $@

.PHONY: setup
setup: $(STAMP) ## make .venv from the lock file and fetch the jars into the cache
	$(BIN)/kagent jars

.PHONY: check
check: $(STAMP) ## format, lint, types and the fast tests (under a minute)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 -m "$(FAST)"

.PHONY: format
format: $(STAMP) ## write the format and the mendable lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Unpacked, not installed: Debian's packages would start services.
DEBS := $(or $(KAGENT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kagent)/debs

.PHONY: docs
docs: $(STAMP) ## write the reference pages that are made from the code
	$(BIN)/python -m kagent.reference_pages

.PHONY: openssl
openssl:
	@command -v openssl >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get -qq update && apt-get -qq install -y --no-install-recommends openssl; } || \
	  { echo 'Install openssl: the tests of TLS make certificates with it.' >&2; exit 1; }

.PHONY: debs
debs: openssl ## Prometheus and Alertmanager for the tests, into the cache, unless they are installed
	@for tool in prometheus promtool prometheus-alertmanager; do \
	  command -v $$tool >/dev/null || test -x $(DEBS)/usr/bin/$$tool || missing=yes; done; \
	test -z "$${missing:-}" || { \
	  command -v apt-get >/dev/null || { echo 'Install prometheus and alertmanager (binaries prometheus, promtool, prometheus-alertmanager): the tests need them.' >&2; exit 1; }; \
	  mkdir -p $(DEBS) && cd $(DEBS); \
	  apt-get -qq download prometheus prometheus-alertmanager 2>/dev/null || { test "$$(id -u)" != 0 || apt-get -qq update; apt-get -qq download prometheus prometheus-alertmanager; }; \
	  for deb in *.deb; do dpkg -x "$$deb" . && rm "$$deb"; done; }
	@test -e /usr/share/prometheus/alertmanager/default.tmpl || { test -w /usr/share && mkdir -p /usr/share/prometheus && \
	  ln -sfn $(DEBS)/usr/share/prometheus/alertmanager /usr/share/prometheus/alertmanager; } || \
	  { echo "Debian's Alertmanager reads /usr/share/prometheus/alertmanager: install prometheus-alertmanager, or run make debs as root." >&2; exit 1; }

.PHONY: maven
maven:
	@command -v mvn >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get -qq update && apt-get -qq install -y --no-install-recommends maven; } || \
	  { echo 'Install Maven (apt-get install maven): the Java assignors are built with it.' >&2; exit 1; }

# The same sources and JDK give the same jar, byte for byte; it is in the repository, so that only who changes it needs a JDK.
.PHONY: java
java: maven ## build and test the Java assignors, and put the jar into the package
	@test -x "$${JAVA_HOME:-/nowhere}/bin/javac" || command -v javac >/dev/null || { echo 'There is no javac: install a JDK of version 17 or later (openjdk-17-jdk-headless), or set JAVA_HOME.' >&2; exit 1; }
	mvn --batch-mode --quiet --no-transfer-progress -f java/pom.xml clean package
	cp java/target/kagent-assignor.jar kagent/assignor/kagent-assignor.jar

# From apt, so that it is kept up to date; the libraries' lock file names versions and hashes.
.PHONY: browser
browser: ## Chromium and the page's libraries, for the page's tests
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } || \
	  { echo 'Install chromium (apt-get install chromium): the tests of the page need it.' >&2; exit 1; }
	@command -v npm >/dev/null || { echo 'Install npm: the page is checked with axe-core.' >&2; exit 1; }
	@test frontend/node_modules/.package-lock.json -nt frontend/package-lock.json || npm ci --prefix frontend --ignore-scripts --no-audit --no-fund --loglevel=error

.PHONY: ui
ui: $(STAMP) ## copy the page's libraries from npm into the package, as their lock file has them
	npm ci --prefix frontend --ignore-scripts --no-audit --no-fund --loglevel=error
	$(BIN)/python frontend/vendor.py

.PHONY: screenshot
screenshot: $(STAMP) browser ## take the picture of the page in README anew
	PAGE_SCREENSHOT=docs/images/page.png $(BIN)/python -m pytest -q -p no:randomly tests/worker/http/test_page.py -k picture

.PHONY: test
test: setup debs browser ## everything, with a real broker and Spark
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 -m "$(FAST)"
	$(BIN)/python -m pytest -rfER --reruns 1 -n 2 --dist loadfile --no-loadscope-reorder --durations=40 -m "not ($(FAST))"

.PHONY: explore
explore: $(STAMP) ## the property tests with examples of their own at every run
	$(BIN)/python -m pytest -q -n 2 -m "$(FAST)" --hypothesis-profile=explore

.PHONY: demo
demo: setup ## the whole job on a real broker, in some minutes
	$(BIN)/kagent demo $(ARGS)

.PHONY: lock
lock: $(STAMP) ## resolve the dependencies anew
	$(UV) pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate \
	  pyproject.toml --all-extras --group dev --output-file requirements.lock

.PHONY: soak
soak: setup ## faults on real processes for MINUTES (60) or until FAULTS, in the order of SEED (1), and a verdict; PREVIOUS=yes: one worker of the previous release
	SOAK_PREVIOUS=$(PREVIOUS) SOAK_MINUTES=$(or $(MINUTES),60) SOAK_FAULTS=$(FAULTS) SOAK_SEED=$(or $(SEED),1) $(BIN)/python -m pytest -q tests/worker/test_soak.py

# Needs a network, so `make check` does not run it; the auditors stay out of the lock file.
.PHONY: audit
audit: $(STAMP) ## known weaknesses of the locked packages, and their licences
	$(UV) tool run pip-audit --requirement requirements.lock --disable-pip --require-hashes --progress-spinner off
	$(UV) tool run pip-licenses --python $(BIN)/python --order license --format plain

.PHONY: clean
clean: ## remove what was built here (the jar cache stays)
	rm -rf $(VENV) dist build java/target .pytest_cache .mypy_cache .ruff_cache .hypothesis
