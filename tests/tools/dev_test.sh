#!/usr/bin/env bash
# tools/dev in a folder that is no checkout, with programs in place of the build's: lint says that it
# needs git, and does not wait for input; setup and build refuse an old cmake; processes are played
# on cores that tools/dev may use.
#   dev_test.sh PATH_OF_TOOLS_DEV
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tools" "$folder/bin"
cp "$1" "$folder/tools/dev"

# program PATH TEXT
program() {
  mkdir -p "$(dirname "$folder/$1")"
  printf '#!/bin/sh\n%s\n' "$2" >"$folder/$1"
  chmod +x "$folder/$1"
}
program bin/dpkg-query 'echo installed'  # every package is
program bin/cmake 'echo cmake version 3.25.1'
program build/release/ghostrank 'taskset -cp $$'

# dev ARGS...: leaves its status in $status, its output in $said
dev() {
  status=0
  said=$(env -u CI GIT_CEILING_DIRECTORIES="$(dirname "$folder")" PATH="$folder/bin:$PATH" \
    timeout 20 "$folder/tools/dev" "$@" 2>&1) || status=$?
}

dev lint
[[ $status == 3 && $said == *'this is no checkout of git'* ]] ||
  { echo "lint without git: status $status, not 3: $said" && exit 1; }

dev setup
[[ $status == 0 ]] || { echo "setup: status $status: $said" && exit 1; }
program bin/cmake 'echo cmake version 3.22.1'
for command in setup build; do
  dev $command
  [[ $status == 3 && $said == *'cmake is 3.22.1, which is too old: 3.25'* ]] ||
    { echo "$command with an old cmake: status $status, not 3: $said" && exit 1; }
done
program bin/cmake 'echo cmake version 4.0.2'

allowed=$(taskset -cp $$)
last=${allowed##*[ ,-]}
taskset -cp "$last" $$ >/dev/null
export GHOSTRANK_PROCESSES=1
dev run job.yaml
[[ $status == 0 && $said == *"list: $last" ]] ||
  { echo "a process on core $last: status $status: $said" && exit 1; }
