//! libfabric between processes of this machine: the promises of every endpoint, and those
//! of this backend beyond them.
//!
//! Without libfabric there is nothing to test, and these tests say so and
//! pass; `ci/ofi.sh` installs it.

#[path = "../net/job.rs"]
mod job;
#[path = "../net/particulars.rs"]
mod particulars;

use job::{JOB, Job, PACKET_BYTES_MAX, PACKETS, Provider, Setting};
use particulars::{PEER, at, run};
use std::process::ExitCode;
use tsumugi_backends::ofi::sys::Library;
use tsumugi_backends::ofi::{OfiConfig, OfiDomain, OfiWire, OpenError, ProbeReport, ProgressMode};
use tsumugi_conformance::cases::{self, Case};
use tsumugi_conformance::endpoint::{self, Fixture};
use tsumugi_conformance::left_out;
use tsumugi_core::backend::Domain;
use tsumugi_core::mem::{Access, Rank};
use tsumugi_core::op::{Kind, Op};

/// Over TCP.
#[derive(Debug)]
pub struct Tcp;

/// Over UDP, with libfabric's own reliability.
#[derive(Debug)]
pub struct Udp;

impl Provider for Tcp {
    const NAME: &str = "tcp;ofi_rxm";
    type Wire = OfiWire;

    fn open(setting: &Setting, rank: Rank, size: u32) -> OfiDomain {
        OfiDomain::open(&config(Self::NAME, rank, setting), rank, size).unwrap()
    }

    fn probed(domain: &OfiDomain) -> &ProbeReport {
        domain.probed()
    }
}

impl Provider for Udp {
    const NAME: &str = "udp;ofi_rxd";
    type Wire = OfiWire;
    const POLLS_COST: bool = true;

    fn open(setting: &Setting, rank: Rank, size: u32) -> OfiDomain {
        OfiDomain::open(&config(Self::NAME, rank, setting), rank, size).unwrap()
    }

    fn probed(domain: &OfiDomain) -> &ProbeReport {
        domain.probed()
    }
}

fn config(provider: &str, rank: Rank, setting: &Setting) -> OfiConfig {
    let address = job::node_of(rank).map(|(_, address)| address);
    OfiConfig {
        provider: Some(provider.to_owned()),
        source: Some(address.unwrap_or_else(|| "127.0.0.1".to_owned())),
        endpoints: setting.endpoints,
        in_flight_max: setting.in_flight_max,
        packets: PACKETS,
        packet_bytes_max: PACKET_BYTES_MAX,
        piece_bytes_max: setting.piece_bytes_max,
        event: setting.event,
        job: JOB,
        ..OfiConfig::default()
    }
}

fn every_atomic_computes_as_the_processor_does<P: Provider>() {
    let job: Job<P> = Job::new(2);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    let mut go = |op| run(&job, &mut endpoint, op);
    let big = u64::MAX - 2;
    let word = at(&region, 8);
    assert_eq!(go(Op::atomic(Kind::Swap, word, big)), Ok(0));
    assert_eq!(go(Op::atomic(Kind::FetchAdd, word, 5u64)), Ok(big));
    assert_eq!(go(Op::atomic(Kind::FetchOr, word, 0xf0u64)), Ok(2));
    assert_eq!(go(Op::atomic(Kind::FetchAnd, word, 0xf2u64)), Ok(0xf2));
    assert_eq!(go(Op::atomic(Kind::FetchXor, word, 0xffu64)), Ok(0xf2));
    assert_eq!(go(Op::compare_swap(word, 0x0du64, 7)), Ok(0x0d));
    assert_eq!(go(Op::compare_swap(word, 0x0du64, 8)), Ok(7));
    assert_eq!(job.word(&region, 8), 7);
    // Half a word: the other halves around it keep their values.
    let half = at(&region, 20);
    assert_eq!(go(Op::atomic(Kind::Swap, half, u32::MAX)), Ok(0));
    assert_eq!(go(Op::atomic(Kind::FetchAdd, half, 2u32)), Ok(u64::from(u32::MAX)));
    assert_eq!(go(Op::compare_swap(half, 1u32, 0x55)), Ok(1));
    assert_eq!(go(Op::atomic(Kind::FetchXor, half, 0x0fu32)), Ok(0x55));
    assert_eq!((job.word(&region, 16), job.word(&region, 24)), (0x5a << 32, 0));
}

fn the_probe_agrees_with_the_capabilities<P: Provider<Wire = OfiWire>>() {
    let domain = P::open(&Setting::default(), Rank(0), 1);
    println!("{:?}", domain.facts());
    domain.probed().rows.iter().for_each(|row| println!("  {row}"));
    assert_eq!(domain.facts().provider, P::NAME);
    let capabilities = domain.capabilities();
    assert!(capabilities.device_atomics && capabilities.remote_completion);
    // Neither provider copies whole words: its atomics are operations of their own.
    assert!(!domain.copies_words());
}

fn auto_progress_serves_a_target_that_sleeps<P: Provider>() {
    let config =
        OfiConfig { progress: ProgressMode::Auto, ..config(P::NAME, Rank(0), &Setting::default()) };
    match OfiDomain::open(&config, Rank(0), 1) {
        Ok(domain) => assert!(domain.probed().works("a sleeping target is served")),
        Err(OpenError::NoProvider { .. }) => println!("{} has no threads of its own", P::NAME),
        Err(error) => panic!("{error}"),
    }
}

/// The conformance suite and the particulars, for one provider.
macro_rules! suite {
    ($module:ident, $provider:ty, [$($promise:ident),* $(,)?], [$($particular:ident),* $(,)?],
        [$($own:ident),* $(,)?]) => {
        mod $module {
            use super::*;
            $(
                pub fn $promise() {
                    endpoint::$promise::<Job<$provider>>();
                }
            )*
            $(
                pub fn $particular() {
                    particulars::$particular::<$provider>();
                }
            )*
            $(
                pub fn $own() {
                    super::$own::<$provider>();
                }
            )*
            pub const CASES: &[Case] = &[
                $((concat!(stringify!($module), "::", stringify!($promise)), $promise),)*
                $((concat!(stringify!($module), "::", stringify!($particular)), $particular),)*
                $((concat!(stringify!($module), "::", stringify!($own)), $own),)*
            ];
        }
    };
}

macro_rules! suites {
    ($($module:ident: $provider:ty),* $(,)?) => {
        $(suite!(
            $module,
            $provider,
            [
                every_post_completes_once, a_full_queue_takes_fewer, errors_are_completions,
                transfers_arrive, capabilities_are_kept,
            ],
            [
                words_of_every_width_arrive,
                an_accepted_operation_that_is_not_under_way_is_reported,
                long_transfers_go_in_pieces, a_completed_put_has_landed, stale_keys_are_named,
                wrong_accesses_are_named, packets_and_bells_arrive, several_endpoints_work_at_once,
                a_struck_rank_is_lost_at_once, a_killed_rank_is_lost, a_get_from_a_killed_rank_ends, bad_cards_lose_their_rank,
                a_sleeper_is_woken_by_its_completion,
            ],
            [every_atomic_computes_as_the_processor_does, the_probe_agrees_with_the_capabilities, auto_progress_serves_a_target_that_sleeps]
        );)*
        fn all() -> Vec<Case> {
            [$($module::CASES),*].concat()
        }
    };
}

suites!(tcp: Tcp, udp: Udp);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [role, rest @ ..] = &args[..]
        && role == job::PEER
    {
        match rest[0].as_str() {
            Tcp::NAME => job::peer::<Tcp>(rest),
            _ => job::peer::<Udp>(rest),
        }
        return ExitCode::SUCCESS;
    }
    if let Err(error) = Library::load() {
        left_out("the libfabric suite", &error.to_string(), "ci/ofi.sh");
        return ExitCode::SUCCESS;
    }
    cases::run(&all(), &args)
}
