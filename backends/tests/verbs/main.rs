//! libibverbs between processes of this machine: the promises of every endpoint, and
//! those of this backend beyond them.
//!
//! `VERBS_DEVICES` names the devices, with commas between them: a rank uses the
//! one whose place is its number, and so on in turn. Without libibverbs, or
//! without a device, there is nothing to test, and these tests say so and pass;
//! `ci/verbs.sh` has a machine with devices.

mod executors;
#[path = "../net/job.rs"]
mod job;
mod own;
#[path = "../net/particulars.rs"]
mod particulars;

use job::{JOB, Job, PACKET_BYTES_MAX, PACKETS, Provider, Setting};
use std::process::ExitCode;
use std::time::Duration;
use tsumugi_backends::verbs::{OpenError, ProbeReport, VerbsConfig, VerbsDomain, VerbsWire};
use tsumugi_conformance::cases::{self, Case};
use tsumugi_conformance::endpoint;
use tsumugi_conformance::left_out;
use tsumugi_core::mem::Rank;

/// Any device.
#[derive(Debug)]
pub struct Verbs;

impl Provider for Verbs {
    const NAME: &str = "verbs";
    type Wire = VerbsWire;
    const SERVES_SLEEPERS: bool = true;
    // Seven times 67 ms are meant; a device may take four times as long.
    const NOTICES: Duration = Duration::from_secs(6);

    fn open(setting: &Setting, rank: Rank, size: u32) -> VerbsDomain {
        VerbsDomain::open(&config(setting, rank), rank, size).unwrap()
    }

    fn probed(domain: &VerbsDomain) -> &ProbeReport {
        domain.probed()
    }
}

fn config(setting: &Setting, rank: Rank) -> VerbsConfig {
    let devices = std::env::var("VERBS_DEVICES").unwrap_or_default();
    let devices: Vec<&str> = devices.split_terminator(',').collect();
    let device = devices.get(rank.0 as usize % devices.len().max(1));
    VerbsConfig {
        device: device.map(|&name| name.to_owned()),
        endpoints: setting.endpoints,
        in_flight_max: setting.in_flight_max,
        pairs_max: setting.pairs_max,
        packets: PACKETS,
        packet_bytes_max: PACKET_BYTES_MAX,
        piece_bytes_max: setting.piece_bytes_max,
        event: setting.event,
        job: JOB,
        ..VerbsConfig::default()
    }
}

macro_rules! suite {
    ([$($promise:ident),* $(,)?], [$($particular:ident),* $(,)?], [$($own:ident),* $(,)?]) => {
        const CASES: &[Case] = &[
            $((stringify!($promise), endpoint::$promise::<Job<Verbs>>),)*
            $((stringify!($particular), particulars::$particular::<Verbs>),)*
            $((stringify!($own), own::$own),)*
            ("every_executor_rings_seldom", executors::every_executor_rings_seldom),
        ];
    };
}

suite!(
    [
        every_post_completes_once,
        a_full_queue_takes_fewer,
        errors_are_completions,
        transfers_arrive,
        capabilities_are_kept,
    ],
    [
        words_of_every_width_arrive,
        an_accepted_operation_that_is_not_under_way_is_reported,
        long_transfers_go_in_pieces,
        a_completed_put_has_landed,
        stale_keys_are_named,
        wrong_accesses_are_named,
        packets_and_bells_arrive,
        several_endpoints_work_at_once,
        a_struck_rank_is_lost_at_once,
        a_killed_rank_is_lost,
        a_get_from_a_killed_rank_ends,
        bad_cards_lose_their_rank,
        a_sleeper_is_woken_by_its_completion,
    ],
    [
        the_probe_agrees_with_the_capabilities,
        device_atomics_are_exact_and_all_others_are_unsupported,
        adds_of_all_ranks_to_one_word_are_exact,
        a_batch_rings_once,
        a_notifying_put_is_one_request,
        neighbours_of_a_refused_request_are_served,
        few_pairs_reach_many_ranks,
        a_crowd_is_served_by_few_pairs,
        ranks_reach_themselves_and_each_other,
    ]
);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [role, rest @ ..] = &args[..]
        && role == job::PEER
    {
        job::peer::<Verbs>(rest);
        return ExitCode::SUCCESS;
    }
    match VerbsDomain::open(&config(&Setting::default(), Rank(0)), Rank(0), 1) {
        Err(error @ (OpenError::Load(_) | OpenError::NoDevice { .. })) => {
            left_out("the libibverbs suite", &error.to_string(), "ci/verbs.sh");
            ExitCode::SUCCESS
        }
        _ => cases::run(CASES, &args),
    }
}
