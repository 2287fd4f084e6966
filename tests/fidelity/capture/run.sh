#!/bin/bash
# run.sh GHOSTRANK RESULTS [PYTHON]: captures train.py's models with 2 and 4 processes, each in a network namespace of
# its own behind a link of 200 Mb/s or 1 Gb/s, and writes what 'profile check' finds, a line of JSON each. As root,
# on an idle machine: it measures time.
#
# RATES, RANKS, MODELS and STEPS play other cases; PROFILES=DIR keeps the profiles, as MODEL-RANKS-RATE.yaml.
# SHARE=20 gives each process 20 % of a core, and refuses a run that left less than 20 % of the machine idle.
set -euo pipefail
ghostrank=$1
results=$2
python=${3:-python3}
here=$(cd "$(dirname "$0")" && pwd)
readonly name=grcap$$ bridge=grb$$ most_ranks=16 period_us=20000 least_idle=20
work=$(mktemp -d)

# Where the kernel keeps quotas: version 1 of control groups, or 2.
quotas=/sys/fs/cgroup/cpu
[[ -e $quotas/cgroup.procs ]] || quotas=/sys/fs/cgroup
shared=none
[[ -z ${SHARE:-} ]] || shared=$quotas

remove() {
  for ((rank = 0; rank < most_ranks; ++rank)); do
    ip link del "$bridge.$rank" 2>/dev/null || true
    ip netns del "$name$rank" 2>/dev/null || true
    rmdir "$quotas/$name$rank" 2>/dev/null || true
  done
  ip link del "$bridge" 2>/dev/null || true
}
trap 'remove; rm -rf "$work"' EXIT

# make N RATE: namespaces with an address each, shaped where they send and where they receive.
make() {
  remove
  ip link add "$bridge" type bridge
  ip link set "$bridge" up
  for ((rank = 0; rank < $1; ++rank)); do
    ip netns add "$name$rank"
    ip link add "$bridge.$rank" type veth peer name eth0 netns "$name$rank"
    ip link set "$bridge.$rank" master "$bridge" up
    ip -n "$name$rank" address add "10.99.1.$((rank + 1))/24" dev eth0
    ip -n "$name$rank" link set eth0 up
    ip -n "$name$rank" link set lo up
    tc -n "$name$rank" qdisc add dev eth0 root handle 1: htb default 1
    tc -n "$name$rank" class add dev eth0 parent 1: classid 1:1 htb rate "$2" burst 32kb cburst 32kb quantum 65536
    tc qdisc add dev "$bridge.$rank" root handle 1: htb default 1
    tc class add dev "$bridge.$rank" parent 1: classid 1:1 htb rate "$2" burst 32kb cburst 32kb quantum 65536
    [[ -z ${SHARE:-} ]] || give_share "$quotas/$name$rank"
  done
}

give_share() {
  local quota=$((period_us * SHARE / 100))
  mkdir "$1"
  if [[ -e $1/cpu.max ]]; then
    echo "$quota $period_us" >"$1/cpu.max"
  else
    echo $period_us >"$1/cpu.cfs_period_us"
    echo $quota >"$1/cpu.cfs_quota_us"
  fi
}

# The command that is captured: a process in every namespace.
cat >"$work/launch" <<'LAUNCH'
#!/bin/bash
namespaces=$1
export WORLD_SIZE=$2 MASTER_ADDR=10.99.1.1 MASTER_PORT=29500 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0
quotas=$3
shift 3
pids=()
for ((rank = 0; rank < WORLD_SIZE; ++rank)); do
  (
    [[ $quotas == none ]] || echo $BASHPID >"$quotas/$namespaces$rank/cgroup.procs"
    RANK=$rank exec ip netns exec "$namespaces$rank" "$@"
  ) &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
exit $status
LAUNCH
chmod +x "$work/launch"

# Jiffies of all processors: idle (with those that wait for disks), and all.
jiffies() { awk '/^cpu / { print $5 + $6, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat; }

: >"$results"
for rate in ${RATES:-200mbit 1gbit}; do
  for ranks in ${RANKS:-2 4}; do
    make "$ranks" "$rate"
    for model in ${MODELS:-mlp resnet gpt}; do
      profile=$work/$model.yaml
      read -r idle_before all_before < <(jiffies)
      "$ghostrank" profile capture -o "$profile" -- "$work/launch" "$name" "$ranks" "$shared" \
        "$python" "$here/train.py" "$model" "${STEPS:-85}" >"$work/facts"
      read -r idle_after all_after < <(jiffies)
      idle=$((100 * (idle_after - idle_before) / (all_after - all_before)))
      if [[ -n ${SHARE:-} ]] && ((idle < least_idle)); then
        echo "$model, $ranks ranks, $rate: $idle % of the machine were idle, less than $least_idle %: not measured" >&2
        exit 1
      fi
      "$ghostrank" profile check "$profile" --json "$work/check.json" >"$work/table"
      [[ -z ${PROFILES:-} ]] || cp "$profile" "$PROFILES/$model-$ranks-$rate.yaml"
      echo "== $model, $ranks ranks, $rate; $idle % of the machine were idle"
      cat "$work/facts" "$work/table"
      python3 - "$work/check.json" "$model" "$ranks" "$rate" >>"$results" <<'LINE'
import json
import sys

check = json.load(open(sys.argv[1], encoding="utf-8"))
print(json.dumps({"model": sys.argv[2], "ranks": int(sys.argv[3]), "rate": sys.argv[4], **check}))
LINE
    done
  done
done
