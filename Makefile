# Two commands do everything from a clean clone: make demo, make test. CONTRIBUTING.md has the rest.

SHELL := /bin/bash -euo pipefail
VENV := .venv/bin
STAMPS := build/stamps
JOBS ?= $(shell nproc)
# Whether the wheel has the kernels, which take most of its time: ON or OFF; make demo CUDA=ON
CUDA ?= $(if $(wildcard /dev/nvidiactl),ON,OFF)
# The package as built in build/dev; torch finds its entry points there too.
DEV := PYTHONPATH=$(CURDIR)/build/dev/python

NATIVE_SOURCES := $(shell find csrc include cmake CMakeLists.txt -type f)
PACKAGE_SOURCES := $(shell find python -type f -not -path '*/__pycache__/*')

.PHONY: help
help:
	@echo "make demo           train on the digits data set with pccl, then with gloo, and compare"
	@echo "make demo-netns     the same training between two network namespaces (root)"
	@echo "make demo-phases    training on four namespaces, whose optical switch changes at each epoch (root)"
	@echo "make soak-phases    SWITCHES=200 SEED=1: switch phases with faults of the switch"
	@echo "make test           build, C++ tests, Python tests, multi-process tests"
	@echo "make test-gpu       build, test and measure on a machine with several GPUs"
	@echo "make test-rdma      suites in virtual machines with RDMA devices (SUITES=ci, or names)"
	@echo "make test-launchers real launchers, in folders of their own (LAUNCHERS=srun-pmi2, or other names)"
	@echo "make test-upstream  PyTorch's own distributed tests on pccl, all of them"
	@echo "make test-clients   frameworks on pccl beside Gloo, each in its own environment (NAME=\"ray dask\")"
	@echo "make lint           layers, formatting, clang-tidy, ruff, mypy, links of the documentation"
	@echo "make format         formats C++ and Python files"
	@echo "make docs           the documentation as a site, build/docs; links that lead nowhere fail"
	@echo "make bench          pccl against gloo through torch, 1 KB to 64 MB"
	@echo "make bench-all      every benchmark; see benchmarks/README.md"
	@echo "make asan, tsan     C++ tests, and ranks in Python, under the sanitizers"
	@echo "make sanitize-verbs the suites of RDMA alone, under the sanitizers (ONLY=\"tsan contract\")"
	@echo "make faults         every fault on every transport in every operation (FAULTS=--help)"
	@echo "make chaos          10,000 seeded runs of all schedules on links that fail (RUNS, SEED)"
	@echo "make fuzz           every parser of outside bytes, FUZZ_SECONDS each"
	@echo "make fingerprint-cost  what comparing every call takes, beside an all_reduce of 1 KiB"
	@echo "make mutants        kill rate of the schedule verifier over small faults"
	@echo "make topology-table what NCCL's search finds on real machines, and what ours does"
	@echo "make dev            build build/dev: libpccl.so, the modules, the C++ tests"
	@echo "make venv           .venv with torch and all tools"

$(STAMPS)/venv: tools/setup.sh tools/setup_nixl.sh tools/debian_packages.sh pyproject.toml
	tools/setup.sh
	mkdir -p $(STAMPS) && touch $@

.PHONY: venv
venv: $(STAMPS)/venv

$(STAMPS)/demo-venv: tools/setup.sh tools/debian_packages.sh pyproject.toml
	[ $(STAMPS)/venv -nt pyproject.toml ] || tools/setup.sh demo
	mkdir -p $(STAMPS) && touch $@

.PHONY: dev
dev: venv
	cmake --preset dev -DPCCL_WITH_CUDA=$(CUDA) >/dev/null
	cmake --build --preset dev --parallel $(JOBS)

$(STAMPS)/wheel-$(CUDA): $(NATIVE_SOURCES) $(PACKAGE_SOURCES) pyproject.toml README.md | $(STAMPS)/demo-venv
	@[ $(CUDA) = ON ] || echo "no GPU here: built for CPU tensors alone (with CUDA=ON for GPUs, too, where nvcc is)"
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(VENV)/pip install . --no-build-isolation --no-deps --force-reinstall \
		-Ccmake.define.PCCL_WITH_CUDA=$(CUDA)
	touch $@

.PHONY: demo
demo: $(STAMPS)/wheel-$(CUDA)
	tools/demo.sh

.PHONY: demo-netns
demo-netns: $(STAMPS)/wheel-$(CUDA)
	tools/demo_netns.sh

.PHONY: demo-phases
demo-phases: venv $(STAMPS)/wheel-$(CUDA)
	PYTHONPATH=tests $(VENV)/python -m support.circuit_hosts $(PHASE_ARGS)

.PHONY: soak-phases
soak-phases: venv $(STAMPS)/wheel-$(CUDA)
	PYTHONPATH=tests $(VENV)/python -m support.phase_soak --seed $(or $(SEED),1) --switches $(or $(SWITCHES),200)

.PHONY: lint
lint: dev
	tools/lint.sh

.PHONY: format
format: venv
	tools/lint.sh format

.PHONY: docs
docs: venv
	$(VENV)/python tools/build_docs.py

.PHONY: test
test: dev
	JOBS=$(JOBS) tools/test.sh

.PHONY: test-upstream
test-upstream: dev
	$(DEV) $(VENV)/python tests/upstream/run.py

.PHONY: test-clients
test-clients: dev
	$(DEV) $(VENV)/python tests/clients/run.py $(NAME)

.PHONY: test-rdma
test-rdma: dev
	tools/setup_rdma.sh
	$(VENV)/python tools/rdma_suites.py $(SUITES)

.PHONY: test-launchers
test-launchers: dev
	$(DEV):tests $(VENV)/python -m launchers.run $(LAUNCHERS)

.PHONY: test-gpu
test-gpu:
	tools/gpu_suite.sh

.PHONY: bench
bench: venv $(STAMPS)/wheel-$(CUDA)
	$(VENV)/python benchmarks/cpu_torch.py

BENCHMARKS := cpu_torch cpu_numpy cpu_mixed cpu_scale cpu_dtypes cpu_ddp $(if $(filter 0,$(shell id -u)),cpu_netns)

.PHONY: bench-all
bench-all: venv $(STAMPS)/wheel-$(CUDA)
	tools/setup_benchmarks.sh
	failed=; for name in $(BENCHMARKS); do \
	    $(VENV)/python benchmarks/$$name.py || failed="$$failed $$name"; \
	done; [ -z "$$failed" ] || { echo "slower than a peer, or failed:$$failed"; exit 1; }

.PHONY: faults
faults: dev
	$(DEV):tests $(VENV)/python -m faults.matrix $(FAULTS)

.PHONY: chaos
chaos: dev
	build/dev/chaos --runs $(or $(RUNS),10000) --from $(or $(SEED),1)

.PHONY: fuzz
fuzz:
	tools/fuzz.sh

.PHONY: fingerprint-cost
fingerprint-cost: dev
	build/dev/fingerprint_cost

.PHONY: mutants
mutants: dev
	build/dev/schedule_mutants

.PHONY: topology-table
topology-table: dev
	build/dev/topology_table

.PHONY: sanitize-verbs
sanitize-verbs: venv
	JOBS=$(JOBS) tools/sanitize_verbs.sh $(ONLY)

.PHONY: asan tsan
asan tsan: venv
	cmake --preset $@
	cmake --build --preset $@ --parallel $(JOBS)
	ctest --preset $@ --parallel $(JOBS)
	tools/sanitizer_smoke.sh $@
