//! A list of the environment variables, with their meanings and values.

use crate::config::{
    ALONE_FROM, ASK_FROM, BIND, BOTH_FROM, CALIBRATE, CHUNK, Config, DESIGNS, DEVICE, DIRECT_FROM,
    DIRECT_MAX, DYNAMIC, EAGER_MAX, ENDPOINTS, FAULTS, HALVES_FROM, INLINE_MAX, INTERFACE,
    KERNEL_FROM, MAIN_STACK, MAIN_STACK_BYTES, MESSAGES, NETWORK, NETWORK_SLEEP, NETWORK_SLEEPS,
    NETWORKS, PATH, PIECES_MAX, PROVIDER, PULL_FROM, SILENCE, SILENCE_MS, SPIN, SPIN_ROUNDS,
    STACK_BYTES, STREAM_FROM, SUSPENSION, SUSPENSIONS, ULT_STACK, VERBOSE, WORKERS,
};
use crate::inside::{REPORT, REPORTS, TRACE};
use tsumugi_backends::boot::env as boot;
use tsumugi_pvas::config as space;
use tsumugi_pvas::config::{HugePages, Peers, Populate};
use tsumugi_pvas::distance::CHUNK_BYTES;
use tsumugi_pvas::partition::{Shape, ShapeError};
use tsumugi_pvas::space::limits;

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
        let shape = Shape::fit(size, &self.space, limits())?;
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
            let first = "its library's choice";
            set(name, meaning, first.into(), given.clone().unwrap_or_else(|| first.into()))
        };
        let hand = chosen.thresholds;
        let threshold = |name, meaning, given: Option<u64>| {
            let given = given.map(|given| bytes(given as usize));
            set(name, meaning, "measured".into(), given.unwrap_or_else(|| "measured".into()))
        };
        Ok(vec![
            set(
                WORKERS,
                "worker threads of a rank",
                "its share of the cores".into(),
                chosen.workers.to_string(),
            ),
            set(ULT_STACK, "stack of a ULT", bytes(STACK_BYTES), bytes(chosen.stack_bytes)),
            set(
                MAIN_STACK,
                "stack of the main ULT",
                bytes(MAIN_STACK_BYTES),
                bytes(chosen.main_stack_bytes),
            ),
            set(
                BIND,
                "where the workers of a launcher's ranks run: cores, none",
                "cores, none if cores are shared unevenly".into(),
                format!("{:?}", chosen.bind).to_lowercase(),
            ),
            set(
                PATH,
                "how operations go: direct, delegate, offload",
                "direct".into(),
                format!("{:?}", chosen.path).to_lowercase(),
            ),
            set(
                SPIN_ROUNDS,
                "rounds an idle worker searches before it sleeps",
                format!("{SPIN}, 0 if cores are shared"),
                chosen.spin.to_string(),
            ),
            set(
                NETWORK,
                "what connects nodes: ofi, verbs, off",
                "ofi".into(),
                NETWORKS.iter().find(|(_, kind)| *kind == self.network.kind).map_or_else(
                    || format!("{:?}", self.network.kind),
                    |(word, _)| (*word).to_owned(),
                ),
            ),
            set(
                NETWORK_SLEEP,
                "how a rank that sleeps hears of it: called, looks",
                "called".into(),
                NETWORK_SLEEPS.iter().find(|(_, sleep)| *sleep == self.network.sleep).map_or_else(
                    || format!("{:?}", self.network.sleep),
                    |(word, _)| (*word).to_owned(),
                ),
            ),
            named(PROVIDER, "libfabric's provider", &self.network.provider),
            named(INTERFACE, "libfabric: the own address or interface", &self.network.source),
            named(DEVICE, "the device, as its library names it", &self.network.device),
            set(
                ENDPOINTS,
                "queues to the device, 1 to 16",
                "1".into(),
                self.network.endpoints.unwrap_or(1).to_string(),
            ),
            set(
                SILENCE,
                "ms a rank may be held off before other nodes give it up",
                SILENCE_MS.to_string(),
                self.network.silence().as_millis().to_string(),
            ),
            set(
                DYNAMIC,
                "libibverbs: many peers by few pairs that change hands: off, tried",
                "off".into(),
                if self.network.dynamic { "tried" } else { "off" }.into(),
            ),
            set(
                FAULTS,
                "makes the network bad on purpose: the seed of what goes wrong",
                "no faults".into(),
                self.network.faults.map_or("no faults".into(), |seed| seed.to_string()),
            ),
            set(
                MESSAGES,
                "how messages find receives: mirror, locked, two_copy",
                "mirror".into(),
                DESIGNS.iter().find(|(_, design)| *design == chosen.messages).map_or_else(
                    || format!("{:?}", chosen.messages),
                    |(word, _)| (*word).to_owned(),
                ),
            ),
            set(
                CALIBRATE,
                "whether a job measures how messages go: on, off",
                "on, off if cores are shared".into(),
                if chosen.calibrate { "on" } else { "off" }.into(),
            ),
            threshold(INLINE_MAX, "a message of so many goes in its packet", hand.inline_max),
            threshold(EAGER_MAX, "a message nobody waits for, through slots", hand.eager_max),
            threshold(DIRECT_FROM, "from here straight into a receive", hand.direct_from),
            threshold(ALONE_FROM, "from here told of in a packet of its own", hand.alone_from),
            threshold(DIRECT_MAX, "up to here by plain stores", hand.direct_max),
            threshold(HALVES_FROM, "from here, up to 8 KiB, told in two halves", hand.halves_from),
            threshold(PULL_FROM, "from here the receiver pulls", hand.pull_from),
            threshold(STREAM_FROM, "from here by streaming stores", hand.nt_from),
            threshold(BOTH_FROM, "from here both sides copy", hand.both_from),
            threshold(PIECES_MAX, "up to here copied in short pieces", hand.pieces_max),
            threshold(KERNEL_FROM, "from here by the kernel, outside", hand.kernel_from),
            threshold(ASK_FROM, "from here a late receiver asks for a push", hand.ask_from),
            set(
                CHUNK,
                "pushed before the receiver is told",
                bytes(CHUNK_BYTES as usize),
                bytes(hand.chunk.unwrap_or(CHUNK_BYTES) as usize),
            ),
            set(
                space::BASE,
                "where rank 0's partition starts",
                format!("{:#x}", space::BASE_DEFAULT),
                format!("{:#x}", shape.base),
            ),
            set(
                space::STARTER,
                "memory that peers reach from the start",
                bytes(space::STARTER_BYTES),
                bytes(shape.starter_bytes),
            ),
            set(
                space::EXPOSED,
                "arrays of a rank that peers reach",
                bytes(space::EXPOSED_BYTES),
                bytes(shape.exposed_bytes),
            ),
            set(space::HEAP, "heap of a rank", bytes(space::HEAP_BYTES), bytes(shape.heap_bytes)),
            set(
                space::STACKS,
                "stacks of a rank",
                bytes(space::STACK_BYTES),
                bytes(shape.stack_bytes),
            ),
            set(
                space::POPULATE,
                "when pages come: none, own, peers",
                policy(Populate::default().word()),
                policy(self.space.policy.populate.word()),
            ),
            set(
                space::HUGE_PAGES,
                "pages of 2 MiB: none, advise, reserved",
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
                "ms from a rank's death until the others are asked to end",
                space::GRACE_MS.to_string(),
                self.space.grace_ms.to_string(),
            ),
            set(
                space::NODE,
                "which node this is, where sockets cannot tell",
                "boot and network namespace".into(),
                env(space::NODE).unwrap_or_else(|| "boot and network namespace".into()),
            ),
            set(
                VERBOSE,
                "whether rank 0 says how the ranks found each other: 0, 1",
                "0".into(),
                u8::from(self.verbose).to_string(),
            ),
            set(
                SUSPENSION,
                "a ULT that suspends where it must not: off, report, panic, abort",
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
                "a folder: what ran when, by rank, for Perfetto",
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
                "how many seconds they wait for each other at start",
                boot::SECONDS_DEFAULT.to_string(),
                env(boot::SECONDS).unwrap_or_else(|| boot::SECONDS_DEFAULT.to_string()),
            ),
            set(
                boot::MASTER,
                "where rank 0 listens, if ranks meet over TCP: host:port",
                "what the launcher says".into(),
                env(boot::MASTER).unwrap_or_else(|| "what the launcher says".into()),
            ),
            set(
                boot::SECRET,
                "the word that ranks which meet over TCP share",
                "none".into(),
                env(boot::SECRET).map_or("none", |_| "set").into(),
            ),
            set(
                boot::PMIX_LIBRARY,
                "the library that PMIx is loaded from",
                "libpmix.so.2, the launcher's first".into(),
                env(boot::PMIX_LIBRARY)
                    .unwrap_or_else(|| "libpmix.so.2, the launcher's first".into()),
            ),
            set(
                boot::RSH,
                "what starts a command on another host, for run --hosts",
                boot::RSH_DEFAULT.into(),
                env(boot::RSH).unwrap_or_else(|| boot::RSH_DEFAULT.into()),
            ),
            told(boot::SERVER, "where the launcher of several hosts listens"),
            told(space::RANK, "this rank's number"),
            told(space::SIZE, "ranks of the job"),
            told(space::FDS, "descriptors of the memory files"),
            told(space::SHAPE, "where the partitions lie"),
            told(space::DEATHS, "the descriptor that says who of another node has died"),
            told(space::LOSSES, "the descriptor that is told who is declared lost"),
            told(space::JOB, "the mark of the job's processes"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// The names of all variables in a source file.
    fn names_in(path: &str) -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let text = fs::read_to_string(&path).unwrap();
        let is_of_name = |c: char| c.is_ascii_uppercase() || c == '_';
        let names = text.match_indices("TSUMUGI_").map(|(at, _)| {
            let rest = &text[at..];
            rest[..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())].to_owned()
        });
        names.collect()
    }

    #[test]
    fn every_variable_is_listed() {
        let knobs = Config::default().knobs(2).unwrap();
        for path in ["src/config.rs", "pvas/src/config.rs", "backends/src/boot/env.rs"] {
            let names = names_in(path);
            assert!(names.len() > 4, "{path}: {names:?}");
            for name in names {
                assert!(knobs.iter().any(|knob| knob.name == name), "{path}: {name}");
            }
        }
    }

    #[test]
    fn chosen_values_follow_the_configuration() {
        let config = Config { workers: Some(3), spin: Some(7), ..Config::default() };
        let knobs = config.knobs(1).unwrap();
        let chosen = |name| {
            let knob = knobs.iter().find(|knob| knob.name == name).unwrap();
            knob.chosen.clone()
        };
        assert_eq!((chosen(WORKERS), chosen(SPIN_ROUNDS)), (Some("3".into()), Some("7".into())));
        assert!(Config::default().knobs(0).is_err());
    }
}
