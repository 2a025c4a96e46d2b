# rigproof: `make accept` tests this machine, `make test` tests rigproof. `make help` lists the rest.
MACHINE ?=
PROFILE ?= accept
STATION ?= auto
OUT     ?= reports
ONLY    ?=
GPUS    ?=
BURN    ?=
IMAGE   ?=
REPORT_LANG ?=
BASE    ?=
COLD    ?=
RUN     ?= $(OUT)/latest
RUNS    ?=
TORCH_PYTHON ?= python3
AT      ?=
USER_UNIT ?=
RUN_AS  ?=
NIGHTLY ?=
REPLACE ?=

RIGPROOF := .venv/bin/rigproof
# Each worker compiles all of the tests otherwise, where Python is told to keep nothing.
BYTECODE := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(CURDIR)/.venv/.bytecode"
# In the order of their names: by their number of tests, some of the longest would come last, and a worker would wait.
SPREAD := -n auto --dist loadfile --no-loadscope-reorder
# What `make test` runs, and its sweeps.
SWEPT = not docker and not slurm and not tools and not e2e and not gpu and not attack and not browser
SPOKEN = $(if $(REPORT_LANG),--lang "$(REPORT_LANG)")
ARGS = --profile "$(PROFILE)" --station "$(STATION)" --out "$(OUT)" \
       $(if $(MACHINE),--machine "$(MACHINE)") $(if $(ONLY),--only "$(ONLY)") $(if $(GPUS),--gpus "$(GPUS)") $(if $(BURN),--burn "$(BURN)") \
       $(if $(IMAGE),--image "$(IMAGE)") $(SPOKEN)

.DEFAULT_GOAL := help
.PHONY: help accept smoke nightly soak baseline nightly-install nightly-uninstall plan inventory judge report compare history image engine tools selftest selftest-long selftest-gpu nights-gpu mutants test test-all test-attack test-e2e test-gpu lint bench clean

help: ## list these targets
	@echo 'rigproof: the acceptance test for a newly built NVIDIA GPU machine'
	@echo
	@awk -F ':.*## ' '/^[a-z0-9 -]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo 'settings: MACHINE=FILE PROFILE=smoke|accept|nightly|soak STATION=auto|docker|host OUT=DIR ONLY=EXPR GPUS=0,1 BURN=SECONDS IMAGE=REF RUN=DIR RUNS="DIR DIR" REPORT_LANG=en|zh-CN PYTHON=python3 AT=HH:MM USER_UNIT=1 RUN_AS=USER NIGHTLY=ARGUMENTS REPLACE=1'

# Both stamps are files of .venv, so that removing it is enough to start afresh.
.venv/.run: pyproject.toml scripts/venv
	@scripts/venv
	@touch $@

.venv/.test: pyproject.toml scripts/venv
	@scripts/venv test
	@touch .venv/.run $@

# What was pulled or edited since is compiled here, once, and not by every session of a run.
.venv/.compiled: .venv/.run $(shell find acceptance -name '*.py')
	@.venv/bin/python -I -m compileall -qq --invalidation-mode checked-hash acceptance || true
	@touch $@

accept: .venv/.compiled ## test this machine and say whether it is fit (PROFILE=accept)
	@$(RIGPROOF) accept $(ARGS)

smoke soak: .venv/.run ## the same with that profile: minutes, hours
	@$(MAKE) --no-print-directory accept PROFILE=$@

# 4: the machine is in use, and nothing was run or the night was given up, which is said and no failure until it happens too often.
nightly: .venv/.compiled ## ten minutes, held against the nights before, if nobody uses the machine (NIGHTLY='--on-fail COMMAND ...')
	@$(RIGPROOF) nightly $(subst --profile "accept",,$(ARGS)) $(NIGHTLY) || [ $$? -eq 4 ]

baseline: .venv/.run ## make a run that passed what later nights are held against (RUN=DIR, the newest if not given; REPLACE=1)
	@$(RIGPROOF) baseline accept "$(RUN)" --out "$(OUT)" $(if $(REPLACE),--replace) $(SPOKEN)

nightly-install: .venv/.run ## a systemd timer that runs it every night (as root; AT=04:30; USER_UNIT=1 for your own user; NIGHTLY='--on-fail COMMAND ...')
	@$(RIGPROOF) schedule install $(if $(AT),--at "$(AT)") $(if $(USER_UNIT),--user) $(if $(RUN_AS),--run-as "$(RUN_AS)") $(SPOKEN) -- \
	  --station "$(STATION)" --out "$(OUT)" $(if $(MACHINE),--machine "$(MACHINE)") $(if $(GPUS),--gpus "$(GPUS)") $(if $(IMAGE),--image "$(IMAGE)") $(NIGHTLY)

nightly-uninstall: .venv/.run ## stop that timer and remove all of it (USER_UNIT=1 for your own user's)
	@$(RIGPROOF) schedule uninstall $(if $(USER_UNIT),--user) $(SPOKEN)

plan: .venv/.compiled ## what accept would do, with every limit; runs nothing
	@$(RIGPROOF) plan $(ARGS)

inventory: .venv/.run ## the machine as it is found (MACHINE=FILE drafts a machine file)
	@$(RIGPROOF) inventory $(if $(MACHINE),--write "$(MACHINE)")

judge: .venv/.run ## judge a recorded run again (RUN=DIR, the newest if not given)
	@$(RIGPROOF) judge "$(RUN)" $(SPOKEN)

report: .venv/.run ## write the reports of a recorded run again (RUN=DIR)
	@$(RIGPROOF) report "$(RUN)" $(SPOKEN)

compare: .venv/.run ## recorded runs side by side (RUNS="DIR DIR")
	@$(RIGPROOF) compare $(RUNS) $(SPOKEN)

history: .venv/.run ## what this machine measured from night to night
	@$(RIGPROOF) history --out "$(OUT)" $(SPOKEN)

image: .venv/.run ## build the container's image, or find it (BASE=REF builds on another base)
	@.venv/bin/python -m acceptance.station.image $(if $(BASE),--base "$(BASE)")

engine: ## install and start the distribution's container engine (as root)
	@scripts/engine

tools: ## install the distribution's test tools (as root)
	@scripts/tools

selftest: .venv/.test ## what rigproof catches, and how little it takes: faulty machines through the real harness (as root; twelve minutes on two cores)
	@.venv/bin/python -m selftest --out "$(OUT)"

selftest-long: .venv/.test ## the same with 200 kills, 50 full disks, 10,000 clean journals, and every mutant (hours)
	@.venv/bin/python -m selftest --out "$(OUT)" --long
	@RIGPROOF_TESTS=all .venv/bin/python -m selftest.mutation --all --out "$(OUT)/selftest"

mutants: .venv/.test ## rigproof's own judgement mutated, a sample: the tests must notice each
	@RIGPROOF_TESTS=all .venv/bin/python -m selftest.mutation --held --sample 300 --out "$(OUT)/selftest"

test: .venv/.test ## the harness's own tests: no GPU, no engine, minutes
	@$(BYTECODE) .venv/bin/python -m pytest -q $(SPREAD)

test-all: .venv/.test ## the same with every sweep and hypothesis's own number of examples; minutes
	@RIGPROOF_TESTS=all $(BYTECODE) .venv/bin/python -m pytest -q $(SPREAD) -m "$(SWEPT)"

test-attack: .venv/.test ## parsers under attack: every recording cut, doubled, moved and altered; minutes (RIGPROOF_ATTACKS=N tries more)
	@$(BYTECODE) .venv/bin/python -m pytest -q -n auto -m attack tests/tools

test-e2e: .venv/.test ## the whole harness driven with faults; needs `make tools engine`; minutes
	@.venv/bin/python -m pytest -q -rs -m 'e2e or tools or docker' $(TESTS)

selftest-gpu: ## the faults that a GPU makes by itself, and five clean runs, on this machine's GPU, in place; TORCH_PYTHON has torch and rigproof's needs
	@$(TORCH_PYTHON) -m selftest.on_gpu --out "$(OUT)" $(if $(MACHINE),--machine "$(MACHINE)")

nights-gpu: ## a baseline and three short nights after it on this machine's GPUs, in place (MACHINE=FILE): no alarm, and how far each figure moves
	@$(TORCH_PYTHON) -m selftest.nights_on_gpu --out "$(OUT)/nights-gpu" --machine "$(MACHINE)"

test-gpu: ## our GPU kernels against their reference, on a GPU; TORCH_PYTHON=python3 names one that has torch and pytest
	@$(TORCH_PYTHON) -B -m pytest -q -p no:cacheprovider -m gpu tests/gpu

lint: .venv/.test ## layout, habits, import rule and types, through tox
	@.venv/bin/tox run -q -e lint,type

bench: .venv/.test ## what the harness itself costs (COLD=1 also builds the image from nothing)
	@.venv/bin/python benchmarks/harness.py
	@.venv/bin/python benchmarks/cpu_gemm.py
	@.venv/bin/python benchmarks/gpu_watch.py
	@.venv/bin/python benchmarks/burn.py
	@.venv/bin/python benchmarks/page.py
	@.venv/bin/python benchmarks/history.py
	@.venv/bin/python benchmarks/container.py $(if $(COLD),--cold)

clean: ## remove what make has built (not the reports)
	@rm -rf .venv .tox build dist
	@find acceptance -name __pycache__ -prune -exec rm -rf {} +
