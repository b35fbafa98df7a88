#!/usr/bin/env bash
# The work of action.yml: installs wrote unless it is installed, and runs COMMAND under wrote trace
# in FOLDER, and CHECK on each state that a power loss could have left. The reports are written to
# REPORTS.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
wrote="${WROTE:-wrote}"
if ! command -v "$wrote" >/dev/null; then
  cargo install --locked --path "$root/crates/wrote-cli"
fi
mkdir -p "$REPORTS"
options=(--force --format github -o "$REPORTS/wrote.txt" --html "$REPORTS/wrote.html")
options+=(--sarif "$REPORTS/wrote.sarif" --under "${FOLDER:-.}")
if [ -n "${CHECK:-}" ]; then
  options+=(--check "$CHECK" --within "${WITHIN:-30s}" --junit "$REPORTS/wrote.xml")
else
  options+=(--fail-on warning --on-disk)
fi
status=0
"$wrote" trace "${options[@]}" -- bash -c "$COMMAND" || status=$?
# GitHub reads the annotations from the log; the last line is the verdict.
cat "$REPORTS/wrote.txt"
tail -n 1 "$REPORTS/wrote.txt" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
exit "$status"
