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

export PYTHONDONTWRITEBYTECODE ?= 1

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

.PHONY: debs
debs: ## Prometheus and Alertmanager for the tests, into the cache, unless they are installed
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

# Maven from Maven Central, into the cache, where none is installed.
MAVEN := 3.9.9
MAVEN_HOME_HERE := $(or $(KAGENT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kagent)/apache-maven-$(MAVEN)
MAVEN_TAR := https://repo.maven.apache.org/maven2/org/apache/maven/apache-maven/$(MAVEN)/apache-maven-$(MAVEN)-bin.tar.gz
MAVEN_SHA512 := a555254d6b53d267965a3404ecb14e53c3827c09c3b94b5678835887ab404556bfaf78dcfe03ba76fa2508649dca8531c74bca4d5846513522404d48e8c4ac8b
export MAVEN_TAR MAVEN_SHA512 MAVEN_HOME_HERE

$(MAVEN_HOME_HERE)/bin/mvn:
	@mkdir -p $(dir $(MAVEN_HOME_HERE))
	@$(PYTHON) -c 'import hashlib, io, os, pathlib, tarfile, urllib.request as u; data = u.urlopen(os.environ["MAVEN_TAR"], timeout=120).read(); \
	  assert hashlib.sha512(data).hexdigest() == os.environ["MAVEN_SHA512"], "Maven: the download is not what was expected; try again."; \
	  tarfile.open(fileobj=io.BytesIO(data)).extractall(pathlib.Path(os.environ["MAVEN_HOME_HERE"]).parent)'

# The same sources and JDK give the same jar, byte for byte; it is in the repository, so that only who changes it needs a JDK.
.PHONY: java
java: $(if $(shell command -v mvn),,$(MAVEN_HOME_HERE)/bin/mvn) ## build and test the Java assignors, and put the jar into the package
	@test -x "$${JAVA_HOME:-/nowhere}/bin/javac" || command -v javac >/dev/null || { echo 'There is no javac: install a JDK of version 17 or later (openjdk-17-jdk-headless), or set JAVA_HOME.' >&2; exit 1; }
	"$$(command -v mvn || echo $(MAVEN_HOME_HERE)/bin/mvn)" --batch-mode --quiet --no-transfer-progress -f java/pom.xml clean package
	cp java/target/kagent-assignor.jar kagent/assignor/kagent-assignor.jar

.PHONY: test
test: setup debs ## everything, with a real broker and Spark
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 -m "$(FAST)"
	$(BIN)/python -m pytest -rfER --reruns 1 -m "not ($(FAST))" tests/demo
	$(BIN)/python -m pytest -rfER --reruns 1 -n 2 --dist loadfile -m "not ($(FAST))" --ignore tests/demo

.PHONY: explore
explore: $(STAMP) ## the property tests with examples of their own at every run
	$(BIN)/python -m pytest -q -n 2 -m "$(FAST)" --hypothesis-profile=explore

.PHONY: demo
demo: setup ## the whole job on a real broker, in four minutes
	$(BIN)/kagent demo $(ARGS)

.PHONY: lock
lock: $(STAMP) ## resolve the dependencies anew
	$(UV) pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate \
	  pyproject.toml --all-extras --group dev --output-file requirements.lock

.PHONY: clean
clean: ## remove what was built here (the jar cache stays)
	rm -rf $(VENV) dist build java/target .pytest_cache .mypy_cache .ruff_cache .hypothesis
