#!/usr/bin/env bash
# tools/dev in a folder that is no checkout: lint says so and ends, it does not wait for input.
#   dev_test.sh PATH_OF_TOOLS_DEV
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tools" "$folder/bin"
cp "$1" "$folder/tools/dev"
# Every package is installed.
printf '#!/bin/sh\necho installed\n' >"$folder/bin/dpkg-query"
chmod +x "$folder/bin/dpkg-query"

status=0
said=$(GIT_CEILING_DIRECTORIES=$(dirname "$folder") PATH=$folder/bin:$PATH timeout 20 "$folder/tools/dev" lint 2>&1) ||
  status=$?
[[ $status == 3 && $said == *'this is no checkout of git'* ]] ||
  { echo "lint without git: status $status, not 3: $said" && exit 1; }
