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
//! The command that starts an agent on a host is `ssh`, or the words of
//! `TSUMUGI_RSH`, followed by the host and the agent's command. The environment and
//! the job's secret go through standard input, never on a command line. An agent
//! kills its ranks when its input ends, so no process is left when this command
//! dies, however it dies.
//!
//! Agents report at once how ranks end. This command decides which end is the cause
//! and notifies all agents: so the programs on every host learn of the failed rank,
//! and have 1.2 s before they are ended. If the agent of a host is gone, the host's
//! first rank is named. If a host does not answer by then, this command does not
//! wait for it.

mod agent;
mod event;
mod order;
mod remote;
mod report;
mod verdict;

pub use agent::agent;

use crate::args;
use crate::failure::Failure;
use crate::job;
use event::LaunchEvent;
use order::AgentOrder;
use remote::Remote;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tsumugi::boot::env;
use tsumugi::boot::tcp::{Secret, Server};
use tsumugi::pvas::SpaceConfig;
use tsumugi::pvas::launch::{self, JobOutcome, Relay, Signals};
use verdict::{Cause, CauseFinder};

/// Starts a program on `args.hosts` and waits for it.
pub fn run(args: &args::RunArgs) -> Result<String, Failure> {
    let failed =
        |what: &'static str| move |error: io::Error| Failure::Failed(format!("{what}: {error}"));
    let lookup = |name: &str| std::env::var(name).ok();
    let limit = env::limit(&lookup).map_err(|error| Failure::Failed(error.to_string()))?;
    let word = match lookup(env::SECRET) {
        Some(word) => word,
        None => Secret::random_word()
            .map_err(failed("the system gave no random numbers for the secret of the job"))?,
    };
    let short = || {
        let (name, bytes) = (env::SECRET, word.len());
        Failure::Failed(format!("{name} has {bytes} bytes, {} are the minimum", Secret::BYTES_MIN))
    };
    let secret = Secret::new(&word).ok_or_else(short)?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))
        .map_err(failed("the launcher cannot listen for its agents"))?;
    let config = SpaceConfig::from_env().map_err(|error| Failure::Failed(error.to_string()))?;
    let (happens, events) = mpsc::channel();
    let ended = happens.clone();
    let told = Box::new(move |ends| {
        // After the last agent has ended, no receiver is left.
        let _ = ended.send(LaunchEvent::Ends(ends));
    });
    let server = Server::start_with_agents(listener, args.ranks, secret, limit, told)
        .map_err(failed("the server of the job cannot be started"))?;
    let addresses = addresses(&args.hosts, server.address().port());
    let own = std::env::current_exe().map_err(failed("the path of this command is unknown"))?;
    let mut signals = Signals::catch().map_err(|error| Failure::Failed(error.to_string()))?;
    let (mut remotes, mut streams) = (Vec::new(), Vec::new());
    for (index, (host, ranks)) in shares(&args.hosts, args.ranks).into_iter().enumerate() {
        let order = order(args, ranks, &addresses, &word)?;
        let remote = Remote::start(host, &own, &order, index, &happens);
        let (remote, output) = remote.map_err(|error| Failure::Failed(unstarted(host, &error)))?;
        remotes.push(remote);
        streams.extend(output);
    }
    let relay = Relay::of_streams(streams)
        .map_err(failed("the thread for the output of ranks cannot be started"))?;
    let grace = config.grace;
    let verdict = CauseFinder::default();
    let mut watch = AgentWatch {
        remotes: &mut remotes,
        verdict,
        relay,
        grace,
        limit: args.timeout.map(|limit| (limit, Instant::now() + limit)),
        leave_at: None,
        abandon_at: None,
    };
    let code = watch.go(&events, &mut signals);
    // What the ranks have written last.
    let is_output_written = watch.relay.end();
    drop(server);
    match code {
        0 if !is_output_written => Err(Failure::Said(1)),
        0 => Ok(String::new()),
        code => Err(Failure::Said(u8::try_from(code).unwrap_or(1))),
    }
}

/// The agents, and the state of waiting for them.
struct AgentWatch<'a> {
    remotes: &'a mut [Remote],
    verdict: CauseFinder,
    relay: Relay,
    /// The time that a program has after a death.
    grace: Duration,
    /// The time limit of the job, and when it is over.
    limit: Option<(Duration, Instant)>,
    /// The time at which agents that have not ended are told to end, by the end of
    /// their input.
    leave_at: Option<Instant>,
    /// The time after which the hosts of such agents are given up.
    abandon_at: Option<Instant>,
}

impl AgentWatch<'_> {
    /// Waits for all agents; returns the code of the cause of the job's end.
    fn go(&mut self, events: &mpsc::Receiver<LaunchEvent>, signals: &mut Signals) -> i32 {
        let (mut left, mut code) = (self.remotes.len(), 0);
        let mut is_out_of_time = false;
        while left > 0 {
            let now = Instant::now();
            let due = self.verdict.due().map(|due| due.saturating_duration_since(now));
            match events.recv_timeout(due.map_or(LOOK_AGAIN, |due| due.min(LOOK_AGAIN))) {
                Ok(LaunchEvent::Agent { index, code }) => {
                    left -= 1;
                    self.remotes[index].leave();
                    if code != 0 {
                        self.verdict.agent_ended(index, code, Instant::now());
                    }
                }
                Ok(LaunchEvent::Ends(ends)) => {
                    let crashes = self.verdict.ended(&ends, Instant::now());
                    if !is_out_of_time {
                        crashes.iter().for_each(|failure| self.say(failure));
                    }
                }
                Err(_) => {}
            }
            // After the last agent no event can come, so the verdict is due.
            let now = Instant::now() + if left == 0 { A_WHILE } else { Duration::ZERO };
            if let Some((limit, _)) = self.limit.take_if(|(_, end)| *end <= Instant::now()) {
                is_out_of_time = true;
                self.relay.say(launch::out_of_time(limit));
                self.remotes.iter_mut().for_each(|remote| remote.signal(libc::SIGTERM));
                self.leave_after(KILL_AFTER);
            }
            if is_out_of_time {
                code = JobOutcome::OUT_OF_TIME;
            } else if let Some(cause) = self.verdict.poll(now) {
                code = cause.code();
                self.end_by(&cause);
            }
            for caught in signals.take() {
                self.remotes.iter_mut().for_each(|remote| remote.signal(caught.signal));
            }
            if self.leave_at.is_some_and(|at| at <= Instant::now()) {
                self.remotes.iter_mut().for_each(Remote::leave);
            }
            if self.abandon_at.is_some_and(|at| at <= Instant::now()) {
                self.remotes.iter_mut().for_each(Remote::abandon);
            }
        }
        if !is_out_of_time && let Some(line) = self.verdict.others() {
            self.relay.say(line);
        }
        code
    }

    /// Reports the cause of the job's end, and notifies all agents.
    fn end_by(&mut self, cause: &Cause) {
        let dead = match cause {
            Cause::Rank(failure) => {
                self.say(failure);
                failure.rank.0
            }
            Cause::Host { index, code } => {
                let host = self.remotes[*index].host();
                let line = format!("tsumugi: host {host}: the agent ended with code {code}\n");
                self.relay.say(line);
                // All ranks of the host die with the agent; the first one is named.
                self.remotes[*index].ranks()[0]
            }
        };
        self.remotes.iter_mut().for_each(|remote| remote.tell(dead));
        self.leave_after(self.grace.max(HEARD_WITHIN) + LEAVE_AFTER);
    }

    fn leave_after(&mut self, time: Duration) {
        let leave_at = Instant::now() + time;
        self.leave_at = Some(leave_at);
        self.abandon_at = Some(leave_at + ABANDON_AFTER);
    }

    fn say(&self, failure: &launch::RankFailure) {
        let has = |remote: &&Remote| remote.ranks().contains(&failure.rank.0);
        let host = self.remotes.iter().find(has).map_or("?", Remote::host);
        self.relay.say(format!("tsumugi: host {host}: {failure}\n"));
    }
}

fn unstarted(host: &str, error: &io::Error) -> String {
    let rsh = remote::rsh();
    format!("host {host}: the remote shell {rsh:?} ({}) cannot be started: {error}", env::RSH)
}

/// The ranks of each host: neighbouring ranks together, and the same number on each
/// host as far as possible.
fn shares(hosts: &[String], ranks: u32) -> Vec<(&str, Vec<u32>)> {
    let count = hosts.len() as u64;
    let start = |index: u64| (index * u64::from(ranks)).div_ceil(count) as u32;
    let shares = (0..count).zip(hosts).map(|(index, host)| {
        (host.as_str(), (start(index)..start(index + 1)).collect::<Vec<u32>>())
    });
    shares.filter(|(_, ranks)| !ranks.is_empty()).collect()
}

fn order(
    args: &args::RunArgs,
    ranks: Vec<u32>,
    addresses: &str,
    word: &str,
) -> Result<AgentOrder, Failure> {
    let own_folder = std::env::current_dir()
        .map_err(|error| Failure::Failed(format!("the current folder is unknown: {error}")))?;
    let mut words = args.program.iter().map(|word| word.as_bytes().to_vec());
    let mut variables: Vec<(Vec<u8>, Vec<u8>)> = std::env::vars_os()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .filter(|(name, _)| !is_of_this_host(name))
        .collect();
    let mut set = |name: &str, value: &[u8]| {
        variables.retain(|(known, _)| known != name.as_bytes());
        variables.push((name.into(), value.into()));
    };
    set(env::SERVER, addresses.as_bytes());
    set(env::SECRET, word.as_bytes());
    for (name, value) in job::variables(args) {
        set(&name, value.as_bytes());
    }
    let folder = own_folder.as_os_str().as_bytes().to_vec();
    let program = words.next().expect("the grammar requires a program");
    let words = words.collect();
    Ok(AgentOrder { size: args.ranks, ranks, label: args.label, folder, program, words, variables })
}

/// Whether a variable is specific to a host, or means something else on another
/// host.
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

/// The addresses at which the hosts may reach this machine: the source addresses of
/// packets to the hosts, the address towards the rest of the world, and the loopback
/// address for hosts that are this machine.
fn addresses(hosts: &[String], port: u16) -> String {
    let towards = |host: &str| -> io::Result<SocketAddr> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // This sends no packet: the kernel only looks for a route.
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

/// The interval at which signals are polled.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The least time that agents give programs after a death.
const HEARD_WITHIN: Duration = Duration::from_millis(1200);
/// The time that an agent has, after that, to end its ranks and itself.
const LEAVE_AFTER: Duration = Duration::from_millis(2000);
/// The time that an agent has, after that, once its input has ended.
const ABANDON_AFTER: Duration = Duration::from_millis(2000);
/// The time from SIGTERM to the end of the agents' input after the time limit.
const KILL_AFTER: Duration = Duration::from_millis(700);
/// Longer than any verdict takes.
const A_WHILE: Duration = Duration::from_secs(1);
/// Agents do not read more addresses than this.
const ADDRESSES_MAX: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_host_are_consecutive_and_none_is_missing() {
        let hosts = ["a", "b", "c"].map(str::to_owned);
        let sizes = |ranks| shares(&hosts, ranks).iter().map(|(_, r)| r.len()).collect::<Vec<_>>();
        assert_eq!(sizes(7), [3, 2, 2]);
        assert_eq!(sizes(3), [1, 1, 1]);
        assert_eq!(sizes(1), [1]);
        let all: Vec<u32> = shares(&hosts, 7).into_iter().flat_map(|(_, ranks)| ranks).collect();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_addresses_of_this_machine_are_found() {
        let all = addresses(&["localhost".to_owned()], 4000);
        assert!(all.split(',').any(|address| address == "127.0.0.1:4000"), "{all}");
    }
}
