#!/bin/bash
# rescale.sh GHOSTRANK [PYTHON]: predicts runs of 8 processes from captures with 2, with 4, and by a fit of both, and holds
# them against real runs of 8, over 200 Mb/s. Each process has a fifth of a core in all of them, so that 8 leave a fifth of
# two cores idle. As root, on an idle machine with 2 cores or more. Exit 1: a prediction by the fit is off by more than 5 %.
#
# Throttled steps scatter by a tenth, so each capture has 205, some 80 recorded and 80 held out; STEPS gives another number.
# MODELS plays some of the models only; PROFILES=DIR keeps profiles and results.
set -euo pipefail
ghostrank=$1
here=$(cd "$(dirname "$0")" && pwd)
readonly rate=200mbit within=5
work=${PROFILES:-}
if [[ -z $work ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi

STEPS=${STEPS:-205} WIRE_STEPS="" SHARE=20 RATES=$rate RANKS="2 4 8" PROFILES=$work "$here/run.sh" "$ghostrank" "$work/results.jsonl" "${2:-python3}"

# predicted TO FROM...: median step of TO ranks, in milliseconds, from profiles. Fails where they are refused.
predicted() {
  local to=$1
  shift
  "$ghostrank" profile rescale "$@" --dp "$to" -o "$work/rescaled.yaml" &&
    "$ghostrank" profile check "$work/rescaled.yaml" --print-job >"$work/job.yaml" &&
    "$ghostrank" run "$work/job.yaml" -q --json "$work/job.json" >/dev/null &&
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
  for from in 2 4 "2 4"; do
    profiles=()
    for ranks in $from; do profiles+=("$work/$model-$ranks-$rate.yaml"); done
    if ! step=$(predicted 8 "${profiles[@]}"); then
      echo "$model from $from: no prediction"
      status=1
      continue
    fi
    error=$(awk -v a="$step" -v b="$real" 'BEGIN { printf "%+.1f", 100 * (a / b - 1) }')
    printf '%-8s from %-4s %8.2f ms, real %8.2f ms, %s %%\n' "$model" "$from:" "$step" "$real" "$error"
    grep '^# fitted: .*standard error' "$work/rescaled.yaml" || true
    if [[ $from == "2 4" ]]; then awk -v e="$error" -v w=$within 'BEGIN { exit !(e <= w && e >= -w) }' || status=1; fi
  done
done
exit $status
