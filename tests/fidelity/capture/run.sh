#!/bin/bash
# run.sh GHOSTRANK RESULTS [PYTHON]: captures train.py's models with 2 and 4 processes, each in a network namespace of
# its own behind a link of 200 Mb/s or 1 Gb/s, and writes what 'profile check' finds, a line of JSON each. As root,
# on an idle machine: it measures time.
set -euo pipefail
ghostrank=$1
results=$2
python=${3:-python3}
here=$(cd "$(dirname "$0")" && pwd)
readonly name=grcap$$
readonly bridge=grb$$
work=$(mktemp -d)

remove() {
  for ((rank = 0; rank < 4; ++rank)); do
    ip netns del "$name$rank" 2>/dev/null || true
  done
  ip link del "$bridge" 2>/dev/null || true
  rm -rf "$work"
}
trap remove EXIT

# make N RATE: namespaces with an address each, shaped where they send and where they receive.
make() {
  remove
  mkdir -p "$work"
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
  done
}

# The command that is captured: a process in every namespace.
cat >"$work.launch" <<'LAUNCH'
#!/bin/bash
namespaces=$1
export WORLD_SIZE=$2 MASTER_ADDR=10.99.1.1 MASTER_PORT=29500 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0
shift 2
pids=()
for ((rank = 0; rank < WORLD_SIZE; ++rank)); do
  RANK=$rank ip netns exec "$namespaces$rank" "$@" &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
exit $status
LAUNCH
chmod +x "$work.launch"
trap 'remove; rm -f "$work.launch"' EXIT

: >"$results"
for rate in ${RATES:-200mbit 1gbit}; do
  for ranks in ${RANKS:-2 4}; do
    make "$ranks" "$rate"
    for model in ${MODELS:-mlp resnet gpt}; do
      profile=$work/$model.yaml
      "$ghostrank" profile capture -o "$profile" -- "$work.launch" "$name" "$ranks" "$python" "$here/train.py" \
        "$model" "${STEPS:-85}" >"$work/facts"
      "$ghostrank" profile check "$profile" --json "$work/check.json" >"$work/table"
      echo "== $model, $ranks ranks, $rate"
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
