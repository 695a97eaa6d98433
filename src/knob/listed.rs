//! The variables, group by group.

use super::group_list::{GroupList, bytes, env, show, time};
use super::variable::{Knob, KnobGroup};
use crate::config::{
    ALONE_FROM, ASK_FROM, BIND, BINDS, BOTH_FROM, CALIBRATE, CHUNK, COLLECTIVES, Config, DESIGNS,
    DEVICE, DIRECT_FROM, DIRECT_MAX, DYNAMIC, DYNAMICS, EAGER_MAX, ENDPOINTS, FAULTS, HALVES_FROM,
    INLINE_MAX, INTERFACE, KERNEL_FROM, MAIN_STACK, MAIN_STACK_BYTES, MESSAGES, MPI_CHECKS,
    MPI_HEAP, NETWORK, NETWORK_SLEEP, NETWORK_SLEEPS, NETWORKS, PATH, PATHS, PIECES_MAX, POOL,
    POOL_BYTES, PROVIDER, PULL_FROM, RANKS, SILENCE, SPIN, SPIN_ROUNDS, STACK_BYTES, STREAM_FROM,
    SUSPENSION, SUSPENSIONS, SWITCH, ULT_STACK, VERBOSE, WORKERS,
};
use tsumugi_backends::boot::env as boot;
use tsumugi_pvas::config as space;
use tsumugi_pvas::config::{HugePages, Peers, Populate};
use tsumugi_pvas::distance::CHUNK_BYTES;
use tsumugi_pvas::partition::{PartitionShape, ShapeError};
use tsumugi_pvas::space::limits;
use tsumugi_runtime::config::SILENCE_DEFAULT;
use tsumugi_runtime::inside::REPORTS;
use tsumugi_runtime::variable::{REPORT, TRACE};

impl Config {
    /// Returns every variable, by group, with the value that a job of `size` ranks on
    /// this node would use.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] if the partitions of such a job do not fit in the address
    /// space.
    pub fn knobs(&self, size: u32) -> Result<Vec<Knob>, ShapeError> {
        listed(self, size)
    }
}

/// Every variable, with its value for a job of `size` ranks on this node.
fn listed(config: &Config, size: u32) -> Result<Vec<Knob>, ShapeError> {
    let shape = PartitionShape::fit(size, &config.space, limits())?;
    let lists = [
        ranks(config),
        threads(config, size),
        memory(config, &shape, size),
        messages(config, size),
        thresholds(config, size),
        network(config),
        time_limits(config),
        debugging(config, size),
        launcher(),
    ];
    Ok(lists.into_iter().flat_map(GroupList::into_knobs).collect())
}

fn ranks(config: &Config) -> GroupList {
    let alone = "none: the program is the only rank";
    let count = config.ranks.map_or_else(|| alone.to_owned(), |ranks| ranks.to_string());
    let secret = env(boot::SECRET).map_or("none", |_| "set");
    GroupList::new(KnobGroup::Ranks)
        .add(RANKS, "ranks that a program starts of itself without a launcher", alone, count)
        .text(boot::BOOT, "how ranks find each other: tcp, pmi, pmix, alone", "auto")
        .text(
            boot::MASTER,
            "the address at which rank 0 listens if the ranks meet over TCP: host:port",
            "from the launcher's variables",
        )
        .add(boot::SECRET, "the secret that the ranks share if they meet over TCP", "none", secret)
        .text(
            boot::PMIX_LIBRARY,
            "the library from which PMIx is loaded",
            "the launcher's, else libpmix.so.2",
        )
        .text(
            boot::RSH,
            "the program that runs a command on another host, for run --hosts",
            boot::RSH_DEFAULT,
        )
        .text(
            space::NODE,
            "the name of this node: ranks with the same name share memory",
            "boot and network namespace",
        )
}

fn threads(config: &Config, size: u32) -> GroupList {
    let chosen = config.choose(size);
    GroupList::new(KnobGroup::Threads)
        .add(WORKERS, "worker threads of a rank", "its share of the cores", chosen.workers)
        .add(
            BIND,
            format!("whether a launcher's workers are bound to cores: {}", BINDS.list()),
            "cores, none if cores are shared unevenly",
            BINDS.word(chosen.bind),
        )
        .add(
            SPIN_ROUNDS,
            "rounds for which an idle worker searches before it sleeps",
            format!("{SPIN}, 0 if cores are shared"),
            chosen.spin,
        )
        .add(
            ULT_STACK,
            "the stack of a ULT (virtual)",
            bytes(STACK_BYTES),
            bytes(chosen.stack_bytes),
        )
        .add(
            MAIN_STACK,
            "the stack of the main ULT (virtual)",
            bytes(MAIN_STACK_BYTES),
            bytes(chosen.main_stack_bytes),
        )
}

fn memory(config: &Config, shape: &PartitionShape, size: u32) -> GroupList {
    let policy = config.space.policy;
    GroupList::new(KnobGroup::Memory)
        .add(
            space::HEAP,
            "a rank's heap, for buffers and tables (virtual)",
            bytes(space::HEAP_BYTES),
            bytes(shape.heap_bytes),
        )
        .add(
            space::EXPOSED,
            "arrays of a rank that peers reach (virtual)",
            bytes(space::EXPOSED_BYTES),
            bytes(shape.exposed_bytes),
        )
        .add(
            POOL,
            "the part of that for containers (virtual)",
            bytes(POOL_BYTES),
            bytes(config.choose(size).pool_bytes),
        )
        .add(
            space::STACKS,
            "all stacks of a rank (virtual)",
            bytes(space::STACK_BYTES),
            bytes(shape.stack_bytes),
        )
        .add(
            space::STARTER,
            "memory of a rank that peers reach from the start",
            bytes(space::STARTER_BYTES),
            bytes(shape.starter_bytes),
        )
        .add(
            space::POPULATE,
            "when pages are allocated: none (first touch), own, peers",
            Populate::default().word(),
            policy.populate.word(),
        )
        .add(
            space::HUGE_PAGES,
            "pages of 2 MiB: none, advise, reserved (from the pool)",
            HugePages::default().word(),
            policy.huge_pages.word(),
        )
        .add(
            space::PEERS,
            format!("what a rank may do to peers' partitions: {}", Peers::CHOICES.list()),
            Peers::default().word(),
            policy.peers.word(),
        )
        .add(
            space::BASE,
            "the address at which rank 0's partition starts",
            format!("{:#x}", space::BASE_DEFAULT),
            format!("{:#x}", shape.base),
        )
}

fn messages(config: &Config, size: u32) -> GroupList {
    let chosen = config.choose(size);
    GroupList::new(KnobGroup::Messages)
        .add(
            PATH,
            format!("how operations within a node are carried out: {}", PATHS.list()),
            "direct",
            PATHS.word(chosen.path),
        )
        .add(
            MESSAGES,
            format!("how a message gets into a posted receive: {}", DESIGNS.list()),
            "mirror",
            DESIGNS.word(chosen.messages),
        )
        .text(
            COLLECTIVES,
            "algorithms of collectives: broadcast=chain,far.allreduce=ring,all=tree",
            "none: chosen by lengths",
        )
        .add(
            CALIBRATE,
            format!("whether a job measures the thresholds of messages: {}", SWITCH.list()),
            "on, off if cores are shared",
            SWITCH.word(chosen.calibrate),
        )
}

fn thresholds(config: &Config, size: u32) -> GroupList {
    let (hand, calibrate) = (config.thresholds, config.choose(size).calibrate);
    let own = if calibrate { "measured" } else { "fixed, by distance" };
    let or = |given: Option<u64>, own: &str| given.map_or(own.to_owned(), show);
    let measured = [
        (INLINE_MAX, "up to this size a message travels in its packet", hand.inline_max),
        (
            EAGER_MAX,
            "up to this size a message without a known receive goes through slots",
            hand.eager_max,
        ),
        (
            DIRECT_FROM,
            "from this size on a message goes directly into a known receive",
            hand.direct_from,
        ),
        (
            ALONE_FROM,
            "from this size on a receive is announced in a packet of its own",
            hand.alone_from,
        ),
        (
            DIRECT_MAX,
            "up to this size the sender writes such a message by plain stores",
            hand.direct_max,
        ),
        (
            HALVES_FROM,
            "from this size on, up to 8 KiB, a message is announced in two halves",
            hand.halves_from,
        ),
        (PULL_FROM, "from this size on the receiver fetches a message", hand.pull_from),
        (STREAM_FROM, "from this size on the sender uses non-temporal stores", hand.nt_from),
        (BOTH_FROM, "from this size on both sides copy", hand.both_from),
        (PIECES_MAX, "up to this size a message is copied in short pieces", hand.pieces_max),
        (
            ASK_FROM,
            "from this size on a late receiver requests that the sender push",
            hand.ask_from,
        ),
    ];
    let list = GroupList::new(KnobGroup::Thresholds)
        .add(
            KERNEL_FROM,
            "from this size on the kernel copies between buffers outside of partitions",
            KERNEL_FROM_DEFAULT,
            or(hand.kernel_from, KERNEL_FROM_DEFAULT),
        )
        .add(
            CHUNK,
            "the part of a push that the sender announces at a time, at least",
            show(CHUNK_BYTES),
            show(hand.chunk.unwrap_or(CHUNK_BYTES)),
        );
    measured.into_iter().fold(list, |list, (name, meaning, given)| {
        list.add(name, meaning, "measured", or(given, own))
    })
}

fn network(config: &Config) -> GroupList {
    let network = &config.network;
    let first = "the library's choice";
    let or_first = |given: &Option<String>| given.clone().unwrap_or_else(|| first.to_owned());
    GroupList::new(KnobGroup::Network)
        .add(
            NETWORK,
            "the network between nodes: ofi (libfabric), verbs (libibverbs), off",
            "ofi",
            NETWORKS.word(network.kind),
        )
        .add(DEVICE, "the device, by its name in its library", first, or_first(&network.device))
        .add(
            PROVIDER,
            "libfabric's provider, such as tcp;ofi_rxm",
            first,
            or_first(&network.provider),
        )
        .add(
            INTERFACE,
            "libfabric: the local address or interface to use",
            first,
            or_first(&network.source),
        )
        .add(ENDPOINTS, "endpoints on the device, 1 to 16", 1, network.endpoints.unwrap_or(1))
        .add(
            NETWORK_SLEEP,
            "how a sleeping rank notices the network: called (is woken), looks (polls)",
            "called",
            NETWORK_SLEEPS.word(network.sleep),
        )
        .add(
            DYNAMIC,
            format!("libibverbs: few queue pairs for many peers (DCT): {}", DYNAMICS.list()),
            "off",
            DYNAMICS.word(network.dynamic),
        )
}

fn time_limits(config: &Config) -> GroupList {
    let boot_limit = boot::limit(&env).unwrap_or(boot::TIMEOUT_DEFAULT);
    GroupList::new(KnobGroup::Limits)
        .add(
            boot::TIMEOUT,
            "the time for which the ranks wait for each other at start",
            time(boot::TIMEOUT_DEFAULT),
            time(boot_limit),
        )
        .add(
            SILENCE,
            "the time for which a rank may be silent; after 1.5 times this it is given up",
            time(SILENCE_DEFAULT),
            time(config.network.silence_limit()),
        )
        .add(
            space::GRACE,
            "the time from a rank's death until the other ranks get SIGTERM",
            time(space::GRACE_DEFAULT),
            time(config.space.grace),
        )
}

fn debugging(config: &Config, size: u32) -> GroupList {
    let suspension = config.choose(size).suspension;
    let trace = config.inside.trace.as_ref();
    GroupList::new(KnobGroup::Debugging)
        .add(
            VERBOSE,
            format!("whether rank 0 prints how the ranks found each other: {}", SWITCH.list()),
            "off",
            SWITCH.word(config.verbose),
        )
        .add(
            REPORT,
            format!("the signal on which a rank reports all its ULTs: {}", REPORTS.list()),
            "none",
            config.inside.report.map_or("none", |signal| REPORTS.word(signal)),
        )
        .add(
            TRACE,
            "a folder for a trace of each rank's ULTs, for Perfetto",
            "none",
            trace.map_or_else(|| "none".to_owned(), |at| at.display().to_string()),
        )
        .add(
            SUSPENSION,
            format!("the action when a ULT suspends where it must not: {}", SUSPENSIONS.list()),
            "off, panic with debug assertions",
            SUSPENSIONS.word(suspension),
        )
        .add(
            MPI_HEAP,
            format!(
                "whether blocks that a program of MPI allocates lie in its partition: {}",
                SWITCH.list()
            ),
            "off",
            SWITCH.word(config.mpi_heap),
        )
        .add(
            MPI_CHECKS,
            format!(
                "whether programs of MPI are checked: collectives that differ, objects that are \
                 left: {}",
                SWITCH.list()
            ),
            "off",
            SWITCH.word(config.mpi_checks),
        )
        .add(
            FAULTS,
            "injects network faults, to test a program: the seed of the faults",
            "no faults",
            config.network.faults.map_or("no faults".to_owned(), |seed| seed.to_string()),
        )
}

fn launcher() -> GroupList {
    GroupList::new(KnobGroup::Launcher)
        .told(space::RANK, "the number of this rank")
        .told(space::SIZE, "the number of ranks of the job")
        .told(space::JOB, "the name of the job, which marks its processes")
        .told(boot::SERVER, "the addresses at which the launcher of several hosts listens")
        .told(space::FDS, "the descriptors of the memory files")
        .told(space::SHAPE, "the base address and the sizes of the partitions")
        .told(space::DEATHS, "the descriptor from which the rank reads deaths on other nodes")
        .told(space::LOSSES, "the descriptor to which the rank writes the ranks it declares lost")
}

/// The defaults of [`Thresholds::kernel_from`](tsumugi_pvas::distance::Thresholds),
/// which is not measured.
const KERNEL_FROM_DEFAULT: &str = "96KiB, 16KiB on a shared core";
