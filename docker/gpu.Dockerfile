# GPU image, for one machine and for the head and the workers of a Ray cluster alike: Ray wants the same Python, the same
# Ray and the same packages on all of them.
#
#   docker build -f docker/gpu.Dockerfile -t stepvalue-gpu:0.1.0 .
#   docker run --rm --gpus all --shm-size 8g -v "$PWD/data:/data" -v stepvalue-cache:/cache stepvalue-gpu:0.1.0 \
#     label data.path=/data/problems.jsonl policy=hf policy.model=Qwen/Qwen2.5-Math-7B-Instruct run_dir=/data/run
#
# /data must be writable for user 10001: `sudo install -d -o 10001 data`. Not built or run yet; tests/lint/test_docker.py and tests/lint/test_pins.py check what they can.
FROM vllm/vllm-openai:v0.32.0

# tini passes signals on and reaps the processes that an engine leaves behind; KubeRay's probes call wget.
RUN apt-get update \
    && apt-get install -y --no-install-recommends tini wget \
    && rm -rf /var/lib/apt/lists/* \
    && ln -sf "$(command -v python3)" /usr/local/bin/python \
    && useradd --uid 10001 --user-group --create-home stepvalue \
    && install -d -o stepvalue -g stepvalue /data /cache

WORKDIR /opt/stepvalue
# Packages first: they change seldom, so that a change of the code builds a small layer. The base image has the same vLLM and torch
# already, which stay. --no-deps: the lock is complete.
COPY requirements-gpu.lock ./
RUN uv pip install --system --no-cache --no-deps --require-hashes -r requirements-gpu.lock
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY pipeline ./pipeline
COPY conf ./conf
RUN uv pip install --system --no-cache --no-deps .
# `bench-gpu`, see docker/entrypoint.sh: what a first half hour on a GPU measures, and no other test.
COPY tests/__init__.py tests/checkout.py tests/settings.py ./tests/
COPY tests/bench ./tests/bench
COPY tests/tiny ./tests/tiny

COPY docker/entrypoint.sh /usr/local/bin/stepvalue-entrypoint

# /cache is for storage of the node itself (a volume): a model is downloaded, and its kernels are compiled, once per node and not
# again by each worker or start. CUDA's compatibility libraries let datacentre GPUs with a driver older than 580 run CUDA 13.
ENV HF_HOME=/cache/huggingface \
    VLLM_CACHE_ROOT=/cache/vllm \
    TRITON_CACHE_DIR=/cache/triton \
    STEPVALUE_CACHE=/cache/stepvalue \
    VLLM_ENABLE_CUDA_COMPATIBILITY=1 \
    VLLM_NO_USAGE_STATS=1 \
    RAY_USAGE_STATS_ENABLED=0 \
    PYTHONUNBUFFERED=1
USER 10001:10001
# Not /data: Python imports from the current folder first, and what lies in /data is not trusted.
WORKDIR /home/stepvalue
ENTRYPOINT ["tini", "--", "stepvalue-entrypoint"]
CMD ["--help"]
