//! All parts of a job on several nodes, on one thread: every operation over a
//! network with faults drawn from the seed. The worker looks at the clock, so a seed draws
//! the same faults in every run, but does not repeat the run.
//!
//! ```text
//!  one worker ─┬─ ULT of rank 0 ─ net, am, messages ─┐
//!              ├─ ULT of rank 1 ─ ...                ├─ bad ─ hub
//!              └─ polls all of them between ULTs ────┘
//! ```

use crate as api;
use crate::array::{ArrayOptions, Directory};
use crate::{Config, Error, MemoryOptions, Rank, Runtime};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_pvas::{Member, Nodes};
use tsumugi_runtime::node::RankNode;
use tsumugi_runtime::testing::{
    Cards, FaultClock, Faults, NetDevice, Network, handle_of, make_node,
};
use tsumugi_test_networks::hub::{self, Hub};
use tsumugi_ult::{Progress, Scheduler, StackArea};

mod awaited;
#[path = "../../tests/collectives/mod.rs"]
mod collectives;
#[path = "../../tests/job/global.rs"]
mod global;
mod cut_off;
mod deferred;
mod given_up;
mod held;
mod ids;
#[path = "../../tests/moving/histories.rs"]
mod histories;
#[allow(clippy::duplicate_mod)]
#[path = "../../tests/job/mixture.rs"]
mod mixture;
#[allow(dead_code)]
#[path = "../../tests/job/reach.rs"]
mod reach;
#[path = "../../tests/stealing/mod.rs"]
mod stealing;

/// The output of the programs of jobs.
mod roles {
    pub(super) fn say(line: &str) {
        println!("{line}");
    }
}

/// All ranks, which are polled in turn.
struct All(Vec<Arc<RankNode>>);

impl Progress for All {
    fn poll(&self) -> bool {
        self.0.iter().fold(false, |any, node| node.poll() | any)
    }

    /// Always true: no doorbell is rung, so the worker must poll all the time.
    fn has_work(&self) -> bool {
        true
    }
}

/// Cards that arrive after some looks, as from a slow launcher.
#[derive(Debug)]
struct Slow {
    cards: Vec<Vec<u8>>,
    looks: Mutex<BTreeMap<Rank, u32>>,
}

impl Cards for Slow {
    fn look(
        &self,
        rank: Rank,
        into: &mut [u8; CARD_BYTES_MAX],
    ) -> Result<Option<usize>, BootError> {
        let mut looks = self.looks.lock().unwrap();
        let looks = looks.entry(rank).or_default();
        *looks += 1;
        if *looks < 2 + rank.0 * 5 {
            return Ok(None);
        }
        let card = &self.cards[rank.0 as usize];
        into[..card.len()].copy_from_slice(card);
        Ok(Some(card.len()))
    }

    fn why(&self, _: Rank) -> Option<BootError> {
        None
    }

    fn host_of(&self, node: u32) -> Option<String> {
        Some(format!("host {node}"))
    }

    fn fetched(&self) -> u64 {
        self.looks.lock().unwrap().len() as u64
    }
}

/// The faults of the network, which all ranks change together.
struct Weather {
    hub: Hub,
    nodes: Vec<Arc<RankNode>>,
}

impl Weather {
    fn change(&self, rt: &Runtime, seed: u64) -> Result<(), Error> {
        self.change_to(rt, seed, hub::FaultPlan::drawn(seed))
    }

    /// Does the same, but on the hub one operation or packet of ten is late, by up to
    /// hundreds of polls: what does not wait for a put overtakes it soon.
    fn stall(&self, rt: &Runtime, seed: u64) -> Result<(), Error> {
        let plan =
            hub::FaultPlan { seed, late: 100, late_polls_max: 500, ..hub::FaultPlan::default() };
        self.change_to(rt, seed, plan)
    }

    fn change_to(&self, rt: &Runtime, seed: u64, plan: hub::FaultPlan) -> Result<(), Error> {
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            println!("faults of seed {seed}");
            self.hub.replan(plan);
            for net in self.nodes.iter().filter_map(|node| node.net()) {
                net.reseed(seed);
            }
        }
        rt.barrier()
    }
}

/// Runs `main` on ranks of the nodes with these numbers, over a network with faults
/// drawn from the seed; `None`: without faults.
fn run(
    nodes: &[u64],
    seed: Option<u64>,
    main: impl Fn(&Runtime, &Weather) -> Result<(), Error> + Send + Sync + 'static,
) {
    run_each(nodes, seed, move |rt, weather| {
        main(rt, weather)?;
        weather.nodes[rt.rank().0 as usize].settle();
        rt.barrier()
    });
}

/// Does the same for ranks that do not end together.
fn run_each(
    nodes: &[u64],
    seed: Option<u64>,
    main: impl Fn(&Runtime, &Weather) -> Result<(), Error> + Send + Sync + 'static,
) {
    run_as(Config::default().workers(1), nodes, seed, main);
}

/// Does the same with this configuration.
fn run_as(
    config: Config,
    nodes: &[u64],
    seed: Option<u64>,
    main: impl Fn(&Runtime, &Weather) -> Result<(), Error> + Send + Sync + 'static,
) {
    println!("nodes {nodes:?}, faults of seed {seed:?}");
    let (hub, nodes) = make_all(&config, nodes, seed);
    let weather = Arc::new(Weather { hub, nodes: nodes.clone() });
    let config = config.choose(nodes.len() as u32);
    let stacks = StackArea::map(256 << 20).expect("address space");
    let config = tsumugi_ult::Config::new(stacks)
        .workers(1)
        .stack_bytes(config.stack_bytes.max(128 << 10))
        .main_stack_bytes(config.main_stack_bytes)
        .progress(Arc::new(All(nodes.clone())))
        .inline_bytes(usize::MAX)
        .spin(u32::MAX);
    let scheduler = Scheduler::new(config).expect("one worker");
    let (main, spawner) = (Arc::new(main), scheduler.spawner());
    scheduler.run(|| {
        let ranks: Vec<_> = nodes
            .iter()
            .map(|node| {
                let (node, main, weather) = (node.clone(), main.clone(), weather.clone());
                let runtime = Runtime::new(handle_of(node.clone(), spawner.clone()));
                spawner.spawn(move || main(&runtime, &weather))
            })
            .collect();
        for (rank, ended) in (0..).map(Rank).zip(ranks) {
            match ended.join() {
                Ok(result) => {
                    result.unwrap_or_else(|error| panic!("seed {seed:?}, {rank}: {error}"))
                }
                Err(_) => panic!("seed {seed:?}, {rank} panicked"),
            }
        }
    });
}

/// Makes the parts of all ranks: the ranks of a node wait for each other.
fn make_all(config: &Config, nodes: &[u64], seed: Option<u64>) -> (Hub, Vec<Arc<RankNode>>) {
    let size = nodes.len() as u32;
    let chosen = config.choose(size);
    let hub = Hub::new(seed.map_or(hub::FaultPlan::default(), hub::FaultPlan::drawn));
    let round = seed.unwrap_or(0) / ROUNDS;
    let of = hub::HubConfig {
        endpoints: 1 + usize::from(round % 3 == 2),
        // Every fourth network has packets only.
        moves_memory: round % 4 != 3,
        ..hub::HubConfig::default()
    };
    let devices: Vec<NetDevice> =
        (0..size).map(|rank| NetDevice::on_hub(&hub, of, Rank(rank), size)).collect();
    let cards: Vec<Vec<u8>> = devices.iter().map(|device| device.card().to_vec()).collect();
    let shape = Arc::new(Nodes::new(nodes.iter().copied()));
    let mut members = Vec::new();
    for node in 0..shape.count() {
        let ranks: Vec<Rank> = shape.ranks_of(node).collect();
        let of_node = Member::threads(ranks.len() as u32, &config.space).expect("a space");
        let named = of_node.into_iter().zip(ranks);
        members.extend(named.map(|(member, rank)| member.among(shape.clone(), rank)));
    }
    members.sort_by_key(|member| member.rank().0);
    let make_one = |(member, device): (Member, NetDevice)| {
        let faults = seed.map(|seed| Faults::drawn(seed, FaultClock::Polls));
        let cards = Slow { cards: cards.clone(), looks: Mutex::default() };
        let network = Network::join(device, 7, Arc::new(cards), faults);
        make_node(member, &chosen, network).expect("a rank")
    };
    let nodes = thread::scope(|scope| {
        let make_one = &make_one;
        let ranks: Vec<_> = members
            .into_iter()
            .zip(devices)
            .map(|parts| scope.spawn(move || make_one(parts)))
            .collect();
        ranks.into_iter().map(|rank| rank.join().expect("a rank")).collect()
    });
    (hub, nodes)
}

#[test]
fn everything_works_over_a_sound_network() {
    run(&[1, 1, 2, 2], None, |rt, _| reach::play(rt, reach::Extent::SHORT));
}

/// Over a device that is the agent of words, also for ranks of its own node.
#[test]
fn global_memory_has_one_agent_for_each_region() {
    for nodes in [&[1, 2][..], &[1, 1, 1, 2], &[1, 2, 1, 2]] {
        run(nodes, None, |rt, _| {
            let operations = || rt.network_counts().map_or(0, |counts| counts.operations);
            let global = rt.global()?;
            let words = MemoryOptions::new()
                .agent(crate::Agent::Device)
                .expose_global::<u64>(&global, 1)?;
            assert_eq!(words.agent(), crate::Agent::Device);
            // Not even this rank's own processors carry out these operations.
            let before = operations();
            assert_eq!(global.fetch_add(words.at(0), 5)?, 0);
            assert_eq!(global.get(words.at(0))?, 5);
            assert_eq!(operations() - before, 2);
            rt.barrier()?;
            global::play(rt)
        });
    }
}

/// The same over networks with many faults.
#[test]
fn global_memory_has_one_agent_over_bad_networks() {
    for seed in [1, 2, 5] {
        run(&[1, 1, 2], Some(seed), |rt, _| global::play(rt));
    }
}

/// No rank's processors access a word of the device's directory, neither at the home
/// nor at its neighbours.
#[test]
fn a_directory_has_one_agent_for_each_word() {
    for nodes in [&[1, 2][..], &[1, 1, 2]] {
        run(nodes, None, |rt, _| {
            let counts = || rt.network_counts().expect("of two nodes");
            let (page_len, directory) = (1, Directory::Device);
            let options = ArrayOptions::new().page_len(page_len).known(1).directory(directory);
            let array = options.create::<u64>(rt, PAGES)?;
            assert_eq!(array.agent(), crate::Agent::Device);
            for index in 0..PAGES {
                let before = counts();
                assert_eq!(array.owner(index)?, array.home(index)?);
                assert_eq!(counts().operations - before.operations, 1, "page {index}");
            }
            // All pages come to the first rank, and no home has served a request for
            // them.
            rt.barrier()?;
            let before = counts().served;
            if rt.rank() == Rank(0) {
                for index in 0..PAGES {
                    array.owner(index)?;
                }
            }
            rt.barrier()?;
            let asked = rt.sum(counts().served - before)?;
            assert!(asked < PAGES as u64, "{asked} operations were emulated and served");
            rt.barrier()
        });
    }
}

#[test]
fn histories_with_the_directory_of_a_device_are_linearizable() {
    let play = |rt: &Runtime, seed| {
        let plan = histories::Plan { seed, ults: 2, steps: 15, directory: Directory::Device };
        histories::play(rt, plan).map(drop)
    };
    run(&[1, 1, 2], None, move |rt, _| (0..10).try_for_each(|seed| play(rt, seed)));
    for seed in [1, 2, 5] {
        run(&[1, 1, 2], Some(seed), move |rt, _| play(rt, seed));
    }
}

/// Groups with several ranks on each node take stages; others do not.
#[test]
fn collectives_give_the_results_of_serial_ones() {
    for nodes in [&[1, 2][..], &[1, 1, 2, 2], &[1, 2, 1, 3, 1, 2]] {
        run(nodes, None, |rt, _| collectives::play(rt, &[1, 0, 700]));
    }
}

/// The same over networks with many faults.
#[test]
fn collectives_work_over_bad_networks() {
    for seed in [1, 2, 5] {
        run(&[1, 1, 2, 3], Some(seed), |rt, _| collectives::play(rt, &[1, 3000]));
    }
}

/// Thieves of other nodes, over a sound network and over ones with many faults.
#[test]
fn work_is_stolen_once_over_bad_networks() {
    for seed in [None, Some(1), Some(4)] {
        run(&[1, 1, 2], seed, |rt, _| stealing::play(rt, 200));
    }
}

#[test]
fn a_heartbeat_without_room_is_sent_by_the_thread_that_polls() {
    run(&[1, 2], None, |rt, weather| {
        let net = weather.nodes[rt.rank().0 as usize].net().expect("of two nodes");
        net.miss_heartbeat();
        assert!(net.owes_heartbeat());
        rt.barrier()?;
        assert!(!net.owes_heartbeat());
        Ok(())
    });
}

#[test]
fn a_long_message_is_fetched_from_a_buffer_and_sent_in_pieces_from_other_memory() {
    // Without faults, with many faults, and with packets only.
    for (seed, fetches) in [(None, true), (Some(5), true), (Some(3 * ROUNDS), false)] {
        run(&[1, 2], seed, move |rt, weather| {
            let (comm, net) = (rt.comm(), weather.nodes[1].net().expect("of two nodes"));
            for (step, bytes) in (1..).zip([40_000, 200_000, 1 << 20]) {
                let mut buffer = rt.buffer::<u8>(bytes)?;
                let mut vector = vec![0; bytes];
                if rt.rank() == Rank(0) {
                    buffer.iter_mut().zip(0..).for_each(|(to, at)| *to = (at * 7 + step) as u8);
                    vector.copy_from_slice(&buffer);
                    comm.send(Rank(1), 1, &buffer[..])?;
                    comm.send(Rank(1), 2, &vector)?;
                } else {
                    // Each message arrives in memory of the other kind.
                    comm.recv(Rank(0), 1, &mut vector)?;
                    comm.recv(Rank(0), 2, &mut buffer)?;
                    assert!(
                        vector.iter().zip(0..).all(|(byte, at)| *byte == (at * 7 + step) as u8)
                    );
                    assert_eq!(vector[..], buffer[..]);
                    assert_eq!(net.fetched(), if fetches { step } else { 0 }, "{seed:?}");
                }
            }
            Ok(())
        });
    }
}

#[test]
fn long_puts_and_gets_of_the_heap_need_no_copy() {
    // Without faults, with many faults, and with packets only.
    for (seed, pins) in [(None, true), (Some(5), true), (Some(3 * ROUNDS), false)] {
        run(&[1, 2], seed, move |rt, weather| {
            let net = weather.nodes[rt.rank().0 as usize].net().expect("of two nodes");
            let words = rt.share::<u64>(LONG)?;
            let other = words.at(Rank(1 - rt.rank().0), 0);
            // Lengths beyond the end of a window, within one, and short.
            for len in [LONG, 20_000, 100] {
                let mut values = rt.buffer::<u64>(len)?;
                let expected = (0..len as u64).map(|at| at * 3 + len as u64);
                values.iter_mut().zip(expected.clone()).for_each(|(to, value)| *to = value);
                rt.put_slice(other, &values)?;
                rt.barrier()?;
                values.fill(0);
                rt.get_slice(other, &mut values)?;
                assert!(values.iter().copied().eq(expected), "{len}");
                rt.barrier()?;
            }
            assert_eq!(net.pinned() > 0, pins, "{seed:?}");
            // A failed put returns the error of the operation.
            let values = rt.buffer::<u64>(LONG)?;
            let late = rt.put_slice(other.add(1), &values[..]);
            assert!(matches!(late, Err(crate::AddrError::OutOfRange { .. })), "{late:?}");
            Ok(())
        });
    }
}

#[test]
fn long_puts_and_gets_of_adopted_memory_need_no_copy() {
    for (seed, pins) in [(None, true), (Some(5), true), (Some(3 * ROUNDS), false)] {
        run(&[1, 2], seed, move |rt, weather| {
            let net = weather.nodes[rt.rank().0 as usize].net().expect("of two nodes");
            let words = rt.share::<u64>(LONG)?;
            let other = words.at(Rank(1 - rt.rank().0), 0);
            let counts = || rt.network_counts().expect("of two nodes");
            let bytes = (LONG * size_of::<u64>()) as u64;
            for step in 0..3u64 {
                let mut values = rt.adopt(vec![0u64; LONG]);
                let expected = (0..LONG as u64).map(|at| at * 3 + step);
                let before = counts();
                for _ in 0..3 {
                    values.iter_mut().zip(expected.clone()).for_each(|(to, value)| *to = value);
                    rt.put_slice(other, &values)?;
                    rt.barrier()?;
                    values.fill(0);
                    rt.get_slice(other, &mut values)?;
                    assert!(values.iter().copied().eq(expected.clone()), "{step}");
                    rt.barrier()?;
                }
                // The memory is registered once and never copied, or copied each time.
                let (bounced, shown) =
                    (counts().bounced - before.bounced, counts().shown - before.shown);
                assert_eq!(bounced, if pins { 0 } else { 6 * bytes }, "{seed:?}");
                assert_eq!(shown > 0, pins && bytes >= 128 << 10);
                assert!(shown <= bytes.div_ceil(2 << 20), "{shown} of {bytes} bytes");
                assert_eq!(net.pinned() as u64, shown);
                match step {
                    0 => assert_eq!(values.into_inner().unwrap().len(), LONG),
                    1 => drop(values),
                    // The registrations and the memory of a forgotten value stay.
                    _ => {
                        let kept = shown;
                        std::mem::forget(values);
                        assert_eq!(net.pinned() as u64, kept);
                        continue;
                    }
                }
                assert_eq!(net.pinned(), 0, "no registration of the memory is left");
                let others = vec![7u64; LONG];
                let before = counts();
                rt.put_slice(other, &others[..])?;
                assert_eq!(counts().bounced - before.bounced, bytes, "memory that is not adopted");
                rt.barrier()?;
            }
            Ok(())
        });
    }
}

/// Runs jobs with other faults in each round.
fn everything(seeds: Range<u64>, shape: impl Fn(u64) -> &'static [u64]) {
    for first in seeds.step_by(ROUNDS as usize) {
        run(shape(first), Some(first), move |rt, weather| {
            for seed in first..first + ROUNDS {
                weather.change(rt, seed)?;
                mixture::play(rt, seed, 1)?;
                if seed % 4 == 0 {
                    reach::play(rt, reach::Extent::SHORT)?;
                }
            }
            Ok(())
        });
    }
}

#[test]
fn everything_works_over_bad_networks() {
    everything(0..120, |_| &[1, 2]);
}

#[test]
fn everything_works_over_bad_networks_beside_neighbours() {
    everything(1000..1084, |seed| match seed / ROUNDS % 2 {
        0 => &[1, 1, 2],
        _ => &[1, 2, 3, 2],
    });
}

const ROUNDS: u64 = 12;
const PAGES: usize = 60;
/// Words of more than one window of the heap.
const LONG: usize = (1 << 19) + 1000;
