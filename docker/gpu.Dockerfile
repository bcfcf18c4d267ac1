# GPU image, for one machine and for the head and the workers of a Ray cluster alike: Ray wants the same Python, the same
# Ray and the same packages on all of them.
#
#   docker build -f docker/gpu.Dockerfile -t stepvalue-gpu:0.1.0 .
#   docker run --rm --gpus all --shm-size 8g -v "$PWD/data:/data" stepvalue-gpu:0.1.0 \
#     label data.path=/data/problems.jsonl policy=hf policy.model=Qwen/Qwen2.5-Math-7B-Instruct run_dir=/data/run
#
# /data must be writable for user 10001.
FROM vllm/vllm-openai:v0.30.0

# tini passes signals on and reaps the processes that an engine leaves behind; KubeRay's probes call wget.
RUN apt-get update \
    && apt-get install -y --no-install-recommends tini wget \
    && rm -rf /var/lib/apt/lists/* \
    && ln -sf "$(command -v python3)" /usr/local/bin/python \
    && useradd --uid 10001 --user-group --create-home stepvalue \
    && install -d -o stepvalue -g stepvalue /data

WORKDIR /opt/stepvalue
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY pipeline ./pipeline
COPY conf ./conf
# The base image's own vLLM and torch satisfy the extra and stay; ray[default] adds the job server that `ray job submit`
# and KubeRay talk to.
RUN uv pip install --system --no-cache ".[gpu]" "ray[default]==2.60.0"

COPY docker/entrypoint.sh /usr/local/bin/stepvalue-entrypoint

# The cache for models lies with the data, so that it outlives the container.
ENV HF_HOME=/data/.cache/huggingface \
    VLLM_NO_USAGE_STATS=1 \
    RAY_USAGE_STATS_ENABLED=0 \
    PYTHONUNBUFFERED=1
USER 10001:10001
# Not /data: Python imports from the current folder first, and what lies in /data is not trusted.
WORKDIR /home/stepvalue
ENTRYPOINT ["tini", "--", "stepvalue-entrypoint"]
CMD ["--help"]
