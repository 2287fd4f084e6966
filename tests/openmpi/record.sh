#!/bin/bash
# Writes tests/collectives/data/openmpi_messages.txt anew: a recording of the Open MPI installed here.
# Needs mpic++ (Debian: libopenmpi-dev), Open MPI 4.1; 13 processes share this machine.
set -euo pipefail
cd "$(dirname "$0")"
out=../collectives/data/openmpi_messages.txt
version=$(mpirun --version | sed -n '1s/.* //p')
program=$(mktemp) lines=$(mktemp)
trap 'rm -f "$program" "$lines"' EXIT
mpic++ -std=c++20 -O1 -DOMPI_SKIP_MPICXX record.cpp -o "$program" -ldl

play() { # [OPERATION ALGORITHM]: all of them, or one that can only be chosen at the start
  local options=(-n 13 --oversubscribe --mca pml ob1 --mca btl "self,vader" --mca mpi_yield_when_idle 1
    --mca coll "self,basic,libnbc,tuned" --mca coll_tuned_use_dynamic_rules 1)
  [[ $EUID == 0 ]] && options+=(--allow-run-as-root)
  [[ $# == 2 ]] && options+=(--mca "coll_tuned_$1_algorithm" "$2")
  mpirun "${options[@]}" "$program" "${@:1:1}" >>"$lines"
}

play
for algorithm in 1 2 3 4; do play allgatherv "$algorithm"; done
{
  echo "# What Open MPI $version sends, rank by rank and in order (tests/openmpi/record.sh)."
  cat "$lines"
} >"$out"
