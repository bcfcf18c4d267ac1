#!/bin/sh
# `docker run IMAGE label ...` runs the pipeline, `docker run IMAGE bench-gpu MODEL` the first half hour on a GPU; a shell, Python or
# Ray named first runs as it is.
# exec: the signals that stop a container reach Python itself; what was committed stays, and the same command resumes.
set -eu

case "${1:-}" in
  sh | bash | python | python3 | ray) exec "$@" ;;
  bench-gpu)
    shift
    PYTHONPATH=/opt/stepvalue exec python -u -m tests.bench.gpu "$@"
    ;;
esac
exec stepvalue "$@"
