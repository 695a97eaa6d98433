#!/usr/bin/env bash
# Tests `tsumugi run --hosts` over a real sshd on this machine, which the script starts with
# keys of its own on an unprivileged port. Checks that output and exit codes come back, that
# the death of a rank ends the job, and that no process is left. Installs OpenSSH if it is
# missing and the user is root.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

sshd=$(command -v sshd || echo /usr/sbin/sshd)
if [[ ! -x $sshd ]] || ! command -v ssh >/dev/null; then
    # Only root can install packages, as on a CI machine.
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null ||
        ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends \
            openssh-server openssh-client; } >/dev/null 2>&1; then
        left_out ssh "sshd is missing and cannot be installed"
        exit 0
    fi
fi
folder=$(mktemp -d)
server=
clean() {
    [[ -z $server ]] || kill "$server" 2>/dev/null || true
    rm -r "$folder"
}
trap clean EXIT
# If root runs it, sshd needs this folder, which only root can write to.
[[ $(id -u) != 0 ]] || mkdir -p /run/sshd
chmod 700 "$folder"
for key in host user; do
    ssh-keygen -q -t ed25519 -N '' -f "$folder/$key"
done
cp "$folder/user.pub" "$folder/authorized"
port=$((20000 + $$ % 10000))
cat >"$folder/server" <<END
Port $port
ListenAddress 127.0.0.1
HostKey $folder/host
AuthorizedKeysFile $folder/authorized
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
END
cat >"$folder/client" <<END
Host one two
  HostName 127.0.0.1
  Port $port
  IdentityFile $folder/user
  IdentitiesOnly yes
  StrictHostKeyChecking accept-new
  UserKnownHostsFile $folder/known
  LogLevel ERROR
END
"$sshd" -D -e -f "$folder/server" 2>"$folder/server.log" &
server=$!
export TSUMUGI_RSH="ssh -T -o BatchMode=yes -F $folder/client"
for _ in $(seq 300); do
    kill -0 "$server" 2>/dev/null || break
    $TSUMUGI_RSH one true 2>"$folder/log" && break
    sleep 0.1
done
if ! $TSUMUGI_RSH one true; then
    # For example because the account is locked.
    cat "$folder/server.log"
    left_out ssh "sshd refuses the login of this user"
    exit 0
fi

cargo build --quiet --examples --bins
target=$PWD/target/debug
run() { timeout 120 "$target/tsumugi" run --hosts one,two "$@"; }
run -n 4 "$target/examples/hello" | tee "$folder/log"
[[ $(grep -c 'of 4 drew number' "$folder/log") == 4 ]]
code=0
run -n 2 sh -c 'exit 7' >"$folder/log" 2>&1 || code=$?
[[ $code == 7 ]] || { cat "$folder/log"; echo "ssh: exit code $code, not 7" >&2; exit 1; }
# A rank is killed: the launcher ends the other one.
(run -n 2 sh -c 'echo here $$; exec sleep 100' || echo "code $?") >"$folder/log" 2>&1 &
job=$!
for _ in $(seq 300); do
    [[ $(grep -c '^here' "$folder/log") == 2 ]] && break
    sleep 0.1
done
kill -9 "$(sed -n 's/^here //p;T;q' "$folder/log")"
wait "$job"
grep -q '^code 137$' "$folder/log" || { cat "$folder/log"; echo "ssh: code not 137" >&2; exit 1; }
# sshd may need some time to end the processes of a client that has gone.
for _ in $(seq 300); do
    pgrep -f "$target/tsumugi agent" >/dev/null || break
    sleep 0.1
done
if pgrep -f "$target/tsumugi agent" >/dev/null; then
    echo "ssh: an agent still runs 30 s after the jobs" >&2
    exit 1
fi
echo "ssh: output, exit codes and a death from two hosts, over $($sshd -V 2>&1 | head -1)"
