#!/usr/bin/env bash
# Checks that nothing is left of a job two seconds after `kill -9` of one of its processes:
# the launcher, an agent, a rank, or a benchmark. The ranks here ignore SIGTERM and have
# started a process in another session. The hosts are this machine, reached by a shell.
#
# The two seconds hold where the processes that clean up get a core. On a crowded machine
# the cleanup may take longer, so a kill that takes more is tried again, twice.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --examples --bins

tsumugi=$PWD/target/debug/tsumugi
mark=left-$$-$RANDOM
work=$(mktemp -d)
marked() {
    grep -lzx "TSUMUGI_TEST_LEFT=$mark" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 || true
}
clean() {
    marked | xargs -r kill -KILL 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
cat >"$work/rsh" <<'END'
#!/bin/sh
shift
exec sh -c "$*"
END
cat >"$work/rank" <<'END'
#!/bin/sh
trap '' TERM
setsid sleep 1000 &
exec sleep 1000
END
chmod +x "$work/rsh" "$work/rank"

now() {
    date +%s%3N
}

failed() {
    cat "$work/log"
    for pid in $(marked); do
        echo "left: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")" >&2
    done
    ls "$work/tmp" >&2
    echo "left: $1" >&2
    exit 1
}

sleepers() {
    local pid count=0
    for pid in $(marked); do
        [[ $(cat "/proc/$pid/comm" 2>/dev/null) != sleep ]] || count=$((count + 1))
    done
    echo "$count"
}

# victim launcher|agent|rank: prints the process id of the launcher, of its first agent, or
# of a rank.
victim() {
    case $1 in
    launcher) echo "$launcher" ;;
    agent) pgrep -P "$launcher" -x tsumugi | head -1 ;;
    rank)
        local parent=$launcher
        [[ $what != *--hosts* ]] || parent=$(pgrep -P "$launcher" -x tsumugi | head -1)
        pgrep -P "$parent" -x sleep | head -1
        ;;
    esac
}

# kills WHO COUNT WORDS...: starts `tsumugi WORDS...`, waits for COUNT `sleep` processes, and
# kills WHO.
kills() {
    local who=$1 count=$2 what="${*:3}" try took begin pid
    for try in 1 2 3; do
        mkdir "$work/tmp"
        TSUMUGI_TEST_LEFT=$mark TMPDIR=$work/tmp TSUMUGI_RSH=$work/rsh \
            "$tsumugi" "${@:3}" >"$work/log" 2>&1 &
        launcher=$!
        disown "$launcher"
        for _ in $(seq 600); do
            [[ $(sleepers) == "$count" ]] && break
            sleep 0.1
        done
        [[ $(sleepers) == "$count" ]] || failed "$what: the job does not start"
        pid=$(victim "$who")
        begin=$(now)
        kill -KILL "$pid"
        while [[ -n $(marked) || -n $(ls "$work/tmp") ]]; do
            (($(now) - begin < 20000)) || failed "$what: not clean 20 s after kill -9 of $who"
            sleep 0.01
        done
        took=$(($(now) - begin))
        rmdir "$work/tmp"
        echo "left: $what: kill -9 of $who: nothing left after $took ms"
        ((took > 2000)) || return 0
    done
    failed "$what: kill -9 of $who: the cleanup took more than 2 s three times"
}

run=(run -n 3 "$work/rank")
hosts=(run --hosts "a,b" -n 4 "$work/rank")
kills launcher 6 "${run[@]}"
kills rank 6 "${run[@]}"
kills launcher 8 "${hosts[@]}"
kills agent 8 "${hosts[@]}"
kills rank 8 "${hosts[@]}"
peer=(--quick --peer "peer=setsid -f sleep 1000")
kills launcher 1 bench message --only same_core_pre "${peer[@]}"
kills launcher 1 bench lock --only fetch_add "${peer[@]}"
