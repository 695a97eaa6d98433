#!/bin/busybox sh
# A rank of the suite that the other one of two guests asks for, by a connection:
# the first line is what arguments it has.
read -r arguments
# shellcheck disable=SC2086
exec /verbs $arguments
