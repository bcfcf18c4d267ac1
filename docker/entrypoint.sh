#!/bin/sh
# `docker run IMAGE label ...` runs the pipeline; a shell, Python or Ray named first runs as it is.
# exec: the signals that stop a container reach Python itself; what was committed stays, and the same command resumes.
set -eu

case "${1:-}" in
  sh | bash | python | python3 | ray) exec "$@" ;;
esac
exec stepvalue "$@"
