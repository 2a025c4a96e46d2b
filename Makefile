# `make accept` tests this machine, `make test` tests rigproof. `make help` lists the rest.
MACHINE ?=
PROFILE ?= accept
STATION ?= auto
OUT     ?= reports
ONLY    ?=
GPUS    ?=
BURN    ?=
SHEETS  ?=
IMAGE   ?=
REPORT_LANG ?=
BASE    ?=
COLD    ?=
ADD     ?=
RUN     ?= $(OUT)/latest
CARD    ?=
RUNS    ?=
TORCH_PYTHON ?= python3
AT      ?=
USER_UNIT ?=
RUN_AS  ?=
NIGHTLY ?=
FAIL_FAST ?=
CHECKS  ?=
REPLACE ?=
JSON    ?=
COVER   ?=

# A misspelt setting must not be taken for none: MACHNE=tower.toml would test without its file.
SETTINGS := MACHINE AS PROFILE STATION OUT ONLY GPUS BURN SHEETS CHECKS IMAGE REPORT_LANG BASE COLD ADD FAIL_FAST RUN RUNS CARD TORCH_PYTHON \
            AT USER_UNIT RUN_AS NIGHTLY REPLACE JSON COVER PYTHON TESTS
# Settings of other programs, and of rigproof's own tests, that recipes find in their environment.
PASSED_ON := MAKEFLAGS RIGPROOF_% PYTEST_% DOCKER_% TMPDIR %_proxy %_PROXY
UNKNOWN := $(strip $(foreach name,$(.VARIABLES),\
             $(if $(filter command,$(firstword $(origin $(name)))),$(filter-out $(SETTINGS) $(PASSED_ON),$(name)))))
# The word that may be meant by one that there is not, where python3 can be started.
MEANT = $(shell python3 -m acceptance.cli.nearest_word "$(1)" $(2) 2>/dev/null)
ifneq ($(UNKNOWN),)
$(error $(UNKNOWN) is no setting of rigproof: $(call MEANT,$(firstword $(UNKNOWN)),$(SETTINGS)) the settings are $(SETTINGS) (`make help` explains them))
endif

# The AS of make itself, and of an environment, is an assembler.
ifneq ($(origin AS),command line)
override AS :=
endif
# With another command it would test this machine without the file.
ifneq ($(AS),)
ifneq ($(filter-out plan,$(or $(MAKECMDGOALS),help)),)
$(error AS=$(AS) is for `make plan` alone: MACHINE=$(AS) tests this machine against the file)
endif
endif

# What is set to 0 must not be taken for set.
SWITCHES := COLD COVER FAIL_FAST REPLACE JSON USER_UNIT
$(foreach name,$(SWITCHES),$(if $(filter-out 0 1,$($(name))),\
  $(error $(name)=$($(name)): give 1 for on; 0 or nothing is off)))
$(foreach name,$(SWITCHES),$(eval override $(name) := $(filter 1,$($(name)))))

RIGPROOF := .venv/bin/rigproof
# Otherwise each worker compiles all tests where the environment tells Python to write no bytecode.
BYTECODE := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(CURDIR)/.venv/.bytecode"
# One worker more than there are processors: many tests wait for the end of a program.
SPREAD := -n $(shell expr $$(nproc) + 1) --dist worksteal
# Every Python that starts with these two in its environment is measured.
MEASURED := COVERAGE_PROCESS_START="$(CURDIR)/pyproject.toml" COVERAGE_FILE="$(CURDIR)/.venv/.coverage/data"
# The tests of `make test`, and its sweeps.
ALL_TESTS = not docker and not slurm and not tools and not e2e and not gpu and not attack and not browser
LANGUAGE = $(if $(REPORT_LANG),--lang "$(REPORT_LANG)")
ARGS = --profile "$(PROFILE)" --station "$(STATION)" --out "$(OUT)" \
       $(if $(MACHINE),--machine "$(MACHINE)") $(if $(ONLY),--only "$(ONLY)") \
       $(if $(GPUS),--gpus "$(GPUS)") $(if $(BURN),--burn "$(BURN)") $(if $(IMAGE),--image "$(IMAGE)") $(if $(FAIL_FAST),--fail-fast) \
       $(if $(SHEETS),--sheets "$(SHEETS)") $(if $(CHECKS),--checks "$(CHECKS)") $(LANGUAGE)

.DEFAULT_GOAL := help
COMMANDS := help accept smoke nightly train soak baseline nightly-install nightly-uninstall plan inventory judge \
            report compare history capacity image engine tools selftest selftest-long selftest-gpu nights-gpu beside-gpu \
            minutes-gpu messages measurements mutants test test-all test-rest test-attack test-e2e test-slurm test-gpu lint docs bench clean
.PHONY: $(COMMANDS)

# A misspelt command, said as `rigproof` says it.
.DEFAULT:
	@echo 'rigproof: there is no command $@: $(call MEANT,$@,$(COMMANDS)) `make help` lists the commands' >&2; exit 2

help: ## list these commands
	@echo 'rigproof: the acceptance test for a newly built NVIDIA GPU machine'
	@echo
	@awk -F ':.*## ' '/^[a-z0-9 -]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo 'settings: MACHINE=FILE PROFILE=smoke|accept|nightly|train|soak STATION=auto|docker|host OUT=DIR'
	@echo '  AS=FILE ONLY=EXPR GPUS=0,1 BURN=SECONDS SHEETS=DIR CHECKS=DIR IMAGE=REF RUN=DIR RUNS="DIR DIR"'
	@echo '  REPORT_LANG=en|zh-CN REPLACE=1 FAIL_FAST=1 AT=HH:MM USER_UNIT=1 RUN_AS=USER NIGHTLY="--on-fail COMMAND ..." PYTHON=python3'
	@echo '  TORCH_PYTHON=python3 (an interpreter with torch) JSON=1 COVER=1'
	@echo '  1 switches a setting on, 0 or nothing switches it off'

# Both stamps are in .venv, so that removing it is enough to start again.
.venv/.run: pyproject.toml scripts/venv
	@scripts/venv
	@touch $@

.venv/.test: pyproject.toml scripts/venv
	@scripts/venv test
	@touch .venv/.run $@

# Compile changed modules and templates once, instead of in every session of a run.
.venv/.compiled: .venv/.run $(shell find acceptance -name '*.py' -o -name '*.j2' -o -name '*.css')
	@.venv/bin/python -I -m compileall -qq --invalidation-mode checked-hash acceptance || true
	@.venv/bin/python -I -c 'from acceptance.reports.page import render; render.load()'
	@touch $@

accept: .venv/.compiled ## test this machine and say whether it is fit (PROFILE=accept)
	@$(RIGPROOF) accept $(ARGS)

smoke train soak: .venv/.run ## the same with that profile: minutes; ten minutes; hours
	@$(MAKE) --no-print-directory accept PROFILE=$@

# Exit code 4: the machine is in use, the night was skipped. Too many in a row are a FAIL.
nightly: .venv/.compiled ## a shorter test, compared with earlier nights; skipped while in use
	@$(RIGPROOF) nightly $(if $(filter file,$(origin PROFILE)),$(subst --profile "accept",,$(ARGS)),$(ARGS)) $(NIGHTLY) || [ $$? -eq 4 ]

baseline: .venv/.run ## make a passed run the baseline (RUN=DIR, default: newest; REPLACE=1)
	@$(RIGPROOF) baseline accept "$(RUN)" --out "$(OUT)" $(if $(REPLACE),--replace) $(LANGUAGE)

nightly-install: .venv/.run ## install a systemd timer for it (as root; AT=04:30; or USER_UNIT=1)
	@$(RIGPROOF) schedule install $(if $(AT),--at "$(AT)") $(if $(USER_UNIT),--user) $(if $(RUN_AS),--run-as "$(RUN_AS)") $(LANGUAGE) -- \
	  --station "$(STATION)" --out "$(OUT)" $(if $(MACHINE),--machine "$(MACHINE)") $(if $(GPUS),--gpus "$(GPUS)") $(if $(IMAGE),--image "$(IMAGE)") $(if $(SHEETS),--sheets "$(SHEETS)") $(if $(CHECKS),--checks "$(CHECKS)") $(NIGHTLY)

nightly-uninstall: .venv/.run ## stop the timer and remove its units (as root; or USER_UNIT=1)
	@$(RIGPROOF) schedule uninstall $(if $(USER_UNIT),--user) $(LANGUAGE)

plan: .venv/.compiled ## show what accept would do, with every limit; runs nothing (AS=FILE: for the machine that a file declares)
	@$(RIGPROOF) plan $(ARGS) $(if $(AS),--as "$(AS)")

inventory: .venv/.run ## show the observed machine (JSON=1; MACHINE=FILE drafts a machine file)
	@$(RIGPROOF) inventory $(if $(MACHINE),--write "$(MACHINE)") $(if $(JSON),--json) $(LANGUAGE)

judge: .venv/.run ## judge a recorded run again (RUN=DIR, default: the newest)
	@$(RIGPROOF) judge "$(RUN)" $(LANGUAGE)

report: .venv/.run ## rebuild the reports of a recorded run (RUN=DIR, default: the newest; CARD=FILE.svg: the top of the page as a picture)
	@$(RIGPROOF) report "$(RUN)" $(if $(CARD),--card "$(CARD)") $(LANGUAGE)

compare: .venv/.run ## compare recorded runs (RUNS="DIR DIR")
	@$(RIGPROOF) compare $(RUNS) $(LANGUAGE)

history: .venv/.run ## show the measurements of this machine, night by night
	@$(RIGPROOF) history --out "$(OUT)" $(LANGUAGE)

capacity: .venv/.run ## show what this machine can train (RUN=DIR, default: the newest)
	@$(RIGPROOF) capacity "$(RUN)" $(LANGUAGE)

image: .venv/.run ## build the container image if it is missing (BASE=REF: on another base)
	@$(RIGPROOF) image build --out "$(OUT)" $(if $(BASE),--base "$(BASE)")

engine: ## install and start the distribution's container engine (as root)
	@scripts/engine

tools: ## install the distribution's test tools (as root)
	@scripts/tools

selftest: .venv/.test ## show which faults rigproof catches, and how small (as root; minutes)
	@.venv/bin/python -m selftest --out "$(OUT)"

selftest-long: .venv/.test ## the same with 200 kills, 50 full disks, all mutants and more (hours)
	@.venv/bin/python -m selftest --out "$(OUT)" --long
	@RIGPROOF_TESTS=all .venv/bin/python -m selftest.mutation --all --out "$(OUT)/selftest"

mutants: .venv/.test ## change limits and rules, a sample: the tests must notice each change
	@.venv/bin/python -m selftest.mutation --held --sample 300 --out "$(OUT)/selftest"

test: .venv/.test ## run rigproof's own tests, 2 to 5 minutes on two cores, 550 MB; no GPU, no engine (COVER=1: coverage)
	@$(if $(COVER),rm -rf .venv/.coverage && mkdir .venv/.coverage)
	@$(BYTECODE) $(if $(COVER),$(MEASURED)) .venv/bin/python -m pytest -q $(SPREAD)
	@$(if $(COVER),$(MEASURED) .venv/bin/coverage combine -q && $(MEASURED) .venv/bin/coverage report)

test-all: .venv/.test ## the same with every sweep and more random examples; minutes
	@RIGPROOF_TESTS=all $(BYTECODE) .venv/bin/python -m pytest -q $(SPREAD) -m "$(ALL_TESTS)"

test-rest: .venv/.test ## only what `make test` leaves out of that
	@RIGPROOF_TESTS=all $(BYTECODE) .venv/bin/python -m pytest --rest -q $(SPREAD) -m "$(ALL_TESTS)"

test-attack: .venv/.test ## test the parsers on altered recordings; minutes (RIGPROOF_ATTACKS=N)
	@$(BYTECODE) .venv/bin/python -m pytest -q -n auto -m attack tests/tools

test-e2e: .venv/.test .venv/.compiled ## test the whole harness with faults; needs `make tools engine`; minutes
	@.venv/bin/python -m pytest -q -rs -m 'e2e or tools or docker' $(TESTS)

# With a lock of the machine of its own: its runs are no load that another run must not see.
test-slurm: .venv/.test ## test submission on a real Slurm (as root; munge slurmctld slurmd)
	@unshare --mount sh -c 'mount -t tmpfs none /run/lock && exec .venv/bin/python -m pytest -q -rs -m slurm tests/fleet'

# Of each target that runs the loads itself, with an interpreter that has torch.
TORCH = $(TORCH_PYTHON) -c 'import msgspec, pytest, torch' 2>/dev/null || { \
  echo "rigproof: $(TORCH_PYTHON) has no torch, pytest and rigproof's own packages: name one that has them, TORCH_PYTHON=PATH" >&2; exit 2; }

selftest-gpu: ## inject faults on this machine's GPUs, then do five clean runs (TORCH_PYTHON)
	@$(TORCH)
	@$(TORCH_PYTHON) -m selftest.on_gpu --out "$(OUT)" $(if $(MACHINE),--machine "$(MACHINE)")

nights-gpu: ## make a baseline and three nights on this machine's GPUs (MACHINE=FILE, TORCH_PYTHON)
	@$(TORCH)
	@$(TORCH_PYTHON) -m selftest.nights_on_gpu --out "$(OUT)/nights-gpu" --machine "$(MACHINE)"

beside-gpu: ## test whether checks that run side by side change a figure, on this machine's GPUs (TORCH_PYTHON)
	@$(TORCH)
	@$(TORCH_PYTHON) -m selftest.beside_on_gpu --out "$(OUT)/beside-gpu" $(if $(MACHINE),--machine "$(MACHINE)")

minutes-gpu: ## measure how long each profile takes on this machine's GPUs (TORCH_PYTHON, RUNS="smoke=5,accept=2")
	@$(TORCH)
	@$(TORCH_PYTHON) -m selftest.minutes_on_gpu --out "$(OUT)/minutes-gpu" $(if $(MACHINE),--machine "$(MACHINE)") $(if $(RUNS),--runs "$(RUNS)")

test-gpu: ## test our kernels on a GPU (TORCH_PYTHON: has torch and pytest)
	@$(TORCH)
	@$(TORCH_PYTHON) -B -m pytest -q -p no:cacheprovider -m gpu tests/gpu

messages: .venv/.test ## bring the translations up to date with the sentences (ADD=de: a new one)
	@scripts/messages $(ADD)

measurements: .venv/.test ## bring the tables of docs/measurements.md and docs/limits.md up to date, and give changed limits a new version
	@.venv/bin/python tests/expect/disk_page.py
	@.venv/bin/python tests/expect/measurement_page.py
	@.venv/bin/python tests/expect/limits_page.py
	@.venv/bin/python tests/expect/limits_version.py

lint: .venv/.test ## check style, import rules and types with tox
	@.venv/bin/tox run -q -e lint,type

docs: .venv/.test ## build the pages as a site that needs no network: build/site/index.html
	@.venv/bin/tox run -q -e docs
	@echo 'build/site/index.html'

bench: .venv/.test ## compare times with their goals, measure the harness's own cost (COLD=1: also a cold image build)
	@.venv/bin/python benchmarks/planned_times.py
	@.venv/bin/python benchmarks/harness.py
	@.venv/bin/python benchmarks/cpu_gemm.py
	@.venv/bin/python benchmarks/gpu_watch.py
	@.venv/bin/python benchmarks/burn.py
	@.venv/bin/python benchmarks/page.py
	@.venv/bin/python benchmarks/history.py
	@.venv/bin/python benchmarks/fleet_collect.py
	@.venv/bin/python benchmarks/fleet_outliers.py
	@.venv/bin/python benchmarks/container.py $(if $(COLD),--cold)

clean: ## remove what make built (not the reports)
	@rm -rf .venv .tox build dist
	@find acceptance -name __pycache__ -prune -exec rm -rf {} +
