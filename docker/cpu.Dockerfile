# CPU image: the environment `make setup` builds, with the default model, for trying things out and for dry runs.
#
#   docker build -f docker/cpu.Dockerfile -t stepvalue-cpu:0.1.0 .
#   docker run --rm --shm-size 2g -v "$PWD/data:/data" stepvalue-cpu:0.1.0 label data=sample run_dir=/data/run
#
# /data must be writable for user 10001: `sudo install -d -o 10001 data`.
FROM python:3.11.15-slim

# vLLM's CPU backend links libnuma; tini passes signals on and reaps the processes that an engine leaves behind.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libnuma1 make tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --create-home stepvalue \
    && install -d -o stepvalue -g stepvalue /opt/stepvalue /data

USER 10001:10001
WORKDIR /opt/stepvalue
COPY --chown=10001:10001 . .
RUN make setup && rm -rf "$HOME/.cache/uv" "$HOME/.cache/pip"

COPY docker/entrypoint.sh /usr/local/bin/stepvalue-entrypoint

ENV PATH=/opt/stepvalue/.venv/bin:$PATH \
    VLLM_NO_USAGE_STATS=1 \
    RAY_USAGE_STATS_ENABLED=0 \
    PYTHONUNBUFFERED=1
WORKDIR /home/stepvalue
ENTRYPOINT ["tini", "--", "stepvalue-entrypoint"]
CMD ["--help"]
