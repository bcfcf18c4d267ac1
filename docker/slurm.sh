#!/bin/bash
# Not yet run on Slurm; tests/test_slurm.py runs it with stand-ins for srun, scontrol and ray.
#
# One job on Slurm, on one node or on several. The words after the script are those after `python -m pipeline`:
#
#   sbatch --nodes=1 docker/slurm.sh doctor policy.model=NAME run_dir=/shared/runs/math
#   sbatch --nodes=1 docker/slurm.sh label data.path=/shared/my.jsonl policy.model=NAME run_dir=/shared/runs/math
#   sbatch --nodes=4 docker/slurm.sh label data.path=/shared/my.jsonl policy.model=NAME run_dir=/shared/runs/math
#
# Submit it from the checkout, with the environment of requirements-gpu.lock activated; both on storage that all nodes see.
# README.md beside this file goes through it line by line.
#SBATCH --job-name=stepvalue
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
set -u

# Five minutes before the time limit Slurm sends SIGUSR1, to this shell alone: the run commits what it has, ends with 75, and the
# job goes back into the queue. SIGTERM is the end of the job (scancel): the run commits, and the job stays ended.
# The pipeline leaves its number in the first file. The second one is there once it must stop: a signal may come before the number.
own=$(mktemp -d) || exit 2
trap 'rm -rf "$own"' EXIT
export STEPVALUE_PID_FILE="$own/pid"
requeue=
signals=0
stop() {
  signals=$((signals + 1))
  touch "$STEPVALUE_PID_FILE.stop"
  if [ -s "$STEPVALUE_PID_FILE" ]; then
    kill -TERM "$(cat "$STEPVALUE_PID_FILE")" 2>/dev/null
  fi
}
trap 'requeue=${requeue:-yes}; stop' USR1
trap 'requeue=no; stop' TERM

cd "$SLURM_SUBMIT_DIR" || exit 2

# Models and compiled kernels on the node's own disk: one download and one compilation per node. HF_HOME stays where it is, because
# the token of `hf auth login` lies in it.
node_folder="/tmp/stepvalue-$(id -u)"
local_cache="${STEPVALUE_NODE_CACHE:-$node_folder}"
models="${HF_HOME:-$local_cache/huggingface}"
export HF_HUB_CACHE="${HF_HUB_CACHE:-${HUGGINGFACE_HUB_CACHE:-$models/hub}}"
export HF_XET_CACHE="${HF_XET_CACHE:-$models/xet}"
export VLLM_CACHE_ROOT="${VLLM_CACHE_ROOT:-$local_cache/vllm}"
export TRITON_CACHE_DIR="${TRITON_CACHE_DIR:-$local_cache/triton}"

# With Ray's default of 15, which engines inherit, they wait for everything else that a node does.
export RAY_worker_niceness="${RAY_worker_niceness:-0}"

# Another account can make a folder of that name first, so every node looks whose it is. Nobody can exchange one that is ours.
# shellcheck disable=SC2016
private='mkdir -p "${0%/*}"; mkdir -m 700 "$0" 2>/dev/null; case "$(stat -c %u%A "$0")" in "$(id -u)drwx--"[-S]---) exit 0 ;; esac; '
# shellcheck disable=SC2016
private+='echo "stepvalue: $0 on $(uname -n) is not a folder that only you can enter: chmod 700 it, or name another folder in '
private+='STEPVALUE_NODE_CACHE" >&2; exit 2'

# The pipeline runs on this node, the first one, in either case. Where it must stop by then, it does not begin.
# The variables are those of the inner shell.
# shellcheck disable=SC2016
pipeline='trap "exit 75" TERM; echo $$ > "$STEPVALUE_PID_FILE"; '
# shellcheck disable=SC2016
pipeline+='[ ! -e "$STEPVALUE_PID_FILE.stop" ] || exit 75; exec python -m pipeline "$@"'
# These commands take cluster.address. Any other one needs no Ray, and runs here alone.
case "${1:-}" in
  doctor | plan | label | grow | score | judge | check | search) nodes=$SLURM_JOB_NUM_NODES ;;
  *) nodes=1 ;;
esac
if [ "$nodes" -eq 1 ]; then
  [ "$local_cache" != "$node_folder" ] || bash -c "$private" "$node_folder" || exit 2
  bash -c "$pipeline" pipeline "$@" &
else
  # Ray opens its folder to every account, and runs what whoever reaches its ports sends. So the folder lies in one that nobody
  # else can enter. The token stands in the environment alone, which srun hands on and other accounts cannot read.
  alone="$local_cache"
  [ "$alone" = "$node_folder" ] || alone="$local_cache/r"
  srun --export=ALL bash -c "$private" "$alone" || exit 2
  export RAY_TMPDIR="${RAY_TMPDIR:-$alone}" RAY_AUTH_MODE="${RAY_AUTH_MODE:-token}" RAY_AUTH_TOKEN
  [ -n "${RAY_AUTH_TOKEN:-}${RAY_AUTH_TOKEN_PATH:-}" ] || RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
  head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
  # Seconds that the head waits for the others, and they for it: 30 by default, too few for a cold file system.
  export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT="${RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT:-600}"
  # srun gives a task one CPU, and since Slurm 22.05 it does not take over --cpus-per-task from sbatch. Without that option
  # a node's Ray gets all CPUs that the job has on the first node.
  srun --export=ALL --cpus-per-task="${SLURM_CPUS_PER_TASK:-$SLURM_CPUS_ON_NODE}" \
    ray symmetric-run --address "$head:6379" --min-nodes "$nodes" -- \
    bash -c "$pipeline" pipeline "$@" cluster.address=auto &
fi
job=$!

while seen=$signals; wait "$job"; status=$?; [ "$signals" -ne "$seen" ]; do
  : # a signal has ended `wait`, not the job
done
# 143, or 241 through Ray: the signal reached Python before it could listen.
case "$requeue $status" in
  "yes 75" | "yes 143" | "yes 241") scontrol requeue "$SLURM_JOB_ID" ;;
esac
exit "$status"
