//! Every knob of a rank, and the variables of the environment that set them.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `TSUMUGI_WORKERS` | worker threads of a rank | its share of the cpuset, at least 1 |
//! | `TSUMUGI_ULT_STACK_BYTES` | stack of a ULT (virtual) | 64 KiB |
//! | `TSUMUGI_MAIN_STACK_BYTES` | stack of the main ULT (virtual) | 8 MiB |
//! | `TSUMUGI_BIND` | `cores`: each worker keeps to a core of its own, or to one that it shares; `none` | `cores` where a launcher's ranks have as many, or share them evenly, a worker each |
//! | `TSUMUGI_PATH` | how operations go: `direct`, `delegate`, `offload` | `direct` |
//! | `TSUMUGI_SPIN` | rounds that an idle worker looks for work before it sleeps | 200; 0 with more workers on the node than cores |
//! | `TSUMUGI_VERBOSE` | `1`: rank 0 says how the ranks found each other | `0` |
//! | `TSUMUGI_SUSPENSION` | what is done about a ULT that suspends under an [`ult::NoSuspend`](tsumugi_ult::NoSuspend), or while it unwinds from a panic: `off`, `report` (a line on standard error for each name, reason and place), `panic` (the same, and the `NoSuspend` panics when it is dropped), `abort` (the same line, and the end of the process there) | `off`; `panic` in a build with debug assertions |
//! | `TSUMUGI_REPORT` | the signal on which a rank reports all its ULTs: `usr1`, `usr2` | none |
//! | `TSUMUGI_TRACE` | a folder, where each rank writes at its end what ran when, for Perfetto | none |
//! | `TSUMUGI_NETWORK` | what connects nodes: `ofi` (libfabric), `verbs` (libibverbs), `off` | `ofi` |
//! | `TSUMUGI_NETWORK_SLEEP` | how a rank that sleeps hears of the network: `called` by the device, or somebody `looks`, which makes a socket faster | `called` |
//! | `TSUMUGI_PROVIDER` | libfabric's provider, such as `tcp;ofi_rxm` | libfabric's first that reaches other nodes |
//! | `TSUMUGI_INTERFACE` | libfabric: the own address or interface to use | the provider's choice |
//! | `TSUMUGI_DEVICE` | the device, as its library names it; libibverbs: `mlx5_0`, `mlx5_0:2` with a port | the first |
//! | `TSUMUGI_ENDPOINTS` | queues to the device, 1 to 16 | 1 |
//! | `TSUMUGI_DYNAMIC` | libibverbs: whether many peers are reached by few pairs that change hands (the dynamically connected transport of NVIDIA's cards), where both have that and it does all that is tried: `tried`; it has never run on a card: `off` | `off` |
//! | `TSUMUGI_SILENCE_MS` | how long a rank may be held off its processor, or cut off, before ranks of other nodes give it up, or the first of its own node ends it: after half as long again; a job of one node waits for ever | 5000 |
//! | `TSUMUGI_FAULTS` | makes the network bad on purpose, to try a program: the seed that draws what is delayed, reordered, refused, and lost and sent again | no faults |
//! | `TSUMUGI_MESSAGES` | whether a message may go straight into a receive: `mirror`, `locked`, `two_copy` | `mirror` |
//! | `TSUMUGI_CALIBRATE` | whether a job measures how messages go best: `on`, `off` | `on` where each worker of a launcher's ranks has a core |
//! | `TSUMUGI_INLINE_MAX_BYTES` | a message of so many travels in its packet | measured |
//! | `TSUMUGI_EAGER_MAX_BYTES` | for which no receive is known, through slots | measured |
//! | `TSUMUGI_DIRECT_FROM_BYTES` | from here on straight into a known receive | measured |
//! | `TSUMUGI_DIRECT_MAX_BYTES` | up to here by plain stores | measured |
//! | `TSUMUGI_HALVES_FROM_BYTES` | from here on, up to 8 KiB, told in two halves | measured |
//! | `TSUMUGI_PULL_FROM_BYTES` | from here on fetched by the receiver | measured |
//! | `TSUMUGI_STREAM_FROM_BYTES` | from here on by streaming stores | measured |
//! | `TSUMUGI_ASK_FROM_BYTES` | from here on a late receiver asks for a push | measured |
//! | `TSUMUGI_BOTH_FROM_BYTES` | from here on copied by both sides | measured |
//! | `TSUMUGI_PIECES_MAX_BYTES` | up to here copied in short pieces | measured |
//! | `TSUMUGI_KERNEL_FROM_BYTES` | from here on copied by the kernel between buffers outside of partitions | 96 KiB, 16 KiB where cores are shared |
//! | `TSUMUGI_CHUNK_BYTES` | pushed before the receiver is told, which fetches them meanwhile | 8 KiB |
//!
//! The last twelve hold at every distance, see [`tsumugi_pvas::distance`].
//! Those of the partitions are in [`tsumugi_pvas::config`], those of the start in
//! [`crate::boot::env`].

use crate::Error;
use crate::inside::{Inside, REPORT, REPORTS, TRACE};
use std::time::Duration;
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::msg::Design;
use tsumugi_core::wait::Bells;
use tsumugi_pvas::Config as SpaceConfig;
use tsumugi_pvas::config::{ConfigError, parse_number};
use tsumugi_pvas::distance::ByHand;
use tsumugi_ult::SuspensionCheck;

/// How operations between ranks of a node go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// As loads and stores of the caller.
    #[default]
    Direct,
    /// Through a queue that whoever comes works.
    Delegate,
    /// Through a queue that a communication thread works.
    Offload,
}

/// Where workers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// Each on a core of its own, among those that the process may use; where
    /// there are not as many, they are dealt out in turn. OS threads that a ULT
    /// starts begin on its worker's core.
    Cores,
    /// Wherever the system likes.
    None,
}

/// How long an idle communication thread stays awake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idleness {
    pub(crate) spins: u32,
    pub(crate) yields: u32,
}

/// How a rank is set up. What is not set is chosen at start.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Worker threads of a rank.
    pub workers: Option<usize>,
    /// Stack of a ULT.
    pub stack_bytes: Option<usize>,
    /// Stack of the main ULT.
    pub main_stack_bytes: Option<usize>,
    /// Rounds that an idle worker looks for work before it sleeps.
    pub spin: Option<u32>,
    /// Where workers run.
    pub bind: Option<Bind>,
    /// How operations go.
    pub path: Option<Path>,
    /// Whether rank 0 says how the ranks found each other.
    pub verbose: bool,
    /// What is done about a ULT that suspends where it must not.
    pub suspension: Option<SuspensionCheck>,
    /// What a rank shows of itself.
    pub inside: Inside,
    /// How a message finds the receive that it may go straight into.
    pub messages: Option<Design>,
    /// Whether a job measures how messages go best.
    pub calibrate: Option<bool>,
    /// What is known about that without measuring.
    pub thresholds: ByHand,
    /// The partitions; a launcher's job has its own already.
    pub space: SpaceConfig,
    /// What connects nodes.
    pub network: NetworkConfig,
}

/// The network of a job on several nodes.
///
/// Atomics between nodes are done by the target's processor, whatever the
/// provider: they mix with those of its own node, and a region cannot be given
/// to the device's atomics instead. A put has ended when it is in the target's
/// memory if the provider promises that; if it does not, the put may end
/// earlier, no fence makes up for it, and [`Config::probe_network`] lists it
/// among what is lacking.
///
/// Traffic is neither encrypted nor signed. Packets bear a random number of 64
/// bits that the job has, and over libfabric the keys of memory are as long
/// where the caller chooses them: a program that has seen neither the traffic
/// nor a rank's card cannot write to a rank or pass for one. One that can read
/// the traffic can do both, and where the device chooses the keys itself (verbs,
/// EFA) one that guesses can write: there the network has to keep others out.
#[derive(Clone, Debug, Default)]
pub struct NetworkConfig {
    /// By which library.
    pub kind: NetworkKind,
    /// libfabric's provider.
    pub provider: Option<String>,
    /// libfabric's own address or interface.
    pub source: Option<String>,
    /// The device; libibverbs': its port may stand after a colon.
    pub device: Option<String>,
    /// Queues to it.
    pub endpoints: Option<usize>,
    /// How a rank that sleeps hears of it.
    pub sleep: NetworkSleep,
    /// Whether libibverbs reaches many peers by few pairs that change hands, the
    /// dynamically connected transport, where both devices have it and it does
    /// all that is tried. It has never run on a card.
    pub dynamic: bool,
    /// How long a rank may be held off its processor, or cut off, in
    /// milliseconds, 100 at least: 5000 if not set. A rank that ranks of other
    /// nodes hear nothing of for half as long again is given up: their operations
    /// on it end with [`PeerLost`](crate::AddrError::PeerLost), nothing that it
    /// sends is let in, and when it is back it is told and ends. That a process
    /// has died is noticed sooner, by its node. To be the same on all ranks.
    pub silence_ms: Option<u32>,
    /// Makes it bad on purpose: from this seed, operations, their ends and
    /// parcels are delayed, reordered and refused, and some come as late as if
    /// they had been lost and sent again.
    pub faults: Option<u64>,
}

/// How a rank whose threads all sleep or compute hears of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkSleep {
    /// The device calls.
    #[default]
    Called,
    /// Somebody looks, ever more rarely, down to each millisecond, which takes
    /// a hundredth of a core or two; and all the time while bytes move. Over
    /// tcp;ofi_rxm an operation on a rank that polls takes 1.3 to 1.8 us less, and
    /// one on a rank that sleeps, up to a millisecond more: for ranks that have
    /// cores of their own and never sleep.
    Looks,
}

/// What a job on several nodes goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkKind {
    /// libfabric.
    #[default]
    Ofi,
    /// libibverbs.
    Verbs,
    /// Nothing: a job on several nodes does not start.
    Off,
}

/// A [`Config`] with nothing left open.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Worker threads of a rank.
    pub workers: usize,
    /// Stack of a ULT.
    pub stack_bytes: usize,
    /// Stack of the main ULT.
    pub main_stack_bytes: usize,
    /// Rounds that an idle worker looks for work before it sleeps.
    pub spin: u32,
    /// Where the workers of a launcher's ranks run.
    pub bind: Bind,
    /// How operations go.
    pub path: Path,
    /// What is done about a ULT that suspends where it must not.
    pub suspension: SuspensionCheck,
    /// What a rank shows of itself.
    pub inside: Inside,
    /// How a message finds the receive that it may go straight into.
    pub messages: Design,
    /// Whether a launcher's job measures how messages go best.
    pub calibrate: bool,
    /// What is known about that without measuring.
    pub thresholds: ByHand,
    /// How long a rank may be held off its processor before ranks of other nodes
    /// give it up.
    pub silence: Duration,
}

impl NetworkConfig {
    /// How long a rank may be held off its processor.
    pub(crate) fn silence(&self) -> Duration {
        Duration::from_millis(self.silence_ms.unwrap_or(SILENCE_MS).into())
    }
}

impl Config {
    /// What the environment says.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] names the variable and its value.
    pub fn from_env() -> Result<Self, Error> {
        Ok(Self {
            workers: number(WORKERS, 1, WORKERS_MAX)?,
            stack_bytes: number(ULT_STACK, STACK_BYTES_MIN, STACK_BYTES_MAX)?,
            main_stack_bytes: number(MAIN_STACK, STACK_BYTES_MIN, STACK_BYTES_MAX)?,
            spin: number(SPIN_ROUNDS, 0, 1 << 30)?.map(|spin| spin as u32),
            bind: choice(BIND, &[("cores", Bind::Cores), ("none", Bind::None)])?,
            path: choice(
                PATH,
                &[
                    ("direct", Path::Direct),
                    ("delegate", Path::Delegate),
                    ("offload", Path::Offload),
                ],
            )?,
            verbose: choice(VERBOSE, &[("0", false), ("1", true)])?.unwrap_or(false),
            suspension: choice(SUSPENSION, &SUSPENSIONS)?,
            inside: Inside {
                report: choice(REPORT, &REPORTS)?,
                trace: std::env::var_os(TRACE).map(Into::into),
            },
            messages: choice(MESSAGES, &DESIGNS)?,
            calibrate: choice(CALIBRATE, &[("on", true), ("off", false)])?,
            thresholds: thresholds()?,
            space: SpaceConfig::from_env()?,
            network: NetworkConfig {
                kind: choice(NETWORK, &NETWORKS)?.unwrap_or_default(),
                provider: std::env::var(PROVIDER).ok(),
                source: std::env::var(INTERFACE).ok(),
                device: std::env::var(DEVICE).ok(),
                endpoints: number(ENDPOINTS, 1, 16)?,
                sleep: choice(NETWORK_SLEEP, &NETWORK_SLEEPS)?.unwrap_or_default(),
                dynamic: choice(DYNAMIC, &DYNAMICS)?.unwrap_or(false),
                silence_ms: number(SILENCE, 100, SILENCE_MS_MAX)?.map(|ms| ms as u32),
                faults: number(FAULTS, 0, usize::MAX)?.map(|seed| seed as u64),
            },
        })
    }

    /// The same with `workers` worker threads.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// The same with operations that go by `path`.
    #[must_use]
    pub fn path(self, path: Path) -> Self {
        Self { path: Some(path), ..self }
    }

    /// What a rank of `size` on this node uses.
    pub fn choose(&self, size: u32) -> Chosen {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let workers = self.workers.unwrap_or((cores / size as usize).max(1));
        let crowded = workers.saturating_mul(size as usize) > cores;
        // The system would move ranks to a core that is idle for a moment, and
        // the one that has one more then holds up all. Those that compute
        // unevenly are better off unbound; nothing says so of a job.
        let is_even = workers == 1 && (size as usize).is_multiple_of(cores);
        Chosen {
            workers,
            stack_bytes: self.stack_bytes.unwrap_or(STACK_BYTES),
            main_stack_bytes: self.main_stack_bytes.unwrap_or(MAIN_STACK_BYTES),
            spin: self.spin.unwrap_or(if crowded { 0 } else { SPIN }),
            bind: self.bind.unwrap_or(if crowded && !is_even { Bind::None } else { Bind::Cores }),
            path: self.path.unwrap_or_default(),
            suspension: self.suspension.unwrap_or_default(),
            inside: self.inside.clone(),
            messages: self.messages.unwrap_or(Design::Mirror),
            calibrate: self.calibrate.unwrap_or(true) && !crowded && size > 1,
            thresholds: self.thresholds,
            silence: self.network.silence(),
        }
    }
}

impl Chosen {
    pub(crate) fn idleness(&self) -> Idleness {
        Idleness { spins: self.spin.saturating_mul(10), yields: 10 }
    }
}

fn thresholds() -> Result<ByHand, ConfigError> {
    let bytes = |name| Ok(number(name, 0, usize::MAX)?.map(|bytes| bytes as u64));
    Ok(ByHand {
        inline_max: bytes(INLINE_MAX)?,
        eager_max: bytes(EAGER_MAX)?,
        direct_from: bytes(DIRECT_FROM)?,
        alone_from: bytes(ALONE_FROM)?,
        direct_max: bytes(DIRECT_MAX)?,
        nt_from: bytes(STREAM_FROM)?,
        halves_from: bytes(HALVES_FROM)?,
        pull_from: bytes(PULL_FROM)?,
        ask_from: bytes(ASK_FROM)?,
        both_from: bytes(BOTH_FROM)?,
        pieces_max: bytes(PIECES_MAX)?,
        kernel_from: bytes(KERNEL_FROM)?,
        chunk: number(CHUNK, 64, 1 << 30)?.map(|bytes| bytes as u64),
    })
}

/// One of a few words.
fn choice<T: Copy>(
    name: &'static str,
    choices: &[(&'static str, T)],
) -> Result<Option<T>, ConfigError> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    match choices.iter().find(|(word, _)| *word == text) {
        Some((_, choice)) => Ok(Some(*choice)),
        None => Err(ConfigError::NoSuchChoice { name, value: Excerpt::new(&text) }),
    }
}

fn number(name: &'static str, min: usize, max: usize) -> Result<Option<usize>, ConfigError> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    let value = parse_number(name, &text)?;
    match (min..=max).contains(&value) {
        true => Ok(Some(value)),
        false => Err(ConfigError::OutOfBounds { name, value, min, max }),
    }
}

/// The variable of [`Config::workers`].
pub const WORKERS: &str = "TSUMUGI_WORKERS";
/// The variable of [`Config::stack_bytes`].
pub const ULT_STACK: &str = "TSUMUGI_ULT_STACK_BYTES";
/// The variable of [`Config::main_stack_bytes`].
pub const MAIN_STACK: &str = "TSUMUGI_MAIN_STACK_BYTES";
/// The variable of [`Config::spin`].
pub const SPIN_ROUNDS: &str = "TSUMUGI_SPIN";

/// The variable of [`Config::bind`].
pub const BIND: &str = "TSUMUGI_BIND";
/// The variable of [`Config::path`].
pub const PATH: &str = "TSUMUGI_PATH";
/// The variable of [`Config::verbose`].
pub const VERBOSE: &str = "TSUMUGI_VERBOSE";
/// The variable of [`Config::suspension`].
pub const SUSPENSION: &str = "TSUMUGI_SUSPENSION";
/// The variable of [`NetworkConfig::kind`].
pub const NETWORK: &str = "TSUMUGI_NETWORK";
/// The variable of [`NetworkConfig::provider`].
pub const PROVIDER: &str = "TSUMUGI_PROVIDER";
/// The variable of [`NetworkConfig::sleep`].
pub const NETWORK_SLEEP: &str = "TSUMUGI_NETWORK_SLEEP";
/// The variable of [`NetworkConfig::source`].
pub const INTERFACE: &str = "TSUMUGI_INTERFACE";
/// The variable of [`NetworkConfig::device`].
pub const DEVICE: &str = "TSUMUGI_DEVICE";
/// The variable of [`NetworkConfig::endpoints`].
pub const ENDPOINTS: &str = "TSUMUGI_ENDPOINTS";
/// The variable of [`NetworkConfig::dynamic`].
pub const DYNAMIC: &str = "TSUMUGI_DYNAMIC";
/// The variable of [`NetworkConfig::silence_ms`].
pub const SILENCE: &str = "TSUMUGI_SILENCE_MS";
/// The variable of [`NetworkConfig::faults`].
pub const FAULTS: &str = "TSUMUGI_FAULTS";
/// The variable of [`Config::messages`].
pub const MESSAGES: &str = "TSUMUGI_MESSAGES";
/// The variable of [`Config::calibrate`].
pub const CALIBRATE: &str = "TSUMUGI_CALIBRATE";
/// The variable of [`ByHand::inline_max`].
pub const INLINE_MAX: &str = "TSUMUGI_INLINE_MAX_BYTES";
/// The variable of [`ByHand::eager_max`].
pub const EAGER_MAX: &str = "TSUMUGI_EAGER_MAX_BYTES";
/// The variable of [`ByHand::direct_from`].
pub const DIRECT_FROM: &str = "TSUMUGI_DIRECT_FROM_BYTES";
/// The variable of [`ByHand::alone_from`].
pub const ALONE_FROM: &str = "TSUMUGI_ALONE_FROM_BYTES";
/// The variable of [`ByHand::direct_max`].
pub const DIRECT_MAX: &str = "TSUMUGI_DIRECT_MAX_BYTES";
/// The variable of [`ByHand::nt_from`].
pub const STREAM_FROM: &str = "TSUMUGI_STREAM_FROM_BYTES";
/// The variable of [`ByHand::halves_from`].
pub const HALVES_FROM: &str = "TSUMUGI_HALVES_FROM_BYTES";
/// The variable of [`ByHand::pull_from`].
pub const PULL_FROM: &str = "TSUMUGI_PULL_FROM_BYTES";
/// The variable of [`ByHand::ask_from`].
pub const ASK_FROM: &str = "TSUMUGI_ASK_FROM_BYTES";
/// The variable of [`ByHand::both_from`].
pub const BOTH_FROM: &str = "TSUMUGI_BOTH_FROM_BYTES";
/// The variable of [`ByHand::pieces_max`].
pub const PIECES_MAX: &str = "TSUMUGI_PIECES_MAX_BYTES";
/// The variable of [`ByHand::kernel_from`].
pub const KERNEL_FROM: &str = "TSUMUGI_KERNEL_FROM_BYTES";
/// The variable of [`ByHand::chunk`].
pub const CHUNK: &str = "TSUMUGI_CHUNK_BYTES";

/// What [`MESSAGES`] may hold.
pub(crate) const DESIGNS: [(&str, Design); 3] =
    [("mirror", Design::Mirror), ("locked", Design::Locked), ("two_copy", Design::TwoCopy)];
/// What [`SUSPENSION`] may hold.
pub(crate) const SUSPENSIONS: [(&str, SuspensionCheck); 4] = [
    ("off", SuspensionCheck::Off),
    ("report", SuspensionCheck::Report),
    ("panic", SuspensionCheck::Panic),
    ("abort", SuspensionCheck::Abort),
];
/// What [`DYNAMIC`] may hold.
pub(crate) const DYNAMICS: [(&str, bool); 2] = [("off", false), ("tried", true)];
/// What [`NETWORK_SLEEP`] may hold.
pub(crate) const NETWORK_SLEEPS: [(&str, NetworkSleep); 2] =
    [("called", NetworkSleep::Called), ("looks", NetworkSleep::Looks)];
/// What [`NETWORK`] may hold.
pub(crate) const NETWORKS: [(&str, NetworkKind); 3] =
    [("ofi", NetworkKind::Ofi), ("verbs", NetworkKind::Verbs), ("off", NetworkKind::Off)];
const WORKERS_MAX: usize = Bells::WORKERS_MAX;
/// Unless set otherwise.
pub(crate) const SILENCE_MS: u32 = 5000;
const SILENCE_MS_MAX: usize = 24 * 3600 * 1000;
pub(crate) const STACK_BYTES: usize = 64 << 10;
const STACK_BYTES_MIN: usize = 16 << 10;
const STACK_BYTES_MAX: usize = 1 << 32;
pub(crate) const MAIN_STACK_BYTES: usize = 8 << 20;
pub(crate) const SPIN: u32 = 200;
