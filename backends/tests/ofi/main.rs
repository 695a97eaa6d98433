//! libfabric between processes of this machine: what every endpoint promises,
//! and what this one promises beyond that.
//!
//! Without libfabric there is nothing to test, and these tests say so and
//! pass; `ci/ofi.sh` installs it.

mod job;
mod particulars;

use job::{Job, Provider};
use std::process::ExitCode;
use tsumugi_backends::ofi::sys::Library;
use tsumugi_conformance::cases::{self, Case};
use tsumugi_conformance::endpoint;

/// Over TCP.
#[derive(Debug)]
pub struct Tcp;

/// Over UDP, with libfabric's own reliability.
#[derive(Debug)]
pub struct Udp;

impl Provider for Tcp {
    const NAME: &str = "tcp;ofi_rxm";
}

impl Provider for Udp {
    const NAME: &str = "udp;ofi_rxd";
    const POLLS_COST: bool = true;
}

/// The conformance suite and the particulars, for one provider.
macro_rules! suite {
    ($module:ident, $provider:ty, [$($promise:ident),* $(,)?], [$($particular:ident),* $(,)?]) => {
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
            pub const CASES: &[Case] = &[
                $((concat!(stringify!($module), "::", stringify!($promise)), $promise),)*
                $((concat!(stringify!($module), "::", stringify!($particular)), $particular),)*
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
                every_atomic_does_what_the_processor_would, words_of_every_width_arrive,
                long_transfers_go_in_pieces, a_completed_put_has_landed, stale_keys_are_named,
                wrong_accesses_are_named, packets_and_bells_arrive, several_endpoints_work_at_once,
                a_struck_rank_is_lost_at_once, a_killed_rank_is_lost, a_get_from_a_killed_rank_ends, bad_cards_lose_their_rank,
                the_probe_agrees_with_what_is_promised, auto_progress_serves_who_sleeps,
                a_sleeper_is_woken_by_its_completion,
            ]
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
        job::peer(rest);
        return ExitCode::SUCCESS;
    }
    if let Err(error) = Library::load() {
        println!("skipped: {error} (ci/ofi.sh installs it)");
        return ExitCode::SUCCESS;
    }
    cases::run(&all(), &args)
}
