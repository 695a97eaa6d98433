# Sourced by scripts of ci that run jobs between nodes: libfabric is installed unless it
# is here.
# Not -q: it closes the pipe, and what still writes to that fails.
if ! ldconfig -p | grep 'libfabric\.so\.1' >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq libfabric1 ||
        { echo "libfabric is not here and cannot be installed" >&2; exit 1; }
fi
