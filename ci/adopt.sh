#!/usr/bin/env bash
# The first ten minutes of a new user: a package outside of this folder, with the README's
# dependency, program, commands and test.
set -euo pipefail
cd "$(dirname "$0")/.."
# Each of these stands in the README, as a line of its own.
for line in 'TSUMUGI_RANKS=4 cargo run' 'cargo install --locked --path ../tsumugi/cli' \
    'tsumugi run -n 4 target/debug/NAME'; do
    grep -qxF -- "$line" README.md || { echo "the README has no line: $line" >&2; exit 1; }
done
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# It builds into the folder of the repository, where most of it is there already.
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target

# The README's code block in this language that contains these words.
block() {
    awk -v fence="\`\`\`$1" -v words="$2" '
        inside && /^```$/ { if (index(text, words)) printf "%s", text; inside = 0; next }
        inside { text = text $0 "\n" }
        $0 == fence { inside = 1; text = "" }
    ' "$here/README.md"
}

cd "$work"
# The profile of the repository's own builds, so that what they have built is used.
mkdir .cargo
sed -n '/^\[profile\.dev/,$p' "$here/Cargo.toml" >.cargo/config.toml
grep -q '^opt-level' .cargo/config.toml
cargo new --quiet --vcs none newcomer
cd newcomer
# `cargo new` has written the head of the table.
block toml '[dependencies]' | sed "1d; s|\.\./tsumugi|$here|" >>Cargo.toml
# The versions that are here already.
cp "$here/Cargo.lock" .
block rust '#[tsumugi::main]' >src/main.rs
drew() {
    [[ $(grep -Ec "(^|] )rank [0-3] of $1 drew number [0-3]\$" "$work/said") == "$1" ]]
}

# Without a launcher: four ranks, and one.
TSUMUGI_RANKS=4 cargo run --quiet >"$work/said"
drew 4
cargo run --quiet >"$work/said"
drew 1

# With the command, and with the command as cargo's runner. The README's line makes an
# optimized build, which takes minutes.
cargo install --locked --quiet --debug --path "$here/cli" --root "$work"
"$work/bin/tsumugi" run -n 4 "$target/debug/newcomer" >"$work/said"
drew 4
CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$work/bin/tsumugi run -n 3 --label" \
    cargo run --quiet >"$work/said"
drew 3

# The README's test, and a struct that crosses by a put and by a message.
mkdir tests
block rust '#[test]' >tests/readme.rs
cat >tests/structs.rs <<'END'
#![forbid(unsafe_code)]
use tsumugi::{Error, Plain, Rank, Source, Tags};

#[derive(Clone, Copy, Debug, Default, PartialEq, Plain)]
#[repr(C)]
struct Particle {
    place: [f64; 3],
    cell: u32,
    kind: u32,
}

#[test]
fn a_struct_crosses_by_a_put_and_by_a_message() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let one = |cell| Particle { place: [0.5, 1.5, 2.5], cell, kind: 7 };
    tsumugi::run_ranks(2, |rt| {
        let (own, other) = (rt.rank(), Rank(1 - rt.rank().0));
        let particles = rt.share::<Particle>(8)?;
        rt.put(particles.at(other, 3), one(own.0))?;
        rt.barrier()?;
        assert_eq!(rt.get(particles.at(own, 3))?, one(other.0));
        let mut got = [Particle::default()];
        if own == Rank(0) {
            rt.comm().send(other, 1, &[one(9)])?;
        } else {
            rt.comm().recv(Source::Is(other), Tags::Is(1), &mut got)?;
            assert_eq!(got, [one(9)]);
        }
        Ok::<_, Error>(())
    })?;
    Ok(())
}
END
cargo test --quiet

# A rank that fails is named with its error, and its exit code is the job's.
cat >src/main.rs <<'END'
#[tsumugi::main]
fn main(rt: &tsumugi::Runtime) -> Result<(), tsumugi::Error> {
    match rt.rank().0 {
        2 => Err(tsumugi::Error::program("no more paper")),
        _ => rt.barrier(),
    }
}
END
if TSUMUGI_RANKS=3 cargo run --quiet 2>"$work/said"; then
    echo "a job whose rank has failed has succeeded" >&2
    exit 1
fi
grep -qx 'rank 2: no more paper' "$work/said"

cd "$here"
ci/adopt_c.sh
ci/adopt_mpi.sh
