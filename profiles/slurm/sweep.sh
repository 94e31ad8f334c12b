#!/usr/bin/env bash
# profiles/slurm/sweep.sh SWEEP.yaml SHARDS [OPTION OF sbatch]...
# A sweep as one job array, a shard a job, and then a job that gathers them into one file and figure.
# Options are of the shards and come last, so that they win: -p gpu --gpus 1 -t 480 --mem 32G
# A shard that is told to stop, by preemption or a minute before its time is up, goes on where it was.
set -euo pipefail
if [ $# -lt 2 ] || ! [[ $2 =~ ^[1-9][0-9]*$ ]]; then
    sed -n '2s/^# /usage: /p' "$0" >&2
    exit 2
fi
sweep=$(printf %q "$1") shards=$2
shift 2
mkdir -p .snakemake/slurm_logs
logs=.snakemake/slurm_logs/sweep
common=(--parsable --ntasks 1 --requeue --open-mode append)

# 75: stopped, the same command goes on. Steps are signalled, this script is not; where the job as a whole is not to end
# (it was not cancelled, say), it asks for its place in the queue, since Slurm would call one that leaves by itself failed.
read -r -d '' run <<END || true
srun --ntasks 1 --cpus-per-task "\$SLURM_CPUS_PER_TASK" sims sweep $sweep --shard \$SLURM_ARRAY_TASK_ID/$shards
code=\$?
job=\${SLURM_ARRAY_JOB_ID}_\$SLURM_ARRAY_TASK_ID
if [ \$code -eq 75 ] && [ "\$(squeue --noheader --jobs \$job --format %T)" = RUNNING ]; then
    scontrol requeue \$job && sleep 600
fi
exit \$code
END
array=$(sbatch "${common[@]}" --array "1-$shards" --cpus-per-task 4 --mem 8G --time 120 --signal TERM@60 \
    --output "$logs-%A_%a.log" "$@" --wrap "$run")
gather=$(sbatch "${common[@]}" --dependency "afterok:$array" --kill-on-invalid-dep yes --cpus-per-task 1 --mem 8G \
    --time 120 --output "$logs-%j.log" --wrap "srun --ntasks 1 sims sweep $sweep")
echo "shards: job array $array; gathered by job $gather; logs: $logs-*.log"
