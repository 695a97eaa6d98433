//! Copies through C: one program, run in turn with this project's library and with ACP's
//! own, where a folder of `LD_LIBRARY_PATH` has that (`libacpbl_udp.so` and `libacpml.so`,
//! with the header in `../include`).

use crate::turns;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{io, mem};

/// A row, and what one of its times is of.
const ROWS: [(&str, &str); 2] = [
    ("acp_copy", "a copy of 8 bytes between two processes, complete"),
    ("acp_add8", "an addition in the other process, complete"),
];
const OPERATIONS: &str = "10000";
const SOURCE: &str = "benches/compare/peers/copies.c";

/// Measures the rows; prints a table of the times in ns.
pub fn compare(rounds: usize, wants: &dyn Fn(&str) -> bool) -> Result<(), String> {
    if !ROWS.iter().any(|(name, _)| wants(name)) {
        return Ok(());
    }
    let mut systems = vec![("tsumugi", ours()?)];
    match turns::folder("libacpbl_udp.so") {
        Some(folder) => systems.push(("ACP", acp(&folder)?)),
        None => println!("ACP: no libacpbl_udp.so in a folder of LD_LIBRARY_PATH"),
    }
    println!("copies through C, ns: min/median/max");
    for (name, what) in ROWS.iter().filter(|(name, _)| wants(name)) {
        turns::row(name, what, rounds, &systems, |system| run(system, name))?;
    }
    Ok(())
}

/// How the program is started: with this project's library and its command, or with ACP's
/// library, which is in a folder.
enum Started {
    Ours { program: PathBuf, command: PathBuf },
    Acp { program: PathBuf, folder: PathBuf },
}

fn ours() -> Result<Started, String> {
    let built = turns::cargo(&["--package", "tsumugi-library", "--package", "tsumugi-cli"])?;
    let library = built.join("libtsumugi.a").display().to_string();
    let libraries = [&*library, "-pthread", "-lm", "-ldl"];
    let program = turns::compile("copies", SOURCE, &turns::root().join("include"), &libraries)?;
    Ok(Started::Ours { program, command: built.join("tsumugi") })
}

fn acp(folder: &Path) -> Result<Started, String> {
    // The two libraries use each other, and the program only one.
    let found = format!("-L{}", folder.display());
    let libraries = [&*found, "-Wl,--no-as-needed", "-lacpml", "-lacpbl_udp"];
    let header = folder.join("../include");
    let program = turns::compile("copies_acp", SOURCE, &header, &libraries)?;
    Ok(Started::Acp { program, folder: folder.to_owned() })
}

/// Runs a row as two processes of this machine. Those of ACP are bound, each to a CPU of its
/// own: unbound, its times vary more.
fn run(system: &Started, row: &str) -> Result<f64, String> {
    match system {
        // The workers are bound as the command decides.
        Started::Ours { program, command } => {
            let mut job = Command::new(command);
            turns::time_said_by(job.args(["run", "-n", "2"]).arg(program).args([row, OPERATIONS]))
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
                // SAFETY: the function makes only system calls.
                unsafe { process.pre_exec(move || bind(rank)) };
                process
            };
            let other = rank(1).stdout(Stdio::null()).spawn();
            let mut other = other.map_err(|error| error.to_string())?;
            let time = turns::time_said_by(&mut rank(0));
            // Then the other one waits for ever.
            if time.is_err() {
                let _ = other.kill();
            }
            other.wait().map_err(|error| error.to_string())?;
            time
        }
    }
}

/// Binds the calling process to one of its CPUs, each rank to another one.
fn bind(rank: usize) -> io::Result<()> {
    // SAFETY: zeros are an empty set, and each call gets a set and its size.
    unsafe {
        let mut allowed: libc::cpu_set_t = mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&allowed), &mut allowed) != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut cpus =
            (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed));
        let Some(cpu) = cpus.nth(rank) else { return Ok(()) };
        let mut one: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut one);
        match libc::sched_setaffinity(0, size_of_val(&one), &one) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn port() -> Result<(TcpListener, u16), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    Ok((listener, port))
}
