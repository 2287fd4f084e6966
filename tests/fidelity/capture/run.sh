#!/bin/bash
# run.sh GHOSTRANK RESULTS [PYTHON]: captures train.py's models with 2 and 4 processes, each in a network namespace of
# its own behind a link of 200 Mb/s or 1 Gb/s, and writes what 'profile check' finds, a line of JSON each. As root,
# on an idle machine: it measures time.
#
# Two more runs of each case, of the script as it is, are captured by tcpdump. What one has more bytes than the other is
# what its further steps sent; wire.py compares that with the ledger of the profile's job, pair by pair. Without tcpdump
# the script says so and goes on.
#
# RATES, RANKS, MODELS and STEPS play other cases; the ResNet has more steps, since they are short and scatter.
# WIRE_STEPS="25 45" are the lengths of those two runs, none if empty.
# PROFILES=DIR keeps the profiles, as MODEL-RANKS-RATE.yaml.
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

declare -A steps_of=([resnet]=605)  # others: 125
wire_steps=${WIRE_STEPS-25 45}
if [[ -n $wire_steps ]] && ! command -v tcpdump >/dev/null; then
  echo "tcpdump is not installed: bytes are not compared" >&2
  wire_steps=""
fi
sniffers=()

remove() {
  for ((rank = 0; rank < most_ranks; ++rank)); do
    ip link del "$bridge.$rank" 2>/dev/null || true
    ip netns del "$name$rank" 2>/dev/null || true
    rmdir "$quotas/$name$rank" 2>/dev/null || true
  done
  ip link del "$bridge" 2>/dev/null || true
}
end() {
  ((${#sniffers[@]} == 0)) || kill "${sniffers[@]}" 2>/dev/null || true
  remove
  rm -rf "$work"
}
trap end EXIT

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

# run_script RANKS MODEL STEPS: as it is.
run_script() { "$work/launch" "$name" "$1" "$shared" "$python" "$here/train.py" "$2" "$3"; }

# sniff RANKS MODEL STEPS: runs the script while tcpdump writes the headers of each namespace.
sniff() {
  local rank size=-1 last=-2
  rm -f "$work"/wire*.pcap "$work"/tcpdump*
  for ((rank = 0; rank < $1; ++rank)); do
    ip netns exec "$name$rank" tcpdump -Z root -i eth0 -s 128 -B 16384 -w "$work/wire$rank.pcap" tcp \
      2>"$work/tcpdump$rank" &
    sniffers+=($!)
  done
  for ((rank = 0; rank < $1; ++rank)); do
    until grep -q 'listening on' "$work/tcpdump$rank"; do
      if ! kill -0 "${sniffers[rank]}" 2>/dev/null; then
        cat "$work/tcpdump$rank" >&2
        exit 1
      fi
      sleep 0.1
    done
  done
  run_script "$@"
  # It drops what it has not read when it ends.
  while ((size != last)); do
    last=$size
    sleep 1.5
    size=$(cat "$work"/wire*.pcap | wc -c)
  done
  kill "${sniffers[@]}"
  wait "${sniffers[@]}" || true
  sniffers=()
}

# compare_bytes RANKS MODEL PROFILE: prints and writes into wire.json how the bytes of a step compare.
compare_bytes() {
  local rank steps hosts=() found=()
  for ((rank = 0; rank < $1; ++rank)); do hosts+=(--host "10.99.1.$((rank + 1))=$rank"); done
  "$ghostrank" profile check "$3" --print-job >"$work/job.yaml"
  "$ghostrank" run "$work/job.yaml" -q --json "$work/job.json" >/dev/null
  for steps in $wire_steps; do
    sniff "$1" "$2" "$steps"
    found+=("$work/diff$steps.json")
    # The store's connections are not the script's traffic.
    "$ghostrank" diff "$work/job.json" "$work"/wire*.pcap "${hosts[@]}" --iterations "$steps" --except-port 29500 \
      --json "${found[-1]}" >/dev/null
  done
  "$here/wire.py" "$work/job.json" "${found[@]}" "$work/wire.json"
}

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
        "$python" "$here/train.py" "$model" "${STEPS:-${steps_of[$model]:-125}}" >"$work/facts"
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
      rm -f "$work/wire.json"
      [[ -z $wire_steps ]] || compare_bytes "$ranks" "$model" "$profile"
      python3 - "$work/check.json" "$work/wire.json" "$model" "$ranks" "$rate" >>"$results" <<'LINE'
import json
import os
import sys

check, wire, model, ranks, rate = sys.argv[1:]
line = {"model": model, "ranks": int(ranks), "rate": rate, **json.load(open(check, encoding="utf-8"))}
if os.path.exists(wire):
    line["wire"] = json.load(open(wire, encoding="utf-8"))
print(json.dumps(line))
LINE
    done
  done
done
