# What can be done with this checkout: see `make help`.
# Needs make and Python 3.11 or newer with venv. uv is used when it is there.

SHELL = /bin/sh
VENV = .venv
PYTHON = $(VENV)/bin/python
READY = $(VENV)/.ready
PIP = $(PYTHON) -m pip install --quiet --disable-pip-version-check
PORT = 8080
SEEDS = 1000

LOCK = requirements-dev.lock

.PHONY: help setup run test test-security check bench sim chaos fuzz lock audit-dependencies sbom clean nginx prometheus postgres15 browser languages nftables faketime
.DEFAULT_GOAL = help

help:
	@echo "make run      set up and start hookline on http://127.0.0.1:8080 (embedded SQLite, development mode);"
	@echo "              another port: make run PORT=8081"
	@echo "make test     set up everything and run the suite, a few parts at once: the same for the same commit, and no times are judged;"
	@echo "              of planted bugs and faults a quarter, by the commit's number: HOOKLINE_TEST_SHARE=0 (to 3) chooses one"
	@echo "make test-security  what of the suite is about security, in the same way (it is part of make test too): tests/security/files.py"
	@echo "make check    format, lint, types, fast tests"
	@echo "make bench    the benchmarks, throughput first"
	@echo "make sim      simulated worlds with seeds that nobody has tried, and Hypothesis with fresh examples: SEEDS=1000,"
	@echo "              FIRST=27 begins there; what fails is printed with the command that repeats it"
	@echo "make fuzz     search for input that breaks a reader: answers, URLs, requests, cursors, filters; FUZZ_S=600 seconds"
	@echo "make chaos    kill real processes under load and count what arrives;"
	@echo "              ROWS=F05,F07 STORE=postgres|sqlite TRIALS=40 SEED=1 choose, CONTROL=1 plants a bug: must end with Error 1;"
	@echo "              without ROWS it also plants every bug of the simulation and of the model, which must be noticed;"
	@echo "              LONG=1 (PART=L1|L2|L3): the long set, in three parts of an hour or so"
	@echo "make setup    the virtual environment alone, in $(VENV): exactly what $(LOCK) names, each file checked by its hash"
	@echo "make lock     renew the locks after a change of dependencies in pyproject.toml (needs uv); UPGRADE=1 takes the newest"
	@echo "make audit-dependencies  ask for known vulnerabilities of what is locked"
	@echo "make sbom     write dist/hookline-VERSION.cdx.json: what a release consists of, with versions and licences"
	@echo "make clean    remove what the above made; databases stay"

setup: $(READY)

# The stamp is written last: an interrupted set-up is done again.
$(READY): pyproject.toml $(LOCK)
	@if [ -e $(VENV) ] && ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  echo "$(VENV) is broken or too old, making it anew"; rm -rf $(VENV); \
	fi
	@echo "installing what is in $(LOCK) into $(VENV)"
	@if command -v uv >/dev/null 2>&1; then \
	  set -e; \
	  [ -e $(VENV) ] || uv venv --quiet --python '>=3.11' $(VENV); \
	  uv pip install --quiet --python $(PYTHON) --require-hashes --requirement $(LOCK); \
	  uv pip install --quiet --python $(PYTHON) --no-deps --no-build-isolation --editable .; \
	else \
	  set -e; \
	  if [ ! -e $(VENV) ]; then \
	    found=; \
	    for candidate in python3 python3.11 python3.12 python3.13 python3.14; do \
	      if $$candidate -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	        found=$$candidate; break; \
	      fi; \
	    done; \
	    [ -n "$$found" ] || { echo "Python 3.11 or newer with venv is needed; none was found." >&2; exit 1; }; \
	    $$found -m venv $(VENV); \
	  fi; \
	  $(PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m ensurepip; \
	  $(PIP) --require-hashes --requirement $(LOCK); \
	  $(PIP) --no-deps --no-build-isolation --editable .; \
	fi
	@touch $(READY)

run: setup
	$(VENV)/bin/hookline serve --dev --host 127.0.0.1 --port $(PORT) --database sqlite:///hookline.db

# A receiver that is not ours. Its tests are skipped without it, which under CI is a failure (tests/run_parts.py).
nginx:
	@if command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	  echo "installing nginx"; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends nginx-light; } \
	    >/dev/null || echo "nginx could not be installed; what needs it is skipped" >&2; \
	else echo "nginx is not installed (that takes root and apt-get); what needs it is skipped" >&2; fi

# The reader of our metrics, alert rules and dashboard; likewise.
prometheus:
	@if command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	  echo "installing prometheus"; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends prometheus; } \
	    >/dev/null || echo "prometheus could not be installed; what needs it is skipped" >&2; \
	else echo "prometheus is not installed (that takes root and apt-get); what needs it is skipped" >&2; fi

# The oldest PostgreSQL that is supported, for the contract of the stores; likewise. The programs alone are wanted: no cluster is made or started.
CLUSTERS = /etc/postgresql-common/createcluster.conf
postgres15:
	@if [ -x /usr/lib/postgresql/15/bin/postgres ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	  echo "installing postgresql-15"; export DEBIAN_FRONTEND=noninteractive; \
	  { apt-get -qq update && apt-get -qq install -y --no-install-recommends postgresql-common \
	    && sed -i.before 's/^#*create_main_cluster.*/create_main_cluster = false/' $(CLUSTERS) \
	    && apt-get -qq install -y --no-install-recommends postgresql-15; } \
	    >/dev/null || echo "postgresql-15 could not be installed; the contract runs without it" >&2; \
	  if [ -e $(CLUSTERS).before ]; then mv $(CLUSTERS).before $(CLUSTERS); fi; \
	else echo "postgresql-15 is not installed (that takes root and apt-get); the contract runs without it" >&2; fi

# The dashboard is tested in it; likewise. The font is named so that its pictures look the same everywhere.
browser:
	@if command -v chromium >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	  echo "installing chromium"; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
	    chromium fonts-dejavu-core; } \
	    >/dev/null || echo "chromium could not be installed; what needs it is skipped" >&2; \
	else echo "chromium is not installed (that takes root and apt-get); what needs it is skipped" >&2; fi

# Packets are lost in one row of the chaos set; likewise.
nftables:
	@if command -v nft >/dev/null 2>&1 || [ -x /usr/sbin/nft ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	  echo "installing nftables"; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends nftables iproute2; } \
	    >/dev/null || echo "nftables could not be installed; what needs it is left out" >&2; \
	else echo "nftables is not installed (that takes root and apt-get); what needs it is left out" >&2; fi

# The guides' code and generated clients are run in their languages; likewise. Debian 12 has a newer cargo as cargo-web.
languages:
	@for pair in php:php-cli node:nodejs npm:npm go:golang-go cargo:cargo-web cargo:cargo javac:default-jdk-headless mvn:maven ruby:ruby; do \
	  program=$${pair%%:*} package=$${pair##*:}; \
	  if command -v $$program >/dev/null 2>&1; then :; \
	  elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    echo "installing $$package"; \
	    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $$package; } \
	      >/dev/null || echo "$$package could not be installed; what needs it is skipped" >&2; \
	  else echo "$$program is not installed (that takes root and apt-get); what needs it is skipped" >&2; fi; \
	done

# Wrong clocks, for one row of the fault matrix; likewise.
faketime:
	@if ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	  echo "installing libfaketime"; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends libfaketime; } \
	    >/dev/null || echo "libfaketime could not be installed; what needs it is skipped" >&2; \
	else echo "libfaketime is not installed (that takes root and apt-get); what needs it is skipped" >&2; fi

test: setup nginx prometheus postgres15 browser languages faketime
	@$(PYTHON) tests/run_parts.py

test-security: setup nginx postgres15 browser faketime
	@$(PYTHON) tests/run_parts.py --security

check: setup
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(PYTHON) scripts/mirror_client.py --check
	$(PYTHON) tests/run_parts.py --fast

bench: setup
	@set -e; for script in throughput sender store isolation scaling; do \
	  echo "== $$script"; $(PYTHON) benchmarks/$$script.py; \
	done

sim: setup
	@$(PYTHON) tests/fresh.py --seeds $(SEEDS) $(if $(FIRST),--first $(FIRST))

# Guided by coverage; what fails is printed with the command that repeats it.
FUZZ_S = 600
fuzz: setup
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(PYTHON) --require-hashes --requirement requirements-fuzz.lock; \
	else $(PIP) --require-hashes --requirement requirements-fuzz.lock; fi
	@$(PYTHON) tests/fuzz/fuzz.py --seconds $(FUZZ_S)

# make itself exits 2 whatever the exit status of what it runs; with CONTROL=1 that is the good end.
chaos: setup nftables faketime
	@$(PYTHON) -m tests.chaos.whole $(if $(ROWS),--rows $(ROWS)) $(if $(STORE),--store $(STORE)) \
	  $(if $(TRIALS),--trials $(TRIALS)) $(if $(SEED),--seed $(SEED)) $(if $(SCALE),--scale $(SCALE)) \
	  $(if $(LONG),--long) $(if $(PART),--part $(PART)) $(if $(CONTROL),--control)

lock: setup
	@$(PYTHON) scripts/lock.py $(if $(UPGRADE),--upgrade)

audit-dependencies: setup
	@$(PYTHON) scripts/audit_dependencies.py

sbom: setup
	@$(PYTHON) scripts/sbom.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .fuzz .languages dist build
	find src tests benchmarks -name __pycache__ -type d -exec rm -rf {} +
