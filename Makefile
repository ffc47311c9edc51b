# Two commands do all set-up: `make run` and `make test`. Both need only Python 3.11+ and make.
PYTHON ?= python3
RUN := .venv
DEV := .venv-dev

.PHONY: run test lint format lock params clean

run: $(RUN)/installed ## the studies, from nothing to report/index.html
	@PATH="$(CURDIR)/$(RUN)/bin:$$PATH" && predictive-credit params --check && dvc repro && \
	  echo "The decision and its evidence: report/index.html"

test: $(DEV)/installed ## formatting, lint, types, import contracts, tests
	@PATH="$(CURDIR)/$(DEV)/bin:$$PATH" && ruff format --check . && ruff check . && mypy && lint-imports && \
	  pytest -n 2 --dist loadfile

lint: $(DEV)/installed
	@PATH="$(CURDIR)/$(DEV)/bin:$$PATH" && ruff format --check . && ruff check . && mypy && lint-imports

format: $(DEV)/installed
	@PATH="$(CURDIR)/$(DEV)/bin:$$PATH" && ruff format . && ruff check --fix .

params: $(RUN)/installed ## conf/ composed into params.yaml
	@$(RUN)/bin/predictive-credit params --write

lock: $(DEV)/installed ## names, versions and hashes; no index and no address
	@$(DEV)/bin/pip install -q uv && \
	$(DEV)/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate --extra build -q pyproject.toml -o requirements.txt && \
	$(DEV)/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate --extra build --extra dev -q pyproject.toml -o requirements-dev.txt

# Each environment is rebuilt when its lock or the project's metadata changes.
$(RUN)/installed: requirements.txt pyproject.toml
	$(call install,$(RUN),requirements.txt)

$(DEV)/installed: requirements-dev.txt pyproject.toml
	$(call install,$(DEV),requirements-dev.txt)

define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or later is needed, $$($(PYTHON) --version) is what $(PYTHON) runs; give another with PYTHON=" >&2; exit 1; }
	@echo "installing the packages of $(2) into $(1), a minute or two"
	@$(PYTHON) -m venv $(1)
	@$(1)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r $(2)
	@$(1)/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
endef

clean:
	rm -rf $(RUN) $(DEV)
