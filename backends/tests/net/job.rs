//! A job whose rank 0 is the test and whose other ranks are processes that poll and carry
//! out commands.
//!
//! ```text
//!  rank 0                      rank 1, 2
//!    │ ◄──── card ───────────────┤      lines on pipes
//!    ├───── cards, commands ────►│
//!    │ ◄──── answers ────────────┤
//!    └───── puts, gets, ... ════►│      the network
//! ```
//!
//! With [`NODES`] in the environment the ranks are dealt out to as many network
//! namespaces: `ci/netns.sh` runs them so, with rank 0 in the first one. With [`AWAY`]
//! the ranks of odd number run on another machine, as in the two guests of `ci/verbs.sh`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::marker::PhantomData;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::ptr::NonNull;
use std::sync::mpsc;
use std::sync::{Mutex, atomic::AtomicU64, atomic::Ordering};
use std::time::{Duration, Instant};
use tsumugi_backends::net::{NetDomain, NetWire};
use tsumugi_backends::ofi::{Arrival, ProbeReport};
use tsumugi_conformance::endpoint;
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::boot::CARD_BYTES_MAX;
use tsumugi_core::mem::{Access, Rank, Region, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::tag::Tag;

/// A provider that the suite runs over.
pub trait Provider: Sync + 'static {
    /// The name of the provider: a library may have several.
    const NAME: &str;
    /// The wire of the provider.
    type Wire: NetWire;
    /// Whether a poll takes microseconds.
    const POLLS_COST: bool = false;
    /// Whether the provider serves a rank that does not poll.
    const SERVES_SLEEPERS: bool = false;
    /// The time after which a killed rank is struck if the provider has not reported it.
    const NOTICES: Duration = Duration::from_millis(500);

    /// Opens a rank.
    fn open(setting: &Setting, rank: Rank, size: u32) -> NetDomain<Self::Wire>;

    /// The results of the probe at the start.
    fn probed(domain: &NetDomain<Self::Wire>) -> &ProbeReport;
}

/// The options that tests choose.
#[derive(Clone, Debug)]
pub struct Setting {
    pub endpoints: usize,
    pub in_flight_max: usize,
    pub pairs_max: usize,
    pub piece_bytes_max: u64,
    pub event: bool,
}

impl Default for Setting {
    fn default() -> Self {
        let (in_flight_max, piece_bytes_max) = (64, u64::MAX);
        Self { endpoints: 1, in_flight_max, pairs_max: 64, piece_bytes_max, event: false }
    }
}

/// The sizes that all ranks use.
pub const PACKETS: usize = 16;
pub const PACKET_BYTES_MAX: usize = 512;
pub const JOB: u64 = 0x7e57;

/// A job of rank 0 and its peers, see the module.
pub struct Job<P: Provider> {
    // Declared first, so that the domain is dropped before the peers.
    pub domain: NetDomain<P::Wire>,
    pub peers: Mutex<Vec<Peer>>,
    tags: AtomicU64,
    of: PhantomData<P>,
}

/// Another rank.
pub struct Peer {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl<P: Provider> Job<P> {
    pub fn with(ranks: u32, change: impl FnOnce(&mut Setting)) -> Self {
        let mut setting = Setting::default();
        change(&mut setting);
        let mut peers: Vec<Peer> =
            (1..ranks).map(|rank| Peer::start(P::NAME, rank, ranks, &setting)).collect();
        let domain = P::open(&setting, Rank(0), ranks);
        let mut cards = vec![to_hex(domain.card())];
        cards.extend(peers.iter_mut().map(Peer::answer));
        for peer in &mut peers {
            assert_eq!(peer.order(&format!("cards {}", cards.join(" "))), "met");
        }
        let cards: Vec<Vec<u8>> = cards.iter().map(|card| from_hex(card)).collect();
        domain.find(move |rank, into| copy_card(&cards, rank, into));
        Self { domain, peers: Mutex::new(peers), tags: AtomicU64::new(1), of: PhantomData }
    }

    pub fn order(&self, rank: u32, order: &str) -> String {
        self.peers.lock().unwrap()[rank as usize - 1].order(order)
    }

    /// The word as the peer's processor reads it.
    pub fn word(&self, region: &Region, offset: u64) -> u64 {
        let order = format!("load {} {offset}", region.key.to_bits());
        self.order(1, &order).parse().unwrap()
    }

    pub fn kill(&self, rank: u32) {
        let peer = &mut self.peers.lock().unwrap()[rank as usize - 1];
        if away(rank).is_some() {
            peer.inject_packet("die");
            peer.child.wait().unwrap();
            // The connection has ended; the peer's system ends the process shortly after.
            std::thread::sleep(Duration::from_secs(2));
        } else {
            peer.child.kill().unwrap();
            peer.child.wait().unwrap();
        }
    }
}

impl<P: Provider> endpoint::Fixture for Job<P> {
    type Domain = NetDomain<P::Wire>;
    const ROUNDS: usize = if P::POLLS_COST { 10 } else { 50 };

    fn new(ranks: u32) -> Self {
        Self::with(ranks, |_| {})
    }

    fn domain(&self) -> &NetDomain<P::Wire> {
        &self.domain
    }

    fn register(&self, rank: Rank, bytes: u64, access: Access) -> Region {
        if rank == Rank(0) {
            return register(&self.domain, bytes, access);
        }
        let answer = self.order(rank.0, &format!("register {bytes} {}", access as u32));
        let key = RegionKey::from_bits(answer.parse().unwrap());
        // Only the peer can use the base.
        Region { key, base: NonNull::dangling(), bytes, access }
    }

    fn tag(&self) -> Tag {
        Tag::from_bits(self.tags.fetch_add(1, Ordering::Relaxed))
    }
}

impl Peer {
    fn start(provider: &str, rank: u32, ranks: u32, setting: &Setting) -> Self {
        let Setting { endpoints, in_flight_max, pairs_max, .. } = *setting;
        let numbers = [rank as usize, ranks as usize, endpoints, in_flight_max, pairs_max];
        let mut args = vec![PEER.to_owned(), provider.to_owned()];
        args.extend(numbers.map(|number| number.to_string()));
        let own = std::env::current_exe().unwrap();
        let away = away(rank);
        let mut command = match (&away, node_of(Rank(rank))) {
            (Some(away), _) => {
                let mut words = away.split(' ');
                let mut reach = Command::new(words.next().unwrap());
                reach.args(words);
                reach
            }
            (None, None) => Command::new(own),
            (None, Some((namespace, _))) => {
                let mut enter = Command::new("ip");
                enter.args(["netns", "exec", &namespace]).arg(own);
                enter
            }
        };
        if away.is_none() {
            command.args(&args);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut peer = Self { child, orders, answers };
        if away.is_some() {
            peer.inject_packet(&args.join(" "));
        }
        peer
    }

    fn order(&mut self, order: &str) -> String {
        self.inject_packet(order);
        self.answer()
    }

    pub fn inject_packet(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    pub fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the peer has gone");
        line.trim_end().to_owned()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that starts a rank on another machine; `None` if the rank runs on this
/// one.
fn away(rank: u32) -> Option<String> {
    std::env::var(AWAY).ok().filter(|_| rank % 2 == 1)
}

/// The namespace and the address of a rank, if there are several.
pub fn node_of(rank: Rank) -> Option<(String, String)> {
    let nodes = std::env::var(NODES).ok()?;
    let nodes: Vec<(&str, &str)> =
        nodes.split(' ').map(|node| node.split_once('=').expect("namespace=address")).collect();
    let (namespace, address) = nodes[rank.0 as usize % nodes.len()];
    Some((namespace.to_owned(), address.to_owned()))
}

/// Registers zeroed lines that live as long as the process.
fn register(domain: &impl Domain, bytes: u64, access: Access) -> Region {
    #[repr(align(64))]
    #[derive(Clone)]
    struct Line(#[allow(dead_code)] [u8; 64]);
    let lines = vec![Line([0; 64]); (bytes as usize).div_ceil(64).max(1)].leak();
    let base = NonNull::new(lines.as_mut_ptr()).unwrap().cast();
    // SAFETY: leaked, and used as nothing but bytes.
    unsafe { domain.register(base, bytes, access) }.unwrap()
}

/// Runs another rank: it polls, and carries out the commands of its input.
pub fn peer<P: Provider>(args: &[String]) {
    let number = |at: usize| args[at].parse::<usize>().unwrap();
    let setting = Setting {
        endpoints: number(3),
        in_flight_max: number(4),
        pairs_max: number(5),
        ..Setting::default()
    };
    let domain = P::open(&setting, Rank(number(1) as u32), number(2) as u32);
    println!("{}", to_hex(domain.card()));
    let (sender, orders) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if sender.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    let mut endpoints: Vec<_> = (0..setting.endpoints).map(|_| domain.endpoint()).collect();
    let mut regions: Vec<Region> = Vec::new();
    let mut arrived = String::new();
    let mut completions = [Completion::EMPTY; 16];
    loop {
        for endpoint in &mut endpoints {
            endpoint.poll(&mut completions);
            endpoint.receive(&mut |arrival| match arrival {
                Arrival::Notified(addr) => {
                    write!(arrived, "bell {} {},", addr.key.to_bits(), addr.offset).unwrap();
                }
                Arrival::Packet { from, bytes } => {
                    let text = String::from_utf8_lossy(bytes);
                    write!(arrived, "{text} of {},", from.0).unwrap();
                }
            });
        }
        let order = match orders.try_recv() {
            Ok(order) => order,
            Err(mpsc::TryRecvError::Empty) => {
                std::thread::yield_now();
                continue;
            }
            Err(mpsc::TryRecvError::Disconnected) => return,
        };
        let words: Vec<&str> = order.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        match words[0] {
            "cards" => {
                let cards: Vec<Vec<u8>> = words[1..].iter().map(|card| from_hex(card)).collect();
                domain.find(move |rank, into| copy_card(&cards, rank, into));
                println!("met");
            }
            "register" => {
                let access = match number(2) {
                    0 => Access::Local,
                    1 => Access::Read,
                    _ => Access::ReadWrite,
                };
                let region = register(&domain, number(1), access);
                println!("{}", region.key.to_bits());
                regions.push(region);
            }
            "unregister" => {
                println!("{}", domain.unregister(RegionKey::from_bits(number(1) as u32)));
            }
            "load" => {
                let region =
                    regions.iter().find(|region| u64::from(region.key.to_bits()) == number(1));
                let at = region.unwrap().base.as_ptr().wrapping_add(number(2) as usize);
                // SAFETY: of a leaked region; a device may write to it.
                println!("{}", unsafe { at.cast::<u64>().read_volatile() });
            }
            "sleep" => {
                println!("asleep");
                std::thread::sleep(Duration::from_millis(number(1)));
            }
            "send" => {
                let to = Rank(number(1) as u32);
                println!("{:?}", endpoints[0].try_send(to, words[2].as_bytes()));
            }
            "add" => {
                let key = RegionKey::from_bits(number(2) as u32);
                let remote = RemoteAddr { rank: Rank(number(1) as u32), key, offset: number(3) };
                for _ in 0..number(4) {
                    let add = Op::atomic(Kind::FetchAdd, remote, 1u64);
                    assert_eq!(endpoints[0].post(&[add]), 1);
                    wait(&mut endpoints[0], 1)[0].result.unwrap();
                }
                println!("added");
            }
            // SAFETY: a plain call.
            "die" => drop(unsafe { libc::raise(libc::SIGKILL) }),
            "arrived" => println!("{}", std::mem::take(&mut arrived)),
            other => panic!("no such order: {other}"),
        }
    }
}

/// Polls until as many completions came, no longer than the limit.
pub fn wait(endpoint: &mut impl Endpoint, count: usize) -> Vec<Completion> {
    let (mut done, start) = (Vec::new(), Instant::now());
    let mut buffer = [Completion::EMPTY; 16];
    while done.len() < count {
        let came = endpoint.poll(&mut buffer);
        done.extend_from_slice(&buffer[..came]);
        assert!(start.elapsed() < LIMIT, "{} of {count} completions came", done.len());
    }
    done
}

/// Copies the card of a rank out of those that were read; returns its length.
pub fn copy_card(cards: &[Vec<u8>], rank: Rank, into: &mut [u8; CARD_BYTES_MAX]) -> Option<usize> {
    let card = cards.get(rank.0 as usize)?;
    into[..card.len()].copy_from_slice(card);
    Some(card.len())
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

pub const PEER: &str = "peer";

/// The variable that says where ranks run: `namespace=address ...`.
const NODES: &str = "TSUMUGI_TEST_NODES";

/// The variable that has a command which joins its input and output to a peer on another
/// machine: the first line has the arguments of the peer.
const AWAY: &str = "TSUMUGI_TEST_AWAY";

pub const LIMIT: Duration = Duration::from_secs(60);
