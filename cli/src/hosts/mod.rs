//! `tsumugi run --hosts`: ranks on several hosts.
//!
//! ```text
//!  tsumugi run --hosts a,b -n 4 program
//!   │ serves cards               ssh a: tsumugi agent         ssh b: tsumugi agent
//!   ├─ orders, then signals ──────► standard input ──────────────► ...
//!   │                              ├─ rank 0                     ├─ rank 2
//!   ◄─ output, exit code ──────────┴─ rank 1                     └─ rank 3
//! ```
//!
//! What starts a command there is `ssh`, or the words of `TSUMUGI_RSH`, with the
//! host and the command behind them. The environment and the job's secret go
//! through the standard input, never on a command line. An agent whose input
//! ends kills its ranks, so nothing is left when this command dies, however it
//! does. The first agent that fails takes the others with it.

mod agent;
mod order;
mod remote;

pub use agent::agent;

use crate::args;
use crate::failure::Failure;
use order::Order;
use remote::Remote;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tsumugi::boot::env;
use tsumugi::boot::tcp::{Secret, Server};
use tsumugi::pvas::launch::Signals;

/// Starts a program on `args.hosts` and waits for it.
pub fn run(args: &args::Run) -> Result<String, Failure> {
    let failed =
        |what: &'static str| move |error: io::Error| Failure::Failed(format!("{what}: {error}"));
    let lookup = |name: &str| std::env::var(name).ok();
    let limit = env::limit(&lookup).map_err(|error| Failure::Failed(error.to_string()))?;
    let word = match lookup(env::SECRET) {
        Some(word) => word,
        None => Secret::random_word().map_err(failed("random numbers"))?,
    };
    let short = || Failure::Failed(format!("{} is too short", env::SECRET));
    let secret = Secret::new(&word).ok_or_else(short)?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed("listening"))?;
    let server = Server::start(listener, args.ranks, secret, limit).map_err(failed("serving"))?;
    let addresses = addresses(&args.hosts, server.address().port());
    let own = std::env::current_exe().map_err(failed("this command cannot find itself"))?;
    let mut signals = Signals::catch().map_err(|error| Failure::Failed(error.to_string()))?;
    let (ended, ends) = mpsc::channel();
    let mut remotes = Vec::new();
    for (index, (host, ranks)) in shares(&args.hosts, args.ranks).into_iter().enumerate() {
        let order = order(args, ranks, &addresses, &word)?;
        let remote = Remote::start(host, &own, &order, index, &ended);
        remotes.push(remote.map_err(|error| Failure::Failed(format!("{host}: {error}")))?);
    }
    let code = watch(&mut remotes, &ends, &mut signals);
    drop(server);
    match code {
        0 => Ok(String::new()),
        code => Err(Failure::Said(u8::try_from(code).unwrap_or(1))),
    }
}

/// Waits for all agents; the code of the first one that failed.
fn watch(
    remotes: &mut [Remote],
    ends: &mpsc::Receiver<(usize, i32)>,
    signals: &mut Signals,
) -> i32 {
    let (mut left, mut code, mut leave_at) = (remotes.len(), 0, None);
    while left > 0 {
        if let Ok((index, ended)) = ends.recv_timeout(LOOK_AGAIN) {
            left -= 1;
            remotes[index].leave();
            if ended != 0 && code == 0 {
                code = ended;
                leave_at = Some(Instant::now() + LEAVE_AFTER);
                let host = remotes[index].host();
                // One write, so that it does not mix with what ranks print.
                let line = format!("tsumugi: host {host}: ended with code {ended}\n");
                eprint!("{line}");
            }
        }
        for caught in signals.take() {
            remotes.iter_mut().for_each(|remote| remote.signal(caught.signal));
        }
        if leave_at.is_some_and(|at| at <= Instant::now()) {
            remotes.iter_mut().for_each(Remote::leave);
        }
    }
    code
}

/// Who gets which ranks: neighbours together, and as many on each as can be.
fn shares(hosts: &[String], ranks: u32) -> Vec<(&str, Vec<u32>)> {
    let count = hosts.len() as u64;
    let start = |index: u64| (index * u64::from(ranks)).div_ceil(count) as u32;
    let shares = (0..count).zip(hosts).map(|(index, host)| {
        (host.as_str(), (start(index)..start(index + 1)).collect::<Vec<u32>>())
    });
    shares.filter(|(_, ranks)| !ranks.is_empty()).collect()
}

fn order(args: &args::Run, ranks: Vec<u32>, addresses: &str, word: &str) -> Result<Order, Failure> {
    let own_folder = std::env::current_dir()
        .map_err(|error| Failure::Failed(format!("the current folder: {error}")))?;
    let mut words = args.program.iter().map(|word| word.as_bytes().to_vec());
    let mut variables: Vec<(Vec<u8>, Vec<u8>)> = std::env::vars_os()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .filter(|(name, _)| !is_of_this_host(name))
        .collect();
    let mut set = |name: &str, value: &str| {
        variables.retain(|(known, _)| known != name.as_bytes());
        variables.push((name.into(), value.into()));
    };
    set(env::SERVER, addresses);
    set(env::SECRET, word);
    if let Some(workers) = args.workers {
        set(tsumugi::config::WORKERS, &workers.to_string());
    }
    let folder = own_folder.as_os_str().as_bytes().to_vec();
    let program = words.next().expect("the grammar demands a program");
    let words = words.collect();
    Ok(Order { size: args.ranks, ranks, label: args.label, folder, program, words, variables })
}

/// What another host has of its own, or means something else there.
fn is_of_this_host(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 9] = [
        b"HOSTNAME",
        b"PWD",
        b"OLDPWD",
        b"SHLVL",
        b"_",
        b"DISPLAY",
        b"TMPDIR",
        b"TSUMUGI_NODE",
        b"TSUMUGI_RSH",
    ];
    NAMES.contains(&name) || name.starts_with(b"SSH_") || name.starts_with(b"XDG_")
}

/// Where the hosts may reach this one: the addresses that packets to them
/// would come from, the one towards the rest of the world, and this machine's
/// own for hosts that are this one.
fn addresses(hosts: &[String], port: u16) -> String {
    let towards = |host: &str| -> io::Result<SocketAddr> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // Nothing is sent: the kernel looks for a route.
        socket.connect((host, 9))?;
        socket.local_addr()
    };
    let names = hosts.iter().map(|host| host.rsplit('@').next().unwrap_or(host));
    let found = names.chain(["192.0.2.1"]).filter_map(|host| towards(host).ok());
    let mut all = Vec::new();
    for ip in found.map(|address| address.ip()).chain([Ipv4Addr::LOCALHOST.into()]) {
        if !all.contains(&ip) && all.len() < ADDRESSES_MAX {
            all.push(ip);
        }
    }
    let all: Vec<String> = all.iter().map(|ip| format!("{ip}:{port}")).collect();
    all.join(",")
}

/// Between two looks for signals.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The ranks of other hosts that hear of a failure end by themselves.
const LEAVE_AFTER: Duration = Duration::from_millis(1000);
/// More are not read.
const ADDRESSES_MAX: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_together_and_all_are_there() {
        let hosts = ["a", "b", "c"].map(str::to_owned);
        let sizes = |ranks| shares(&hosts, ranks).iter().map(|(_, r)| r.len()).collect::<Vec<_>>();
        assert_eq!(sizes(7), [3, 2, 2]);
        assert_eq!(sizes(3), [1, 1, 1]);
        assert_eq!(sizes(1), [1]);
        let all: Vec<u32> = shares(&hosts, 7).into_iter().flat_map(|(_, ranks)| ranks).collect();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn this_machine_is_reached_by_itself() {
        let all = addresses(&["localhost".to_owned()], 4000);
        assert!(all.split(',').any(|address| address == "127.0.0.1:4000"), "{all}");
    }
}
