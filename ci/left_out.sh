# Sourced by scripts in ci/. `left_out WHAT WHY` prints in one line that a check cannot run
# on this machine, and why. With CI=true it ends the script as a failure.
left_out() {
    echo "left out: $1: $2"
    [[ ${CI:-} != true ]] || exit 1
}
