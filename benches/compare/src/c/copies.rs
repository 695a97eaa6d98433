//! Copies through C: one program, run in turn with this project's library and with ACP's
//! own, where a folder of `LD_LIBRARY_PATH` has that (`libacpbl_udp.so` and `libacpml.so`,
//! with the header in `../include`).

use std::env;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A row, and what one of its times is of.
const ROWS: [(&str, &str); 2] = [
    ("acp_copy", "a copy of 8 bytes between two processes, complete"),
    ("acp_add8", "an addition in the other process, complete"),
];
const OPERATIONS: &str = "10000";

/// Measures the rows; prints a table of the times in ns, minimum and median.
pub fn compare(quick: bool, wants: &dyn Fn(&str) -> bool) -> Result<(), String> {
    if !ROWS.iter().any(|(name, _)| wants(name)) {
        return Ok(());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut systems = vec![("tsumugi", ours(&root)?)];
    match folder() {
        Some(folder) => systems.push(("ACP", acp(&root, &folder)?)),
        None => println!("ACP: no libacpbl_udp.so in a folder of LD_LIBRARY_PATH"),
    }
    println!("copies through C, ns: min/median");
    for (name, what) in ROWS.iter().filter(|(name, _)| wants(name)) {
        let mut times = vec![Vec::new(); systems.len()];
        for _ in 0..if quick { 5 } else { 15 } {
            for ((_, system), times) in systems.iter().zip(&mut times) {
                times.push(run(system, name)?);
            }
        }
        let mut line = format!("  {name}");
        for ((system, _), times) in systems.iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            line += &format!("  {system} {:.1}/{:.1}", times[0], times[times.len() / 2]);
        }
        println!("{line}   {what}");
    }
    Ok(())
}

/// How the program is started: with this project's library and its command, or with ACP's
/// library, which is in a folder.
enum Started {
    Ours { program: PathBuf, command: PathBuf },
    Acp { program: PathBuf, folder: PathBuf },
}

fn ours(root: &Path) -> Result<Started, String> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet"])
        .args(["--package", "tsumugi-capi", "--package", "tsumugi-cli"])
        .current_dir(root)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("cargo could not build the packages tsumugi-capi and tsumugi-cli".into());
    }
    let built = target(root).join("release");
    let library = [&built.join("libtsumugi.a").display().to_string(), "-pthread", "-lm", "-ldl"]
        .map(str::to_owned);
    let program = compile(root, "copies", &root.join("include"), &library)?;
    Ok(Started::Ours { program, command: built.join("tsumugi") })
}

fn acp(root: &Path, folder: &Path) -> Result<Started, String> {
    // The two libraries use each other, and the program only one.
    let found = format!("-L{}", folder.display());
    let library = [&found, "-Wl,--no-as-needed", "-lacpml", "-lacpbl_udp"].map(str::to_owned);
    let program = compile(root, "copies_acp", &folder.join("../include"), &library)?;
    Ok(Started::Acp { program, folder: folder.to_owned() })
}

fn compile(root: &Path, name: &str, header: &Path, library: &[String]) -> Result<PathBuf, String> {
    let work = target(root).join("compare-c");
    std::fs::create_dir_all(&work).map_err(|error| error.to_string())?;
    let program = work.join(name);
    let compiled = Command::new(env::var_os("CC").unwrap_or("cc".into()))
        .args(["-std=gnu11", "-O2", "-I"])
        .arg(header)
        .arg(root.join("benches/compare/peers/copies.c"))
        .args(library)
        .args(["-lgcc_s", "-o"])
        .arg(&program)
        .status();
    match compiled.is_ok_and(|status| status.success()) {
        true => Ok(program),
        false => Err(format!("the C compiler could not build peers/copies.c as {name}")),
    }
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from)
}

/// The folder of ACP's library.
fn folder() -> Option<PathBuf> {
    let path = env::var_os("LD_LIBRARY_PATH")?;
    env::split_paths(&path).find(|folder| folder.join("libacpbl_udp.so").exists())
}

/// Runs a row as two processes of this machine.
fn run(system: &Started, row: &str) -> Result<f64, String> {
    let (said, status) = match system {
        Started::Ours { program, command } => {
            let mut job = Command::new(command);
            job.args(["run", "-n", "2"]).arg(program).args([row, OPERATIONS]);
            said_by(job)?
        }
        Started::Acp { program, folder } => {
            // What `acprun` gives to each process. Both listeners are there until both ports
            // are known, so the ports differ.
            let ports = [port()?, port()?];
            let ports = ports.map(|(listener, port)| (drop(listener), port).1.to_string());
            let rank = |rank: usize| {
                let mut process = Command::new(program);
                process.args([row, OPERATIONS, "--acp-nprocs", "2", "--acp-taskid", "1"]);
                process.args(["--acp-myrank", &rank.to_string(), "--acp-host-remote", "127.0.0.1"]);
                process.args(["--acp-port-local", &ports[rank]]);
                process.args(["--acp-port-remote", &ports[1 - rank]]);
                process.env("LD_LIBRARY_PATH", folder);
                process
            };
            let other = rank(1).stdout(Stdio::null()).spawn();
            let mut other = other.map_err(|error| error.to_string())?;
            let said = said_by(rank(0));
            // Then the other one waits for ever.
            if !said.as_ref().is_ok_and(|(_, status)| status.success()) {
                let _ = other.kill();
            }
            other.wait().map_err(|error| error.to_string())?;
            said?
        }
    };
    said.trim().parse().map_err(|_| format!("{row} ended without an answer: {status}"))
}

fn said_by(mut process: Command) -> Result<(String, std::process::ExitStatus), String> {
    let ran = process.stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    Ok((String::from_utf8_lossy(&ran.stdout).into_owned(), ran.status))
}

fn port() -> Result<(TcpListener, u16), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    Ok((listener, port))
}
