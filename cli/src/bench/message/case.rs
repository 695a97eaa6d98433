//! The cases that teams of two ranks measure, and our own teams.

use super::team::System;
use crate::failure::Failure;
use tsumugi::affinity;

/// One command, and the row that results from it.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: &'static str,
    pub params: String,
    pub command: String,
    /// Whether the ranks are on two cores.
    pub crosses: bool,
    /// The greatest number of passes over all teams.
    pub passes: u32,
}

impl Case {
    pub fn new(name: &'static str, params: String, command: String, crosses: bool) -> Self {
        Self { name, params, command, crosses, passes: u32::MAX }
    }
}

/// Latency and rate between two cores.
pub fn two_cores(is_quick: bool, rounds: Option<u64>) -> Vec<Case> {
    let [first, second] = cpus();
    if first == second {
        return Vec::new();
    }
    let place = format!("cpu0={first} cpu1={second}");
    let mut cases = latencies(["latency_pre", "latency"], (&place, true), is_quick, rounds);
    let params = format!("bytes=8 window={WINDOW}");
    let rounds = rounds.unwrap_or(200);
    let command = format!("rate bytes=8 rounds={rounds} repeat=5 {place}");
    cases.push(Case::new("rate8", params, command, true));
    cases
}

/// Latency on one core.
pub fn same_core(is_quick: bool, rounds: Option<u64>) -> Vec<Case> {
    let [first, _] = cpus();
    let place = format!("cpu0={first} cpu1={first}");
    latencies(["same_core_pre", "same_core"], (&place, false), is_quick, rounds)
}

fn latencies(
    names: [&'static str; 2],
    (place, crosses): (&str, bool),
    is_quick: bool,
    rounds: Option<u64>,
) -> Vec<Case> {
    let sizes = if is_quick { QUICK_SIZES } else { SIZES };
    let case = |bytes: usize, pre: bool| {
        let rounds = rounds.unwrap_or((ROUNDS_BYTES / bytes).clamp(4, 128) as u64);
        let pre_word = u8::from(pre);
        let command =
            format!("latency bytes={bytes} pre={pre_word} rounds={rounds} repeat=5 {place}");
        let name = names[usize::from(!pre)];
        Case::new(name, format!("bytes={bytes}"), command, crosses)
    };
    [true, false]
        .into_iter()
        .flat_map(|pre| sizes.iter().map(move |bytes| case(*bytes, pre)))
        .collect()
}

/// Latency between buffers that a peer cannot map and that the kernel copies, beside
/// messages through slots.
pub fn outside(is_quick: bool, rounds: Option<u64>) -> Vec<Case> {
    let [first, second] = cpus();
    let place = format!("cpu0={first} cpu1={second} outside=1");
    let cases = latencies(["outside_pre", "outside"], (&place, true), is_quick, rounds);
    let is_it = |case: &Case| case.name == "outside" && first != second;
    cases.into_iter().filter(is_it).collect()
}

impl System {
    /// The same system without copies by the kernel.
    pub fn by_slots(&self) -> Self {
        let mut system = Self { name: "slots".to_owned(), ..self.clone() };
        system.env.push(("TSUMUGI_KERNEL_FROM_BYTES".to_owned(), u32::MAX.to_string()));
        system
    }

    /// The same system with so many workers in each rank, if it is one of ours.
    pub fn with_workers(mut self, workers: u32) -> Self {
        let option = self.words.iter().position(|word| word == WORKERS);
        if let Some(number) = option.and_then(|option| self.words.get_mut(option + 1)) {
            *number = workers.to_string();
        }
        self
    }
}

/// Puts and gets between two cores, and copies between two other ranks. Long
/// transfers are repeated less often: the peers take seconds for a batch of 256 MiB.
pub fn one_sided(is_quick: bool, rounds: Option<u64>) -> [Vec<Case>; 2] {
    let [first, second] = cpus();
    let sizes = if is_quick { QUICK_ONE_SIDED } else { ONE_SIDED };
    let cases = |names: &[&'static str]| {
        let case = |name: &'static str, bytes: usize| {
            let rounds = rounds.unwrap_or((ROUNDS_BYTES / bytes).clamp(1, 128) as u64);
            let repeat = (REPEAT_BYTES / bytes).clamp(1, 5);
            let place = format!("cpu0={first} cpu1={second}");
            let command = format!("{name} bytes={bytes} rounds={rounds} repeat={repeat} {place}");
            let passes = (PASSES_BYTES / bytes).clamp(3, 12) as u32;
            Case { passes, ..Case::new(name, format!("bytes={bytes}"), command, true) }
        };
        let cases = names.iter().flat_map(|name| sizes.iter().map(|bytes| case(name, *bytes)));
        if first == second { Vec::new() } else { cases.collect() }
    };
    [cases(&["put", "get"]), cases(&["third"])]
}

/// The first two CPUs; the same CPU twice if there is only one.
pub fn cpus() -> [usize; 2] {
    let allowed = affinity::allowed().unwrap_or_default();
    let first = allowed.first().copied().unwrap_or(0);
    [first, allowed.get(1).copied().unwrap_or(first)]
}

/// The designs of our messages, the default first.
pub fn designs() -> Result<Vec<System>, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure::Failed(format!("the path of this command is unknown: {error}"))
    })?;
    let own = own.display().to_string();
    let run = [&own, "run", "-n", "N", WORKERS, "1"];
    let serve = ["--", &own, "bench", "message", "--serve", "FOLDER"];
    let words: Vec<String> = run.iter().chain(&serve).map(|word| (*word).to_owned()).collect();
    let system = |(name, env): &(&str, &[(&str, &str)])| System {
        name: (*name).to_owned(),
        words: words.clone(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    Ok(DESIGNS.iter().map(system).collect())
}

/// The paper's design with the paper's rule, for ranks on one core or on two.
pub fn by_the_paper(shares_core: bool) -> Result<System, Failure> {
    let locked = designs()?.into_iter().find(|system| system.name == LOCKED);
    let mut system = locked.expect("one of the designs");
    PAPER_RULE.clone_into(&mut system.name);
    let rule = if shares_core { RULE_OF_ONE_CORE } else { RULE_OF_TWO_CORES };
    system.env.extend(rule.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Ok(system)
}

/// The system to which the bars apply.
pub const OURS: &str = "tsumugi";
/// The design that always makes two copies.
pub const TWO_COPY: &str = "two_copy";
/// The paper's design: the sender searches the receiver's queue under a lock.
pub const LOCKED: &str = "locked";
/// The design in which no message is sent before the receiver requests it.
pub const RENDEZVOUS: &str = "rendezvous";

/// The same with the paper's rule in the place of a measured size: on one core all messages with a
/// known receive are copied once, between cores those of more than 256 bytes.
pub const PAPER_RULE: &str = "paper_rule";

const RULE_OF_ONE_CORE: &[(&str, &str)] =
    &[("TSUMUGI_INLINE_MAX_BYTES", "0"), ("TSUMUGI_DIRECT_FROM_BYTES", "1")];
const RULE_OF_TWO_CORES: &[(&str, &str)] = &[("TSUMUGI_DIRECT_FROM_BYTES", "257")];

const DESIGNS: &[(&str, &[(&str, &str)])] = &[
    (OURS, &[]),
    (LOCKED, &[("TSUMUGI_MESSAGES", "locked")]),
    (TWO_COPY, &[("TSUMUGI_MESSAGES", "two_copy")]),
    (RENDEZVOUS, &[("TSUMUGI_MESSAGES", "two_copy"), ("TSUMUGI_EAGER_MAX_BYTES", "0")]),
];

/// The launcher's option of the number of workers.
const WORKERS: &str = "--workers";

/// Settings that make peers yield if there are more ranks than cores: all our
/// designs do, and a peer that does not takes milliseconds for a message.
pub const YIELDING: &[(&str, &str)] =
    &[("OMPI_MCA_mpi_yield_when_idle", "1"), ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1")];

/// The number of messages in flight, as in the program of the peers.
pub const WINDOW: usize = 64;
/// The largest payload.
pub const BYTES_MAX: usize = 4 << 20;
const SIZES: &[usize] = &[
    8,
    32,
    64,
    96,
    128,
    256,
    512,
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    BYTES_MAX,
];
const QUICK_SIZES: &[usize] = &[8, 128, 1 << 10, 4 << 10, 8 << 10, 32 << 10, 128 << 10, 2 << 20];
/// 1 B to 256 MiB, as in the paper's figures 4 and 5.
const ONE_SIDED: &[usize] = &[
    1,
    4,
    16,
    64,
    256,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
    64 << 20,
    256 << 20,
];
const QUICK_ONE_SIDED: &[usize] = &[1, 64, 1 << 10, 8 << 10, 64 << 10, 1 << 20];
/// The approximate number of bytes of one batch.
const ROUNDS_BYTES: usize = 256 << 10;
/// The approximate number of bytes of the batches of one command.
const REPEAT_BYTES: usize = 16 << 20;
/// The approximate number of bytes of a whole case, with one batch for each command.
const PASSES_BYTES: usize = 128 << 20;
