//! One property of the network at a time.

use super::*;
use tsumugi_core::backend::{Domain, Endpoint, TraceStage};
use tsumugi_core::mem::{AddrError, LocalAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sim::{CostModel, SimConfig, check};
use tsumugi_core::tag::Tag;
use tsumugi_core::time::{Clock, Instant};

const US: u64 = 1_000;

fn tag(bits: u64) -> Tag {
    Tag::from_bits(bits)
}

fn local(region: &Region, offset: u64) -> LocalAddr {
    LocalAddr { key: region.key, offset }
}

fn put_word(rank: u32, region: &Region, value: u64) -> Op {
    Op::put_word(at(rank, region, 0), Width::W8, value).tagged(tag(value))
}

fn word(net: &Net, rank: u32, region: &Region, offset: u64) -> u64 {
    net.node(Rank(rank)).load(region.key, offset).unwrap()
}

#[test]
fn time_advances_by_steps_alone() {
    let net = Net::new(SimConfig::calm(2, 0));
    let region = open(&net, 1, 8);
    net.node(Rank(0)).post(&put_word(1, &region, 5).notifying());
    assert_eq!((net.now().as_ns(), word(&net, 1, &region, 0)), (0, 0));
    assert_eq!(net.step(), Some((Rank(1), SimEvent::Bell(at(1, &region, 0)))));
    assert_eq!((net.now().as_ns(), word(&net, 1, &region, 0)), (US, 5));
    let done = Completion { tag: tag(5), result: Ok(0) };
    assert_eq!(net.step(), Some((Rank(0), SimEvent::Completed(done))));
    assert_eq!((net.now().as_ns(), net.in_flight(), net.step()), (2 * US, 0, None));
}

#[test]
fn run_until_runs_every_due_event() {
    let net = Net::new(SimConfig::calm(1, 0));
    let told = RefCell::new(Vec::new());
    let mut actors =
        [|node: &SimNode<'_>, event: SimEvent| told.borrow_mut().push((node.now(), event))];
    let point = Instant::from_ns;
    net.node(Rank(0)).wake_at(point(300), 2);
    net.node(Rank(0)).wake_at(point(100), 1);
    net.run_until(point(200), &mut actors);
    assert_eq!(net.now(), point(200));
    assert_eq!(net.next_due(), Some(point(300)));
    net.run_until(point(1_000), &mut actors);
    assert_eq!(net.now(), point(1_000));
    assert_eq!(
        *told.borrow(),
        [(point(100), SimEvent::Timer(1)), (point(300), SimEvent::Timer(2))]
    );
}

#[test]
fn a_seed_is_the_same_run_each_time() {
    let run = |seed| {
        let net = Net::new(SimConfig { early: 200, ..SimConfig::drawn(4, seed) });
        net.keep_log(10_000);
        let regions: Vec<Region> = (0..4).map(|rank| open(&net, rank, 64)).collect();
        let left = RefCell::new([20u64; 4]);
        let actor = |node: &SimNode<'_>, event: SimEvent| {
            let own = node.rank().0;
            let left = &mut left.borrow_mut()[own as usize];
            if *left > 0 && matches!(event, SimEvent::Start | SimEvent::Completed(_)) {
                *left -= 1;
                let peer = (own + 1 + *left as u32 % 3) % 4;
                let from = local(&regions[own as usize], 0);
                let put = Op::put(from, at(peer, &regions[peer as usize], 0), 64);
                node.post(&put.tagged(tag(*left)));
            }
        };
        net.run(&mut [actor; 4]);
        (records(&net), net.now())
    };
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1), run(2));
}

/// A put reads its source late and a get writes its target late, so that an access to either
/// before the completion is detected.
#[test]
fn buffers_in_flight_are_in_use_until_the_completion() {
    let net = Net::new(SimConfig::calm(2, 0));
    let (own, peer) = (open(&net, 0, 64), open(&net, 1, 64));
    let node = net.node(Rank(0));
    node.store(own.key, 0, 1).unwrap();
    node.post(&Op::put(local(&own, 0), at(1, &peer, 0), 64));
    node.store(own.key, 0, 2).unwrap();
    drain(&net);
    assert_eq!(word(&net, 1, &peer, 0), 2, "changed while the device had it");

    node.post(&Op::get(at(1, &peer, 0), local(&own, 0), 64));
    net.step();
    net.node(Rank(1)).store(peer.key, 0, 9).unwrap();
    node.store(own.key, 0, 7).unwrap();
    drain(&net);
    assert_eq!(word(&net, 0, &own, 0), 2, "the value at the arrival, written at the completion");
}

#[test]
fn an_early_put_has_read_its_source_and_not_landed() {
    let net = Net::new(SimConfig { early: 1000, ..SimConfig::calm(2, 3) });
    assert!(!net.node(Rank(0)).capabilities().remote_completion);
    let (own, peer) = (open(&net, 0, 64), open(&net, 1, 64));
    let node = net.node(Rank(0));
    node.store(own.key, 0, 1).unwrap();
    node.post(&Op::put(local(&own, 0), at(1, &peer, 0), 64).tagged(tag(4)).notifying());
    let done = Completion { tag: tag(4), result: Ok(0) };
    assert_eq!(net.step(), Some((Rank(0), SimEvent::Completed(done))));
    assert_eq!(word(&net, 1, &peer, 0), 0);
    node.store(own.key, 0, 2).unwrap();
    assert_eq!(net.step(), Some((Rank(1), SimEvent::Bell(at(1, &peer, 0)))));
    assert_eq!((word(&net, 1, &peer, 0), net.in_flight()), (1, 0));
}

#[test]
fn a_torn_put_lands_in_pieces_and_rings_at_the_end() {
    let mut fronts = 0;
    for seed in 0..50 {
        let net = Net::new(SimConfig { torn: 1000, ..SimConfig::calm(2, seed) });
        let (own, peer) = (open(&net, 0, 64), open(&net, 1, 64));
        for offset in (0..64).step_by(8) {
            net.node(Rank(0)).store(own.key, offset, 1).unwrap();
        }
        let put = Op::put(local(&own, 0), at(1, &peer, 0), 64);
        net.node(Rank(0)).post(&put.notifying());
        let sum = || (0..64).step_by(8).map(|offset| word(&net, 1, &peer, offset)).sum::<u64>();
        assert_eq!(net.step(), Some((Rank(0), SimEvent::Nothing)));
        assert!((1..8).contains(&sum()), "{} words", sum());
        fronts += word(&net, 1, &peer, 0);
        assert_eq!(net.step(), Some((Rank(1), SimEvent::Bell(at(1, &peer, 0)))));
        assert_eq!(sum(), 8);
    }
    assert!((5..45).contains(&fronts), "in either order: {fronts} of 50");
}

/// Operations of one queue to one node take effect in order, if the network is to keep it.
#[test]
fn the_order_of_a_queue_is_kept_with_any_losses() {
    let violations = |reorder, seed| {
        let net = Net::new(SimConfig { reorder, early: 300, ..SimConfig::drawn(3, seed) });
        net.keep_log(1_000);
        let (own, peers) = (open(&net, 0, 64), [open(&net, 1, 64), open(&net, 2, 64)]);
        let (mut posted, mut steps) = (0, 0);
        while posted < 60 {
            let peer = (posted % 2) as usize;
            let to = at(1 + peer as u32, &peers[peer], 0);
            let op = match posted % 3 {
                0 => Op::put(local(&own, 0), to, 64),
                1 => Op::get(to, local(&own, 0), 64),
                _ => Op::put_word(to, Width::W8, posted),
            };
            if net.node(Rank(0)).try_post(&op.tagged(tag(posted))) {
                posted += 1;
                continue;
            }
            net.step();
            steps += 1;
            match steps {
                10 if seed % 2 == 0 => net.cut(|rank| rank.0 == 1),
                50 => net.heal(),
                _ => {}
            }
        }
        net.heal();
        drain(&net);
        let landed: Vec<u64> = records(&net)
            .iter()
            .filter(|record| record.stage == TraceStage::Landed)
            .map(|record| record.tag.to_bits())
            .collect();
        assert_eq!(landed.len(), 60, "each operation took effect once");
        let sorted = |peer| landed.iter().filter(move |tag| *tag % 2 == peer).is_sorted();
        usize::from(!sorted(0)) + usize::from(!sorted(1))
    };
    check(SEEDS, |seed| assert_eq!(violations(false, seed), 0));
    assert!((0..50).any(|seed| violations(true, seed) > 0), "at least one seed reorders");
}

#[test]
fn an_operation_lost_too_often_fails_and_may_have_landed() {
    let (mut failed, mut landed) = (0, 0);
    for seed in 0..200 {
        let net = Net::new(SimConfig { drop: 400, retries: 1, ..SimConfig::calm(2, seed) });
        let region = open(&net, 1, 8);
        net.node(Rank(0)).post(&put_word(1, &region, 5));
        let done = completions(&drain(&net));
        assert_eq!(done.len(), 1, "the operation ends once");
        match done[0].result {
            Ok(_) => assert_eq!(word(&net, 1, &region, 0), 5),
            Err(error) => {
                assert_eq!(error, AddrError::PeerLost { rank: Rank(1) });
                failed += 1;
                landed += word(&net, 1, &region, 0) / 5;
            }
        }
    }
    assert!(0 < landed && landed < failed && failed < 200, "{landed} of {failed} failures landed");
}

#[test]
fn a_completion_can_arrive_twice() {
    let net = Net::new(SimConfig { duplicate: 1000, ..SimConfig::calm(2, 0) });
    let region = open(&net, 1, 8);
    net.node(Rank(0)).post(&Op::atomic(Kind::FetchAdd, at(1, &region, 0), 3u64).tagged(tag(1)));
    let done = Completion { tag: tag(1), result: Ok(0) };
    assert_eq!(completions(&drain(&net)), [done, done]);
    assert_eq!(word(&net, 1, &region, 0), 3, "the add is carried out once");
}

#[test]
fn a_death_is_reported_to_all_but_the_dead_node() {
    let config = SimConfig { detect_ns: 50 * US, ..SimConfig::calm(3, 0) };
    let net = Net::new(config);
    let regions: Vec<Region> = (0..3).map(|rank| open(&net, rank, 8)).collect();
    net.node(Rank(0)).post(&put_word(1, &regions[1], 5));
    net.node(Rank(1)).post(&put_word(2, &regions[2], 6).notifying());
    net.node(Rank(1)).wake_at(Instant::from_ns(10), 0);
    net.kill(Rank(1));
    assert!(net.is_dead(Rank(1)));
    assert!(!net.node(Rank(1)).try_post(&put_word(0, &regions[0], 7)));
    let told = drain(&net);
    assert!(told.iter().all(|(_, rank, _)| *rank != 1), "{told:?}");
    let lost = AddrError::PeerLost { rank: Rank(1) };
    let failed = SimEvent::Completed(Completion { tag: tag(5), result: Err(lost) });
    assert!(told.contains(&(50 * US, 0, failed)), "{told:?}");
    for rank in [0, 2] {
        let learnt = |(at, to, event): &(u64, u32, SimEvent)| {
            *to == rank && *event == SimEvent::PeerLost(Rank(1)) && *at >= 50 * US
        };
        assert!(told.iter().any(learnt), "{told:?}");
    }
    assert!(
        told.contains(&(US, 2, SimEvent::Bell(at(2, &regions[2], 0)))),
        "the put was under way"
    );
    // An operation that is posted later fails sooner.
    let start = net.now().as_ns();
    net.node(Rank(0)).post(&put_word(1, &regions[1], 5));
    assert_eq!(drain(&net), [(start + 2 * US, 0, failed)]);
}

#[test]
fn a_cut_delays_messages_or_ends_them() {
    let config = SimConfig { retry_ns: 10 * US, retries: 3, ..SimConfig::calm(4, 0) };
    let net = Net::new(config);
    let regions: Vec<Region> = (0..4).map(|rank| open(&net, rank, 8)).collect();
    let sides = |rank: Rank| rank.0 < 2;
    net.cut(sides);
    net.node(Rank(0)).post(&put_word(1, &regions[1], 1));
    net.node(Rank(0)).post(&put_word(2, &regions[2], 2));
    let told = drain(&net);
    let lost = Err(AddrError::PeerLost { rank: Rank(2) });
    assert_eq!(
        completions(&told),
        [Completion { tag: tag(1), result: Ok(0) }, Completion { tag: tag(2), result: lost }]
    );
    net.heal();
    net.node(Rank(0)).post(&put_word(3, &regions[3], 3));
    net.cut(sides);
    net.run_until(
        net.now() + std::time::Duration::from_nanos(15 * US),
        &mut [|_: &SimNode<'_>, _| {}],
    );
    assert_eq!(word(&net, 3, &regions[3], 0), 0);
    net.heal();
    assert_eq!(completions(&drain(&net)), [Completion { tag: tag(3), result: Ok(0) }]);
    assert_eq!(word(&net, 3, &regions[3], 0), 3);
}

#[test]
fn an_armed_endpoint_interrupts_once() {
    let net = Net::new(SimConfig::calm(2, 0));
    let region = open(&net, 1, 8);
    let node = net.node(Rank(0));
    let mut endpoint = node.endpoint();
    assert!(endpoint.arm());
    assert_eq!(endpoint.post(&[put_word(1, &region, 1), put_word(1, &region, 2)]), 2);
    let told = drain(&net);
    assert_eq!(told, [(2 * US, 0, SimEvent::Interrupt)]);
    assert_eq!(endpoint.poll(&mut [Completion::EMPTY; 4]), 2);
}

#[test]
fn a_node_reaches_its_own_memory_alone() {
    let net = Net::new(SimConfig::calm(2, 0));
    let region = open(&net, 1, 8);
    let other = tsumugi_core::backend::execute(&net.node(Rank(0)), &put_word(1, &region, 1));
    assert_eq!(other, Err(AddrError::OtherNode { rank: Rank(1) }));
    assert_eq!(net.node(Rank(1)).store(region.key, 0, 1), Ok(()));
}

#[test]
#[should_panic(expected = "not re-entered")]
fn a_network_is_not_re_entered() {
    let net = Net::new(SimConfig::calm(2, 0));
    net.cut(|_| net.in_flight() > 0);
}

#[test]
fn the_injection_limit_spaces_the_messages_of_a_node() {
    let costs = |inject_ns| CostModel { inject_ns, engine_ns: 10, ..CostModel::FX100 };
    // The time at which the last of 16 puts, two of each rank of a node, has ended.
    let ended = |inject_ns| {
        let net = Net::new(SimConfig::big(16, costs(inject_ns)));
        let region = open(&net, 8, 8);
        for rank in 0..8 {
            (0..2).for_each(|_| net.node(Rank(rank)).post(&put_word(8, &region, 1)));
        }
        let told = drain(&net);
        assert_eq!(completions(&told).len(), 16);
        told.iter().map(|(ns, ..)| *ns).max().unwrap()
    };
    let free = ended(0);
    assert_eq!(ended(1), free, "less than the engine takes");
    let limited = ended(1_000);
    // The first put leaves as before, the others a microsecond after each other.
    let overhead = costs(0).overhead_ns;
    assert_eq!(limited, overhead + 15 * 1_000 + 10 + 2 * costs(0).latency_ns);
    assert!(free < limited / 4, "{free} ns without a limit, {limited} with one");
}
