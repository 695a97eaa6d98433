//! Messages and locks: `tsumugi bench message` and `tsumugi bench lock` with
//! the peers of `ci/peers.sh` among the systems, all in one run.
//!
//! `compare message [--quick] [--only NAME] [--json FILE] ...`: the arguments
//! are those of `tsumugi bench message`; the same of `lock`.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Becomes the command that measures; the exit code if it cannot.
pub fn compare(figure: &str, args: impl Iterator<Item = String>) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--package", "tsumugi-cli"])
        .current_dir(&root)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("compare: cargo could not build the package tsumugi-cli");
        return ExitCode::FAILURE;
    }
    let peers = peers(&root, figure);
    let missing = PEERS.iter().filter(|name| !peers.iter().any(|peer| peer.starts_with(**name)));
    for name in missing.filter(|_| figure == "message") {
        print!("{}", elsewhere(name));
    }
    let peers = peers.iter().flat_map(|peer| ["--peer", peer]);
    let error = Command::new(command(&root)).args(["bench", figure]).args(peers).args(args).exec();
    eprintln!("compare: cannot run {}: {error}", command(&root).display());
    ExitCode::FAILURE
}

/// `name=command` of each that can be had.
fn peers(root: &Path, figure: &str) -> Vec<String> {
    let told = Command::new(root.join("ci/peers.sh")).arg(figure).stderr(Stdio::inherit()).output();
    let text = told.map(|told| String::from_utf8_lossy(&told.stdout).into_owned());
    let lines = text.unwrap_or_default();
    lines.lines().map(|line| line.replacen(' ', "=", 1)).collect()
}

fn command(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    target.join("release/tsumugi")
}

/// What a peer that cannot be had here has reached on another machine.
fn elsewhere(name: &str) -> String {
    let mut text =
        format!("{name}, elsewhere (two cores of a Zen 4 server, touched), ns near/far\n");
    let rows = ELSEWHERE.iter().filter(|(of, ..)| *of == name);
    for (_, bytes, near, far) in rows {
        text += &format!("  {bytes:>8} B  {near:>8} / {far}\n");
    }
    text
}

const PEERS: [&str; 3] = ["mpich", "openmpi", "ucx"];
/// Half round trips in ns on cores with a line trip of 31 and of 165 ns.
const ELSEWHERE: [(&str, u32, u32, u32); 18] = [
    ("mpich", 8, 884, 1130),
    ("mpich", 1 << 10, 958, 1380),
    ("mpich", 4 << 10, 1400, 3140),
    ("mpich", 32 << 10, 7840, 16200),
    ("mpich", 128 << 10, 22300, 53000),
    ("mpich", 2 << 20, 212000, 661000),
    ("openmpi", 8, 130, 356),
    ("openmpi", 1 << 10, 256, 878),
    ("openmpi", 4 << 10, 876, 2970),
    ("openmpi", 32 << 10, 5420, 18800),
    ("openmpi", 128 << 10, 18200, 64700),
    ("openmpi", 2 << 20, 286000, 1006000),
    ("ucx", 8, 99, 294),
    ("ucx", 1 << 10, 232, 782),
    ("ucx", 4 << 10, 472, 2220),
    ("ucx", 32 << 10, 2440, 15700),
    ("ucx", 128 << 10, 7600, 64700),
    ("ucx", 2 << 20, 214000, 796000),
];
