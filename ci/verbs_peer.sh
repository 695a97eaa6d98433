#!/bin/busybox sh
# Runs a rank of the conformance suite in the second of two guests. The first guest connects,
# and sends its arguments in one line.
read -r arguments
# shellcheck disable=SC2086
exec /verbs $arguments
