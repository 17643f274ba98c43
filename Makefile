# What one types. What is done stands in scripts/. Settings go through the environment: BENCH_PORT=9000 make run.

.DEFAULT_GOAL := help
.PHONY: help run test test-agents check demo bench soak lock clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

run: ## Set everything up and serve (ARGS="--no-browser" and other options of `manage.py serve`)
	@exec scripts/run.sh $(ARGS)

test: ## Set everything up and run all tests (ARGS="tests/gateway -k stream" runs some)
	@exec scripts/test.sh $(ARGS)

test-agents: ## Let real coding agents work on a collection (fetches about 900 MB from npm, once)
	@exec scripts/test-agents.sh $(ARGS)

check: ## Every check that a change must pass (QUICK=1 leaves out the slow ones)
	@exec scripts/check.sh

demo: ## Fetch a small real model (about 130 MB), serve it here and ask it a panel
	@exec scripts/demo.sh $(ARGS)

bench: ## Measure speed and memory beside LiteLLM, Inspect AI and lm-evaluation-harness
	@exec scripts/bench.sh $(ARGS)

soak: ## Ten minutes of kills and outages; then the books are compared
	@exec scripts/soak.sh $(ARGS)

lock: ## Write the lock files anew
	@exec scripts/lock.sh $(ARGS)

clean: ## Remove what can be made again (never data)
	rm -rf .venv static-root bench/build .pytest_cache .mypy_cache .ruff_cache .hypothesis
