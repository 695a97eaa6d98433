# Sourced by scripts in ci/ that run jobs between nodes: installs libfabric if it is missing.
#
# `grep -q` would close the pipe early, and `ldconfig`, which still writes, would fail.
if ! ldconfig -p | grep 'libfabric\.so\.1' >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq libfabric1 ||
        { echo "libfabric is missing and cannot be installed" >&2; exit 1; }
fi
