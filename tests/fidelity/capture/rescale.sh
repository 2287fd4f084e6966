#!/bin/bash
# rescale.sh GHOSTRANK [PYTHON]: predicts runs of 8 processes from captures with 2 and with 4, and holds them against real
# runs of 8, over 200 Mb/s. Each process has a fifth of a core in all of them, so that 8 leave a fifth of two cores idle.
# As root, on an idle machine with 2 cores or more. Exit 1: a prediction from 4 is off by more than 5 %.
set -euo pipefail
ghostrank=$1
here=$(cd "$(dirname "$0")" && pwd)
readonly rate=200mbit within=5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

SHARE=20 RATES=$rate RANKS="2 4 8" PROFILES=$work "$here/run.sh" "$ghostrank" "$work/results.jsonl" "${2:-python3}"

# predicted FROM TO: median step of TO ranks, in milliseconds, from a profile.
predicted() {
  "$ghostrank" profile rescale "$1" --dp "$2" -o "$work/rescaled.yaml"
  "$ghostrank" profile check "$work/rescaled.yaml" --print-job >"$work/job.yaml"
  "$ghostrank" run "$work/job.yaml" -q --json "$work/job.json" >/dev/null
  python3 -c 'import json, sys; print(1e3 * json.load(open(sys.argv[1]))["step_time"]["median"])' "$work/job.json"
}

status=0
echo "== 8 ranks, predicted and real"
for model in ${MODELS:-mlp resnet gpt}; do
  real=$(python3 - "$work/results.jsonl" "$model" <<'REAL'
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
print(*(1e3 * row["rows"][0]["measured"] for row in rows if row["model"] == sys.argv[2] and row["ranks"] == 8))
REAL
  )
  for from in 2 4; do
    step=$(predicted "$work/$model-$from-$rate.yaml" 8)
    error=$(awk -v a="$step" -v b="$real" 'BEGIN { printf "%+.1f", 100 * (a / b - 1) }')
    printf '%-8s from %d: %8.2f ms, real %8.2f ms, %s %%\n' "$model" "$from" "$step" "$real" "$error"
    if ((from == 4)); then awk -v e="$error" -v w=$within 'BEGIN { exit !(e <= w && e >= -w) }' || status=1; fi
  done
done
exit $status
