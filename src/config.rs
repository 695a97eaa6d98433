//! All settings of a rank, and the environment variables that set them.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `TSUMUGI_RANKS` | number of ranks that a program starts of itself if no launcher has started it; ignored under a launcher | none: the program is the only rank |
//! | `TSUMUGI_WORKERS` | worker threads of a rank | its share of the cpuset, at least 1 |
//! | `TSUMUGI_ULT_STACK_BYTES` | stack of a ULT (virtual) | 64 KiB |
//! | `TSUMUGI_MAIN_STACK_BYTES` | stack of the main ULT (virtual) | 8 MiB |
//! | `TSUMUGI_POOL_BYTES` | memory of a rank for [containers](crate::container) (virtual); a part of `TSUMUGI_EXPOSED_BYTES` | 256 MiB, or a quarter of the exposed memory if that is less |
//! | `TSUMUGI_BIND` | `cores`: each worker is bound to a core, alone or together with other workers; `none` | `cores` if a launcher's ranks have a core for each worker, or if ranks with one worker each share the cores evenly |
//! | `TSUMUGI_PATH` | how operations within a node are carried out: `direct`, `delegate`, `offload` | `direct` |
//! | `TSUMUGI_SPIN` | rounds that an idle worker searches for work before it sleeps | 200; 0 with more workers on the node than cores |
//! | `TSUMUGI_VERBOSE` | `on`: rank 0 prints how the ranks found each other | `off` |
//! | `TSUMUGI_SUSPENSION` | the action when a ULT suspends under an [`ult::NoSuspend`](tsumugi_ult::NoSuspend), or while it unwinds from a panic: `off`, `report` (a line on standard error for each name, reason and place), `panic` (the same line, and the `NoSuspend` panics when it is dropped), `abort` (the same line, and the process is aborted at that place) | `off`; `panic` in a build with debug assertions |
//! | `TSUMUGI_MPI_HEAP` | `on`: blocks that a program of MPI allocates lie in the partition of its rank | `off` |
//! | `TSUMUGI_MPI_CHECKS` | `on`: programs of MPI are checked: members compare their collectives, and the end of the job names objects that are left | `off` |
//! | `TSUMUGI_REPORT` | the signal on which a rank reports all its ULTs: `usr1`, `usr2` | none |
//! | `TSUMUGI_TRACE` | a folder, into which each rank writes at its end a trace of its ULTs for Perfetto | none |
//! | `TSUMUGI_NETWORK` | the network between nodes: `ofi` (libfabric), `verbs` (libibverbs), `off` | `ofi` |
//! | `TSUMUGI_NETWORK_SLEEP` | how a sleeping rank notices events of the network: the device wakes it (`called`), or a thread polls (`looks`), which makes a socket faster | `called` |
//! | `TSUMUGI_PROVIDER` | libfabric's provider, such as `tcp;ofi_rxm` | libfabric's first that reaches other nodes |
//! | `TSUMUGI_INTERFACE` | libfabric: the local address or interface to use | the provider's choice |
//! | `TSUMUGI_DEVICE` | the device, as its library names it; libibverbs: `mlx5_0`, `mlx5_0:2` with a port | the first |
//! | `TSUMUGI_ENDPOINTS` | endpoints on the device, 1 to 16 | 1 |
//! | `TSUMUGI_DYNAMIC` | libibverbs: whether many peers are reached by few queue pairs that change their peers (the dynamically connected transport, DCT, of NVIDIA's cards), where both devices have it and a test of all its operations succeeds: `tried`; it has never run on a card: `off` | `off` |
//! | `TSUMUGI_SILENCE_TIMEOUT` | how long a rank may be kept from running, or be cut off from the network, before it is given up, by ranks of other nodes or by the first rank of its own node, which ends it: they wait half as long again; a job of one node waits for ever | `5s` |
//! | `TSUMUGI_FAULTS` | injects network faults, to test a program: the seed for which operations are delayed, reordered, refused, and lost and sent again | no faults |
//! | `TSUMUGI_MESSAGES` | whether and how the sender writes a message directly into a receive: `mirror`, `locked`, `two_copy` | `mirror` |
//! | `TSUMUGI_COLLECTIVES` | algorithms of collectives in place of those that their lengths choose, to measure them: words `COLLECTIVE=ALGORITHM` with commas between them ([`tsumugi_core::coll::schedule::CollForced`]); the same at all ranks | none |
//! | `TSUMUGI_CALIBRATE` | whether a job measures the sizes at which messages change their path: `on`, `off` | `on` where each worker of a launcher's ranks has a core |
//! | `TSUMUGI_INLINE_MAX_BYTES` | up to this size a message travels in its packet | measured |
//! | `TSUMUGI_EAGER_MAX_BYTES` | up to this size a message without a known receive is sent eagerly, through slots | measured |
//! | `TSUMUGI_DIRECT_FROM_BYTES` | from this size on a message goes directly into a known receive | measured |
//! | `TSUMUGI_DIRECT_MAX_BYTES` | up to this size the sender writes such a message by plain stores | measured |
//! | `TSUMUGI_HALVES_FROM_BYTES` | from this size on, up to 8 KiB, a message is announced in two halves | measured |
//! | `TSUMUGI_PULL_FROM_BYTES` | from this size on the receiver fetches a message | measured |
//! | `TSUMUGI_STREAM_FROM_BYTES` | from this size on the sender uses non-temporal stores | measured |
//! | `TSUMUGI_ASK_FROM_BYTES` | from this size on a late receiver requests that the sender push | measured |
//! | `TSUMUGI_BOTH_FROM_BYTES` | from this size on both sides copy | measured |
//! | `TSUMUGI_PIECES_MAX_BYTES` | up to this size a message is copied in short pieces | measured |
//! | `TSUMUGI_KERNEL_FROM_BYTES` | from this size on the kernel copies between buffers outside of partitions | 96 KiB, 16 KiB where cores are shared |
//! | `TSUMUGI_ALONE_FROM_BYTES` | from this size on a receive is announced in a packet of its own, if there is no packet that can carry it | measured |
//! | `TSUMUGI_CHUNK_BYTES` | the sender announces a push after so many bytes, and the receiver fetches them while the sender copies on | 8 KiB |
//!
//! A size is a number of bytes, or has a unit: `64K`, `8MiB`; a time has a unit: `300ms`, `5s`
//! ([`tsumugi_core::quantity`]). `auto` stands for the default. A variable with the same
//! beginning and an unknown name is reported by rank 0, with the name that it most likely means.
//!
//! The last thirteen variables apply at every distance, see
//! [`tsumugi_pvas::distance`]. The variables of the partitions are in
//! [`tsumugi_pvas::config`], those of the bootstrap in [`crate::boot::env`].

use crate::{Error, NetworkFacts, NoNetwork};
use std::time::Duration;
use tsumugi_core::coll::schedule::{CollForced, UnknownWord};
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::msg::MatchingDesign;
use tsumugi_core::wait::DoorbellSet;
use tsumugi_pvas::SpaceConfig;
use tsumugi_pvas::config::{Choices, ConfigError, RANKS_MAX, ValueKind};
use tsumugi_pvas::distance::ByHand;
use tsumugi_runtime::inside::{Inside, REPORTS};
use tsumugi_runtime::net::probe;
use tsumugi_runtime::variable::{REPORT, TRACE};
use tsumugi_ult::SuspensionCheck;

pub use tsumugi_runtime::config::{Bind, Chosen, NetworkConfig, NetworkKind, NetworkSleep, Path};
pub use tsumugi_runtime::variable::{MAIN_STACK, NETWORK, POOL, ULT_STACK};

/// The settings of a rank: the default ones, or those of the environment
/// ([`from_env`](Self::from_env)), changed by the functions of their names. Settings that are
/// `None` are chosen at start.
///
/// ```
/// use tsumugi::{Bind, Config};
///
/// # fn main() -> Result<(), tsumugi::Error> {
/// let sums = Config::from_env()?.workers(2).bind(Bind::None).run_ranks(3, |rt| rt.sum(1_u64))?;
/// assert_eq!(sums, [3, 3, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Config {
    /// The number of ranks that [`run`](crate::run) starts if no launcher has started this
    /// process; `None`: this process is the only rank.
    pub ranks: Option<u32>,
    /// The number of worker threads of a rank.
    pub workers: Option<usize>,
    /// The size of a ULT's stack.
    pub stack_bytes: Option<usize>,
    /// The size of the main ULT's stack.
    pub main_stack_bytes: Option<usize>,
    /// The number of rounds that an idle worker searches for work before it sleeps.
    pub spin: Option<u32>,
    /// The cores on which workers run.
    pub bind: Option<Bind>,
    /// How operations within a node are carried out.
    pub path: Option<Path>,
    /// Whether rank 0 prints how the ranks found each other.
    pub verbose: bool,
    /// The action when a ULT suspends where it must not.
    pub suspension: Option<SuspensionCheck>,
    /// Whether blocks that a program of MPI allocates lie in the partition of its rank.
    pub mpi_heap: bool,
    /// Whether the library of MPI compares what the ranks call.
    pub mpi_checks: bool,
    /// The reports and traces of a rank.
    pub inside: Inside,
    /// How a sender finds the receive into which it may write a message directly.
    pub messages: Option<MatchingDesign>,
    /// Whether a job measures the thresholds of messages.
    pub calibrate: Option<bool>,
    /// Thresholds that are set and not measured.
    pub thresholds: ByHand,
    /// Algorithms of collectives that are forced: the same at all ranks.
    pub collectives: CollForced,
    /// The partitions; a job that was started by the launcher has its partitions
    /// already.
    pub space: SpaceConfig,
    /// The memory of a rank for [containers](crate::container).
    pub pool_bytes: Option<usize>,
    /// The network between nodes.
    pub network: NetworkConfig,
}

impl Config {
    /// Reads the settings from the environment.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] names the variable and its value, if the value is not
    /// valid.
    pub fn from_env() -> Result<Self, Error> {
        let mut inside = Inside::default();
        inside.report = choice(REPORT, &REPORTS)?;
        inside.trace = std::env::var_os(TRACE).map(Into::into);
        Ok(Self {
            ranks: number(RANKS, 1, RANKS_MAX as usize)?.map(|ranks| ranks as u32),
            workers: number(WORKERS, 1, WORKERS_MAX)?,
            stack_bytes: size(ULT_STACK, STACK_BYTES_MIN, STACK_BYTES_MAX)?,
            main_stack_bytes: size(MAIN_STACK, STACK_BYTES_MIN, STACK_BYTES_MAX)?,
            spin: number(SPIN_ROUNDS, 0, 1 << 30)?.map(|spin| spin as u32),
            bind: choice(BIND, &BINDS)?,
            path: choice(PATH, &PATHS)?,
            verbose: choice(VERBOSE, &SWITCH)?.unwrap_or(false),
            suspension: choice(SUSPENSION, &SUSPENSIONS)?,
            mpi_heap: choice(MPI_HEAP, &SWITCH)?.unwrap_or(false),
            mpi_checks: choice(MPI_CHECKS, &SWITCH)?.unwrap_or(false),
            inside,
            messages: choice(MESSAGES, &DESIGNS)?,
            calibrate: choice(CALIBRATE, &SWITCH)?,
            thresholds: thresholds()?,
            collectives: collectives()?,
            space: SpaceConfig::from_env()?,
            pool_bytes: size(POOL, POOL_BYTES_MIN, POOL_BYTES_MAX)?,
            network: network()?,
        })
    }

    /// The settings of a rank in a job with `size` ranks on this node.
    pub fn choose(&self, size: u32) -> Chosen {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let share = (cores / size as usize).clamp(1, WORKERS_MAX);
        let workers = self.workers.unwrap_or(share);
        let workers_per_core = workers.saturating_mul(size as usize).div_ceil(cores);
        let is_crowded = workers_per_core > 1;
        // Unbound, the system would move ranks to a core that is idle for a moment,
        // and then a core with one rank more would hold up all ranks. Ranks that
        // compute unevenly are better off unbound, but nothing shows that about a
        // job.
        let is_even = workers == 1 && (size as usize).is_multiple_of(cores);
        Chosen {
            workers,
            stack_bytes: self.stack_bytes.unwrap_or(STACK_BYTES),
            main_stack_bytes: self.main_stack_bytes.unwrap_or(MAIN_STACK_BYTES),
            workers_per_core: workers_per_core.try_into().unwrap_or(u32::MAX),
            spin: self.spin.unwrap_or(if is_crowded { 0 } else { SPIN }),
            bind: self.bind.unwrap_or(if is_crowded && !is_even {
                Bind::None
            } else {
                Bind::Cores
            }),
            path: self.path.unwrap_or_default(),
            suspension: self.suspension.unwrap_or_default(),
            inside: self.inside.clone(),
            messages: self.messages.unwrap_or(MatchingDesign::Mirror),
            calibrate: self.calibrate.unwrap_or(true) && !is_crowded && size > 1,
            thresholds: self.thresholds,
            collectives: self.collectives,
            silence: self.network.silence_limit(),
            pool_bytes: self.pool_bytes.unwrap_or(POOL_BYTES.min(self.space.exposed_bytes / 4)),
        }
    }
}

tsumugi_core::setters! { Config:
    ranks: u32, "the number of ranks that [`run`](crate::run) starts without a launcher";
    workers: usize, "the number of worker threads";
    stack_bytes: usize, "the size of a ULT's stack";
    main_stack_bytes: usize, "the size of the main ULT's stack";
    spin: u32, "how many rounds an idle worker searches before it sleeps";
    bind: Bind, "the cores on which workers run";
    path: Path, "how operations within a node are carried out";
    verbose: bool, "whether rank 0 prints how the ranks found each other";
    suspension: SuspensionCheck, "the action when a ULT suspends where it must not";
    mpi_heap: bool, "whether blocks of a program of MPI lie in the partition of its rank";
    mpi_checks: bool, "whether the library of MPI compares what the ranks call";
    inside: Inside, "the reports and traces of a rank";
    messages: MatchingDesign, "how a sender finds the receive into which it may write";
    calibrate: bool, "whether a job measures the thresholds of messages";
    thresholds: ByHand, "thresholds that are not measured";
    collectives: CollForced, "algorithms of collectives, the same at all ranks";
    space: SpaceConfig, "the partitions";
    pool_bytes: usize, "the memory of a rank for containers";
    network: NetworkConfig, "the network between nodes";
}

impl Config {
    /// Opens the network of a rank that is alone, probes its capabilities, and
    /// closes it. Takes a second or two.
    ///
    /// # Errors
    ///
    /// [`NoNetwork::Off`] if [`NetworkConfig::kind`] is
    /// [`NetworkKind::Off`]; [`NoNetwork::Ofi`] or
    /// [`NoNetwork::Verbs`], with the library's error, if the library or the device
    /// cannot be opened; [`NoNetwork::Address`] if the device's address is too long.
    pub fn probe_network(&self) -> Result<NetworkFacts, NoNetwork> {
        probe(&self.network)
    }
}

fn network() -> Result<NetworkConfig, ConfigError> {
    let mut network = NetworkConfig::default();
    network.kind = choice(NETWORK, &NETWORKS)?.unwrap_or_default();
    network.provider = word(PROVIDER);
    network.source = word(INTERFACE);
    network.device = word(DEVICE);
    network.endpoints = number(ENDPOINTS, 1, 16)?;
    network.sleep = choice(NETWORK_SLEEP, &NETWORK_SLEEPS)?.unwrap_or_default();
    network.dynamic = choice(DYNAMIC, &DYNAMICS)?.unwrap_or(false);
    let silence = read(ValueKind::Time, SILENCE, 100, SILENCE_MS_MAX)?;
    network.silence = silence.map(|ms| Duration::from_millis(ms as u64));
    network.faults = number(FAULTS, 0, usize::MAX)?.map(|seed| seed as u64);
    Ok(network)
}

fn thresholds() -> Result<ByHand, ConfigError> {
    let bytes = |name| Ok(size(name, 0, usize::MAX)?.map(|bytes| bytes as u64));
    let mut hand = ByHand::default();
    hand.inline_max = bytes(INLINE_MAX)?;
    hand.eager_max = bytes(EAGER_MAX)?;
    hand.direct_from = bytes(DIRECT_FROM)?;
    hand.alone_from = bytes(ALONE_FROM)?;
    hand.direct_max = bytes(DIRECT_MAX)?;
    hand.nt_from = bytes(STREAM_FROM)?;
    hand.halves_from = bytes(HALVES_FROM)?;
    hand.pull_from = bytes(PULL_FROM)?;
    hand.ask_from = bytes(ASK_FROM)?;
    hand.both_from = bytes(BOTH_FROM)?;
    hand.pieces_max = bytes(PIECES_MAX)?;
    hand.kernel_from = bytes(KERNEL_FROM)?;
    hand.chunk = size(CHUNK, 64, 1 << 30)?.map(|bytes| bytes as u64);
    Ok(hand)
}

fn collectives() -> Result<CollForced, ConfigError> {
    let text = word(COLLECTIVES);
    text.map_or(Ok(CollForced::NONE), |text| forced(&text))
}

/// Reads the value of [`COLLECTIVES`].
pub(crate) fn forced(text: &str) -> Result<CollForced, ConfigError> {
    CollForced::parse(text).map_err(|UnknownWord { word, choices }| {
        let value = Excerpt::new(word);
        ConfigError::NoSuchChoice { name: COLLECTIVES, value, choices }
    })
}

/// Reads a variable that must be one of a few words.
fn choice<T: Copy + PartialEq>(
    name: &'static str,
    choices: &Choices<T>,
) -> Result<Option<T>, ConfigError> {
    choices.read(name, word_or_auto(name).as_deref())
}

fn number(name: &'static str, min: usize, max: usize) -> Result<Option<usize>, ConfigError> {
    read(ValueKind::Number, name, min, max)
}

fn size(name: &'static str, min: usize, max: usize) -> Result<Option<usize>, ConfigError> {
    read(ValueKind::Size, name, min, max)
}

fn read(
    kind: ValueKind,
    name: &'static str,
    min: usize,
    max: usize,
) -> Result<Option<usize>, ConfigError> {
    kind.read(name, word_or_auto(name).as_deref(), min, max)
}

/// Reads a variable that may be any text.
fn word(name: &str) -> Option<String> {
    word_or_auto(name).filter(|word| word != "auto")
}

/// A value that is not UTF-8 is none of the valid ones, and the error shows it as far as it
/// can be shown.
fn word_or_auto(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// The variable of [`Config::ranks`].
pub const RANKS: &str = "TSUMUGI_RANKS";
/// The variable of [`Config::workers`].
pub const WORKERS: &str = "TSUMUGI_WORKERS";
/// The variable of [`Config::spin`].
pub const SPIN_ROUNDS: &str = "TSUMUGI_SPIN";

/// The variable of [`Config::bind`].
pub const BIND: &str = "TSUMUGI_BIND";
/// The variable of [`Config::path`].
pub const PATH: &str = "TSUMUGI_PATH";
/// The variable of [`Config::verbose`].
pub const VERBOSE: &str = "TSUMUGI_VERBOSE";
/// The variable of [`Config::mpi_heap`].
pub const MPI_HEAP: &str = "TSUMUGI_MPI_HEAP";
/// The variable of [`Config::mpi_checks`].
pub const MPI_CHECKS: &str = "TSUMUGI_MPI_CHECKS";
/// The variable of [`Config::suspension`].
pub const SUSPENSION: &str = "TSUMUGI_SUSPENSION";
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
/// The variable of [`NetworkConfig::silence`].
pub const SILENCE: &str = "TSUMUGI_SILENCE_TIMEOUT";
/// The variable of [`NetworkConfig::faults`].
pub const FAULTS: &str = "TSUMUGI_FAULTS";
/// The variable of [`Config::messages`].
pub const MESSAGES: &str = "TSUMUGI_MESSAGES";
/// The variable of [`Config::collectives`].
pub const COLLECTIVES: &str = "TSUMUGI_COLLECTIVES";
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

/// The values of a variable that switches something.
pub(crate) const SWITCH: Choices<bool> = Choices::new(&["off", "on"], &[false, true]);
/// The values of [`BIND`].
pub(crate) const BINDS: Choices<Bind> =
    Choices::new(&["cores", "none"], &[Bind::Cores, Bind::None]);
/// The values of [`PATH`].
pub(crate) const PATHS: Choices<Path> = Choices::new(
    &["direct", "delegate", "offload"],
    &[Path::Direct, Path::Delegate, Path::Offload],
);
/// The values of [`MESSAGES`].
pub(crate) const DESIGNS: Choices<MatchingDesign> = Choices::new(
    &["mirror", "locked", "two_copy"],
    &[MatchingDesign::Mirror, MatchingDesign::Locked, MatchingDesign::TwoCopy],
);
/// The values of [`SUSPENSION`].
pub(crate) const SUSPENSIONS: Choices<SuspensionCheck> = Choices::new(
    &["off", "report", "panic", "abort"],
    &[
        SuspensionCheck::Off,
        SuspensionCheck::Report,
        SuspensionCheck::Panic,
        SuspensionCheck::Abort,
    ],
);
/// The values of [`DYNAMIC`].
pub(crate) const DYNAMICS: Choices<bool> = Choices::new(&["off", "tried"], &[false, true]);
/// The values of [`NETWORK_SLEEP`].
pub(crate) const NETWORK_SLEEPS: Choices<NetworkSleep> =
    Choices::new(&["called", "looks"], &[NetworkSleep::Called, NetworkSleep::Looks]);
/// The values of [`NETWORK`].
pub(crate) const NETWORKS: Choices<NetworkKind> = Choices::new(
    &["ofi", "verbs", "off"],
    &[NetworkKind::Ofi, NetworkKind::Verbs, NetworkKind::Off],
);
const WORKERS_MAX: usize = DoorbellSet::WORKERS_MAX;
const SILENCE_MS_MAX: usize = 24 * 3600 * 1000;
pub(crate) const STACK_BYTES: usize = 64 << 10;
const STACK_BYTES_MIN: usize = 16 << 10;
const STACK_BYTES_MAX: usize = 1 << 32;
pub(crate) const MAIN_STACK_BYTES: usize = 8 << 20;
pub(crate) const SPIN: u32 = 200;
/// A rank has so much, but a quarter of its exposed memory at most.
pub(crate) const POOL_BYTES: usize = 256 << 20;
/// Its largest block takes the buckets of one map by default, 96 KiB.
const POOL_BYTES_MIN: usize = 2 << 20;
const POOL_BYTES_MAX: usize = 1 << 42;
