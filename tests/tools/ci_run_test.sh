#!/usr/bin/env bash
# .ci/run with a tools/dev that fails on purpose: every step is played, every failure is named.
#   ci_run_test.sh PATH_OF_CI_RUN
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/.ci" "$folder/tools"
cp "$1" "$folder/.ci/run"
cat >"$folder/tools/dev" <<'TEXT'
#!/usr/bin/env bash
echo "dev $*" >>played
case "$*" in
  test) exit 8 ;;
  'sanitize quick fuzz') exit 1 ;;
esac
TEXT
chmod +x "$folder/tools/dev"

# expect STATUS STEPS... : plays the steps; leaves the output in $said
expect() {
  local wanted=$1 status=0
  shift
  rm -f "$folder/played"
  said=$("$folder/.ci/run" "$@" 2>&1) || status=$?
  ((status == wanted)) || { echo "status $status, not $wanted: $said" && exit 1; }
}

# has TEXT: is a line of it, blanks aside
has() {
  grep -qE "^$1\$" <<<"$(tr -s ' ' <<<"$said")" || { echo "no line '$1' in: $said" && exit 1; }
}

expect 1 all
has 'lint [0-9:]+ [0-9:]+ passed'
has 'tests [0-9:]+ [0-9:]+ FAILED \(8\)'
has 'fuzz [0-9:]+ [0-9:]+ FAILED \(1\)'
has 'memory [0-9:]+ [0-9:]+ passed'
has 'FAILED: tests fuzz'
[[ $(wc -l <"$folder/played") == 6 ]] || { echo "not every step was played" && exit 1; }

expect 1
has 'FAILED: tests'
[[ $(wc -l <"$folder/played") == 3 ]] || { echo "not the usual steps were played" && exit 1; }

expect 0 lint minimal
[[ $(<"$folder/played") == $'dev lint\ndev minimal quick' ]] || { echo "other steps were played" && exit 1; }

expect 2 nonesuch
[[ ! -e $folder/played ]] || { echo "an unknown step started something" && exit 1; }
