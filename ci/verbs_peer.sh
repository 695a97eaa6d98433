#!/bin/busybox sh
# Runs a rank of the conformance suite in the second of two guests. The first guest connects,
# and sends its arguments in one line; without a line it only waits until this guest listens.
read -r arguments || exit 0
# shellcheck disable=SC2086
exec /verbs $arguments
