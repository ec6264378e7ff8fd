# The bytepair server and command line in one small image.
#
#   build    compiles the engine and the transport, and turns the five distributions into wheels, then into a virtualenv
#   (final)  Python and that virtualenv: no compiler, no sources, no root
#
# Base images are pinned by tag; to pin by digest give it as a build argument, for example
# --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:...
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG RUST_IMAGE=rust:1.95-slim-bookworm

FROM ${RUST_IMAGE} AS rust

FROM ${PYTHON_IMAGE} AS build
# The linker and the C library's start files are all that rustc needs of a C toolchain. No versions:
# Debian's archive keeps only the newest build of each, so a pinned one soon fails to install.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY --from=rust /usr/local/rustup /usr/local/rustup
COPY --from=rust /usr/local/cargo /usr/local/cargo
ENV RUSTUP_HOME=/usr/local/rustup \
    CARGO_HOME=/usr/local/cargo \
    PATH=/usr/local/cargo/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1

# Third-party packages come first: they change far less often than the sources, so these layers stay cached.
COPY deploy/requirements-build.txt deploy/requirements.txt /build/
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m venv /build/tools \
    && /build/tools/bin/pip install --require-hashes --only-binary :all: -r /build/requirements-build.txt
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m venv --without-pip /opt/bytepair \
    && /build/tools/bin/pip --python /opt/bytepair/bin/python install \
        --require-hashes --only-binary :all: -r /build/requirements.txt

# The crates stay in cache mounts between builds; --locked refuses a Cargo.lock that does not match Cargo.toml.
COPY engine /build/engine
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/engine/target \
    PATH=/build/tools/bin:$PATH MATURIN_PEP517_ARGS=--locked \
    pip wheel --no-deps --no-build-isolation --wheel-dir /build/wheels /build/engine

COPY proto/python /build/bytepair-proto
COPY server /build/server
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/server/target \
    PATH=/build/tools/bin:$PATH MATURIN_PEP517_ARGS=--locked \
    pip wheel --no-deps --no-build-isolation --wheel-dir /build/wheels /build/server

COPY client /build/client
COPY tools /build/bytepair-tools
RUN /build/tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /build/wheels \
        /build/bytepair-proto /build/client /build/bytepair-tools \
    && /build/tools/bin/pip --python /opt/bytepair/bin/python install --no-deps --no-index /build/wheels/*.whl \
    && /build/tools/bin/pip --python /opt/bytepair/bin/python check

FROM ${PYTHON_IMAGE}
ARG VERSION=dev
LABEL org.opencontainers.image.title="bytepair" \
      org.opencontainers.image.description="Exact tokenizer service over gRPC" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /opt/bytepair /opt/bytepair
COPY LICENSE /opt/bytepair/LICENSE
# The two commands run once as root: that proves that they import, and writes the byte code of what
# they use of the standard library, which a read-only container would compile again at every start.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin bytepair \
    && /opt/bytepair/bin/bytepair-server --help > /dev/null \
    && /opt/bytepair/bin/bytepair --help > /dev/null
ENV PATH=/opt/bytepair/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
# The server's own defaults. They are not set as variables here: those would win over a configuration file.
EXPOSE 50051 9464
# gRPC health, asked by the image's own client: SERVING only when every configured encoding is loaded.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["bytepair", "health", "--target", "127.0.0.1:50051", "--timeout", "4"]
ENTRYPOINT ["bytepair-server"]
