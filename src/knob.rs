//! A list of the environment variables, with their meanings and values.

use crate::config::{
    ALONE_FROM, ASK_FROM, BIND, BOTH_FROM, CALIBRATE, CHUNK, Config, DESIGNS, DEVICE, DIRECT_FROM,
    DIRECT_MAX, DYNAMIC, EAGER_MAX, ENDPOINTS, FAULTS, HALVES_FROM, INLINE_MAX, INTERFACE,
    KERNEL_FROM, MAIN_STACK, MAIN_STACK_BYTES, MESSAGES, NETWORK, NETWORK_SLEEP, NETWORK_SLEEPS,
    NETWORKS, PATH, PIECES_MAX, PROVIDER, PULL_FROM, RANKS, SILENCE, SPIN, SPIN_ROUNDS,
    STACK_BYTES, STREAM_FROM, SUSPENSION, SUSPENSIONS, ULT_STACK, VERBOSE, WORKERS,
};
use tsumugi_backends::boot::env as boot;
use tsumugi_pvas::config as space;
use tsumugi_pvas::config::{HugePages, Peers, Populate};
use tsumugi_pvas::distance::CHUNK_BYTES;
use tsumugi_pvas::partition::{PartitionShape, ShapeError};
use tsumugi_pvas::space::limits;
use tsumugi_runtime::config::SILENCE_MS;
use tsumugi_runtime::inside::REPORTS;
use tsumugi_runtime::variable::{REPORT, TRACE};

/// An environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// The value if the variable is not set; `None` for a variable that a launcher
    /// sets for its ranks.
    pub default: Option<String>,
    /// The value that a job would use now on this node; `None` outside of a job.
    pub chosen: Option<String>,
}

impl Config {
    /// Returns every variable, with the value that a job of `size` ranks on this
    /// node would use.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] if the partitions of such a job do not fit in the address
    /// space.
    pub fn knobs(&self, size: u32) -> Result<Vec<Knob>, ShapeError> {
        let shape = PartitionShape::fit(size, &self.space, limits())?;
        let chosen = self.choose(size);
        let policy = |word: &str| word.to_owned();
        let set = |name, meaning, default: String, chosen: String| Knob {
            name,
            meaning,
            default: Some(default),
            chosen: Some(chosen),
        };
        let told = |name, meaning| Knob { name, meaning, default: None, chosen: env(name) };
        let named = |name, meaning, given: &Option<String>| {
            let first = "the library's choice";
            set(name, meaning, first.into(), given.clone().unwrap_or_else(|| first.into()))
        };
        let hand = chosen.thresholds;
        let threshold = |name, meaning, given: Option<u64>| {
            let given = given.map(|given| bytes(given as usize));
            let own = if chosen.calibrate { "measured" } else { "fixed, by distance" };
            set(name, meaning, "measured".into(), given.unwrap_or_else(|| own.into()))
        };
        Ok(vec![
            set(
                RANKS,
                "ranks that a program starts of itself if no launcher has started it",
                "none".into(),
                self.ranks.map_or("none".into(), |ranks| ranks.to_string()),
            ),
            set(
                WORKERS,
                "worker threads of a rank",
                "its share of the cores".into(),
                chosen.workers.to_string(),
            ),
            set(
                ULT_STACK,
                "bytes of a ULT's stack (virtual)",
                bytes(STACK_BYTES),
                bytes(chosen.stack_bytes),
            ),
            set(
                MAIN_STACK,
                "bytes of the main ULT's stack (virtual)",
                bytes(MAIN_STACK_BYTES),
                bytes(chosen.main_stack_bytes),
            ),
            set(
                BIND,
                "whether the workers of a launcher's ranks are bound to cores: cores, none",
                "cores, none if cores are shared unevenly".into(),
                format!("{:?}", chosen.bind).to_lowercase(),
            ),
            set(
                PATH,
                "how operations within a node are carried out: direct, delegate, offload",
                "direct".into(),
                format!("{:?}", chosen.path).to_lowercase(),
            ),
            set(
                SPIN_ROUNDS,
                "rounds for which an idle worker searches before it sleeps",
                format!("{SPIN}, 0 if cores are shared"),
                chosen.spin.to_string(),
            ),
            set(
                NETWORK,
                "the network between nodes: ofi (libfabric), verbs (libibverbs), off",
                "ofi".into(),
                NETWORKS.iter().find(|(_, kind)| *kind == self.network.kind).map_or_else(
                    || format!("{:?}", self.network.kind),
                    |(word, _)| (*word).to_owned(),
                ),
            ),
            set(
                NETWORK_SLEEP,
                "how a sleeping rank notices the network: called (is woken), looks (polls)",
                "called".into(),
                NETWORK_SLEEPS.iter().find(|(_, sleep)| *sleep == self.network.sleep).map_or_else(
                    || format!("{:?}", self.network.sleep),
                    |(word, _)| (*word).to_owned(),
                ),
            ),
            named(PROVIDER, "libfabric's provider, such as tcp;ofi_rxm", &self.network.provider),
            named(
                INTERFACE,
                "libfabric: the local address or interface to use",
                &self.network.source,
            ),
            named(DEVICE, "the device, by its name in its library", &self.network.device),
            set(
                ENDPOINTS,
                "endpoints on the device, 1 to 16",
                "1".into(),
                self.network.endpoints.unwrap_or(1).to_string(),
            ),
            set(
                SILENCE,
                "ms for which a rank may be silent; after 1.5 times this it is given up",
                SILENCE_MS.to_string(),
                self.network.silence().as_millis().to_string(),
            ),
            set(
                DYNAMIC,
                "libibverbs: few queue pairs for many peers (DCT): off, tried",
                "off".into(),
                if self.network.dynamic { "tried" } else { "off" }.into(),
            ),
            set(
                FAULTS,
                "injects network faults, to test a program: the seed of the faults",
                "no faults".into(),
                self.network.faults.map_or("no faults".into(), |seed| seed.to_string()),
            ),
            set(
                MESSAGES,
                "how a message gets into a posted receive: mirror, locked, two_copy",
                "mirror".into(),
                DESIGNS.iter().find(|(_, design)| *design == chosen.messages).map_or_else(
                    || format!("{:?}", chosen.messages),
                    |(word, _)| (*word).to_owned(),
                ),
            ),
            set(
                CALIBRATE,
                "whether a job measures the sizes at which messages change their path: on, off",
                "on, off if cores are shared".into(),
                if chosen.calibrate { "on" } else { "off" }.into(),
            ),
            threshold(
                INLINE_MAX,
                "up to this size a message travels in its packet",
                hand.inline_max,
            ),
            threshold(
                EAGER_MAX,
                "up to this size a message without a known receive goes through slots",
                hand.eager_max,
            ),
            threshold(
                DIRECT_FROM,
                "from this size on a message goes directly into a known receive",
                hand.direct_from,
            ),
            threshold(
                ALONE_FROM,
                "from this size on a receive is announced in a packet of its own",
                hand.alone_from,
            ),
            threshold(
                DIRECT_MAX,
                "up to this size the sender writes such a message by plain stores",
                hand.direct_max,
            ),
            threshold(
                HALVES_FROM,
                "from this size on, up to 8 KiB, a message is announced in two halves",
                hand.halves_from,
            ),
            threshold(
                PULL_FROM,
                "from this size on the receiver fetches a message",
                hand.pull_from,
            ),
            threshold(
                STREAM_FROM,
                "from this size on the sender uses non-temporal stores",
                hand.nt_from,
            ),
            threshold(BOTH_FROM, "from this size on both sides copy", hand.both_from),
            threshold(
                PIECES_MAX,
                "up to this size a message is copied in short pieces",
                hand.pieces_max,
            ),
            set(
                KERNEL_FROM,
                "from this size on the kernel copies between buffers outside of partitions",
                KERNEL_FROM_DEFAULT.into(),
                hand.kernel_from
                    .map_or_else(|| KERNEL_FROM_DEFAULT.into(), |given| bytes(given as usize)),
            ),
            threshold(
                ASK_FROM,
                "from this size on a late receiver requests that the sender push",
                hand.ask_from,
            ),
            set(
                CHUNK,
                "bytes of a push that the sender announces at a time, at least",
                bytes(CHUNK_BYTES as usize),
                bytes(hand.chunk.unwrap_or(CHUNK_BYTES) as usize),
            ),
            set(
                space::BASE,
                "the address at which rank 0's partition starts",
                format!("{:#x}", space::BASE_DEFAULT),
                format!("{:#x}", shape.base),
            ),
            set(
                space::STARTER,
                "bytes of a rank that peers reach from the start",
                bytes(space::STARTER_BYTES),
                bytes(shape.starter_bytes),
            ),
            set(
                space::EXPOSED,
                "bytes for arrays of a rank that peers reach (virtual)",
                bytes(space::EXPOSED_BYTES),
                bytes(shape.exposed_bytes),
            ),
            set(
                space::HEAP,
                "bytes of a rank's heap, for buffers and tables (virtual)",
                bytes(space::HEAP_BYTES),
                bytes(shape.heap_bytes),
            ),
            set(
                space::STACKS,
                "bytes for the stacks of a rank (virtual)",
                bytes(space::STACK_BYTES),
                bytes(shape.stack_bytes),
            ),
            set(
                space::POPULATE,
                "when pages are allocated: none (first touch), own, peers",
                policy(Populate::default().word()),
                policy(self.space.policy.populate.word()),
            ),
            set(
                space::HUGE_PAGES,
                "pages of 2 MiB: none, advise, reserved (from the pool)",
                policy(HugePages::default().word()),
                policy(self.space.policy.huge_pages.word()),
            ),
            set(
                space::PEERS,
                "what a rank may do to peers' partitions: write, read-heap, read",
                policy(Peers::default().word()),
                policy(self.space.policy.peers.word()),
            ),
            set(
                space::GRACE,
                "ms from a rank's death until the other ranks get SIGTERM",
                space::GRACE_MS.to_string(),
                self.space.grace_ms.to_string(),
            ),
            set(
                space::NODE,
                "the name of this node: ranks with the same name share memory",
                "boot and network namespace".into(),
                env(space::NODE).unwrap_or_else(|| "boot and network namespace".into()),
            ),
            set(
                VERBOSE,
                "whether rank 0 prints how the ranks found each other: 0, 1",
                "0".into(),
                u8::from(self.verbose).to_string(),
            ),
            set(
                SUSPENSION,
                "the action when a ULT suspends where it must not: off, report, panic, abort",
                "off, panic with debug assertions".into(),
                SUSPENSIONS
                    .iter()
                    .find(|(_, check)| *check == chosen.suspension)
                    .map_or("off", |(word, _)| word)
                    .into(),
            ),
            set(
                REPORT,
                "the signal on which a rank reports all its ULTs: usr1, usr2",
                "none".into(),
                REPORTS
                    .iter()
                    .find(|(_, signal)| Some(*signal) == self.inside.report)
                    .map_or("none", |(word, _)| word)
                    .into(),
            ),
            set(
                TRACE,
                "a folder for a trace of each rank's ULTs, for Perfetto",
                "none".into(),
                self.inside.trace.as_ref().map_or("none".into(), |at| at.display().to_string()),
            ),
            set(
                boot::BOOT,
                "how ranks find each other: auto, tcp, pmi, pmix, alone",
                "auto".into(),
                env(boot::BOOT).unwrap_or_else(|| "auto".into()),
            ),
            set(
                boot::SECONDS,
                "seconds for which the ranks wait for each other at start",
                boot::SECONDS_DEFAULT.to_string(),
                env(boot::SECONDS).unwrap_or_else(|| boot::SECONDS_DEFAULT.to_string()),
            ),
            set(
                boot::MASTER,
                "the address at which rank 0 listens if the ranks meet over TCP: host:port",
                "from the launcher's variables".into(),
                env(boot::MASTER).unwrap_or_else(|| "from the launcher's variables".into()),
            ),
            set(
                boot::SECRET,
                "the secret that the ranks share if they meet over TCP",
                "none".into(),
                env(boot::SECRET).map_or("none", |_| "set").into(),
            ),
            set(
                boot::PMIX_LIBRARY,
                "the library from which PMIx is loaded",
                "the launcher's, else libpmix.so.2".into(),
                env(boot::PMIX_LIBRARY)
                    .unwrap_or_else(|| "the launcher's, else libpmix.so.2".into()),
            ),
            set(
                boot::RSH,
                "the program that runs a command on another host, for run --hosts",
                boot::RSH_DEFAULT.into(),
                env(boot::RSH).unwrap_or_else(|| boot::RSH_DEFAULT.into()),
            ),
            told(boot::SERVER, "the addresses at which the launcher of several hosts listens"),
            told(space::RANK, "the number of this rank"),
            told(space::SIZE, "the number of ranks of the job"),
            told(space::FDS, "the descriptors of the memory files"),
            told(space::SHAPE, "the base address and the sizes of the partitions"),
            told(space::DEATHS, "the descriptor from which the rank reads deaths on other nodes"),
            told(
                space::LOSSES,
                "the descriptor to which the rank writes the ranks that it declares lost",
            ),
            told(space::JOB, "the name of the job, which marks its processes"),
        ])
    }
}

/// A size in the largest unit that divides it.
fn bytes(bytes: usize) -> String {
    match bytes.trailing_zeros() {
        _ if bytes == 0 => "0".to_owned(),
        30.. => format!("{} GiB", bytes >> 30),
        20.. => format!("{} MiB", bytes >> 20),
        10.. => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The defaults of [`Thresholds::kernel_from`](tsumugi_pvas::distance::Thresholds),
/// which is not measured.
const KERNEL_FROM_DEFAULT: &str = "96 KiB, 16 KiB on a shared core";

#[cfg(test)]
mod tests;
