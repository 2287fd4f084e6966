#!/bin/bash
# two_ranks.sh PYTHON SCRIPT ARGUMENT...: two processes of a job on this machine, by torchrun's variables.
set -u
python=$1
shift
export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 OMP_NUM_THREADS=1
MASTER_PORT=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export MASTER_PORT
RANK=1 "$python" "$@" &
other=$!
RANK=0 "$python" "$@"
status=$?
[ $status -ne 0 ] && kill $other 2>/dev/null
wait $other || exit 1
exit $status
