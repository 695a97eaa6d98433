#!/usr/bin/env bash
# Checks all dependencies, those of tests too, with cargo-deny (`cargo install --locked
# cargo-deny`, which takes minutes) against deny.toml:
#
#   ci/deny.sh               licences, sources, and packages that are banned
#   ci/deny.sh advisories    known defects and yanked versions; fetches RustSec's database
#
# Not a step of `.ci/run`: the results change without a change of this repository, and the
# database needs a network.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v cargo-deny >/dev/null || { echo "deny: cargo-deny is not installed" >&2; exit 1; }
case ${1:-} in
'') cargo deny --offline check licenses bans sources ;;
advisories) cargo deny check advisories ;;
*) sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2 ;;
esac
