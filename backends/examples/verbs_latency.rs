//! How long a put, a get and a fetch-add of 8 bytes take over libibverbs, one
//! after another, beside the same requests posted and polled for by hand:
//! `verbs_latency [DEVICE[,DEVICE] [ROUNDS [OPS]]]`.
//!
//! Both reach this very process by a pair of the same device, or by one of each
//! of two, so that nobody else is waited for. Rounds alternate; what counts is
//! the smallest.

mod bare;

use bare::{Bare, Batch};
use std::ptr::NonNull;
use std::time::Instant;
use tsumugi_backends::verbs::sys::*;
use tsumugi_backends::verbs::{Facts, VerbsConfig, VerbsDomain, VerbsEndpoint};
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::mem::{Access, LocalAddr, Rank, Region, RemoteAddr};
use tsumugi_core::op::{Kind, Op};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or| args.get(at).map_or(or, |text| text.parse().expect("a number"));
    let (rounds, ops) = (number(1, 10), number(2, 1000));
    let devices: Vec<_> = args.first().into_iter().flat_map(|names| names.split(',')).collect();
    let open = |device: Option<&&str>, rank, size| {
        let config =
            VerbsConfig { device: device.map(|name| name.to_string()), ..VerbsConfig::default() };
        VerbsDomain::open(&config, rank, size).unwrap_or_else(|error| {
            eprintln!("{error}");
            std::process::exit(1);
        })
    };
    // The peer is this very rank if there is one device.
    let size = devices.len().max(1) as u32;
    let domain = open(devices.first(), Rank(0), size);
    let other = (size > 1).then(|| open(devices.last(), Rank(1), size));
    let peer = other.as_ref().unwrap_or(&domain);
    let card = peer.card().to_vec();
    domain.find(move |_, into| {
        into[..card.len()].copy_from_slice(&card);
        Some(card.len())
    });
    let memory = vec![0u64; 1024].leak();
    let base = NonNull::from(&mut *memory).cast();
    let show = |domain: &VerbsDomain| {
        // SAFETY: leaked, and used as nothing but bytes.
        unsafe { domain.register(base, 8192, Access::ReadWrite) }.expect("a region")
    };
    let region = show(&domain);
    if let Some(other) = &other {
        assert_eq!(show(other).key, region.key);
    }
    let mut endpoint = domain.endpoint();
    let op = |at| op_of(&region, size, at);
    assert_eq!(endpoint.post(&[op(0)]), 1);
    // Its peer has to be there to be met.
    let mut welcoming = other.as_ref().map(|other| other.endpoint());
    while endpoint.poll(&mut [Completion::EMPTY]) == 0 {
        if let Some(welcoming) = &mut welcoming {
            welcoming.poll(&mut []);
        }
    }
    let library = Library::load().expect("the library");
    let bare = Bare::open(&library, [domain.facts(), peer.facts()], memory.as_mut_ptr());
    let mut rows = Rows::default();
    for _ in 0..rounds {
        for (at, name) in ["put", "get", "fetch-add"].into_iter().enumerate() {
            let opcode = [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD][at];
            rows.add(name, "by hand", times(ops, || bare.once(opcode)));
            rows.add(name, "ours", times(ops, || once(&mut endpoint, op(at))));
        }
    }
    rows.print();
    for (at, name) in ["put", "get", "fetch-add"].into_iter().enumerate() {
        let opcode = [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD][at];
        let ours = packets(domain.facts(), || once(&mut endpoint, op(at)));
        let by_hand = packets(domain.facts(), || bare.once(opcode));
        if let (Some(ours), Some(by_hand)) = (ours, by_hand) {
            println!("{name:<9} {ours:.2} of {by_hand:.2} packets");
            // Some are sent again where the machine has other work.
            assert!(ours <= by_hand + 0.1, "no more on the wire");
        }
    }
    for batch in [1u64, 16, 64] {
        batches(&mut endpoint, &bare, op(0), batch);
    }
}

/// Of the last of so many ranks.
fn op_of(region: &Region, size: u32, at: usize) -> Op {
    let remote = |offset| RemoteAddr { rank: Rank(size - 1), key: region.key, offset };
    let local = LocalAddr { key: region.key, offset: 0 };
    match at {
        0 => Op::put(local, remote(4096), 8),
        1 => Op::get(remote(4096), local, 8),
        _ => Op::atomic(Kind::FetchAdd, remote(4160), 1u64),
    }
}

fn once(endpoint: &mut VerbsEndpoint<'_>, op: Op) {
    let mut done = [Completion::EMPTY];
    while endpoint.post(&[op]) == 0 {
        endpoint.poll(&mut []);
    }
    while endpoint.poll(&mut done) == 0 {}
    done[0].result.expect("it works");
}

/// Packets of the device for each of a hundred, where Soft-RoCE counts them.
fn packets(facts: &Facts, mut once: impl FnMut()) -> Option<f64> {
    let Facts { device, port, .. } = facts;
    let path = format!("/sys/class/infiniband/{device}/ports/{port}/hw_counters/sent_pkts");
    let count = || {
        // The kernel looks at its counters every 10 ms.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::read_to_string(&path).ok()?.trim().parse::<u64>().ok()
    };
    once();
    let before = count()?;
    (0..100).for_each(|_| once());
    Some((count()? - before) as f64 / 100.0)
}

/// Doorbells and time for operations that are under way at once.
fn batches(endpoint: &mut VerbsEndpoint<'_>, bare: &Bare, put: Op, batch: u64) {
    let ops = vec![put; batch as usize];
    let (before, start, rounds) = (endpoint.counters().doorbells, Instant::now(), 2000 / batch);
    for _ in 0..rounds {
        assert_eq!(endpoint.post(&ops), ops.len());
        let (mut came, mut done) = (0, [Completion::EMPTY; 64]);
        while came < ops.len() {
            came += endpoint.poll(&mut done);
        }
    }
    let count = (rounds * batch) as f64;
    let us = start.elapsed().as_secs_f64() * 1e6 / count;
    let doorbells = (endpoint.counters().doorbells - before) as f64 / count;
    let (start, mut by_hand) = (Instant::now(), Batch::new(batch as usize));
    (0..rounds).for_each(|_| bare.batch(IBV_WR_RDMA_WRITE, &mut by_hand));
    let hand = start.elapsed().as_secs_f64() * 1e6 / count;
    println!("{batch} puts at once: {doorbells:.3} doorbells each, {us:.2} of {hand:.2} us");
}

fn times(ops: usize, mut once: impl FnMut()) -> Vec<f64> {
    (0..20).for_each(|_| once());
    let mut times: Vec<f64> = (0..ops)
        .map(|_| {
            let start = Instant::now();
            once();
            start.elapsed().as_nanos() as f64 / 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The smallest of what was measured.
#[derive(Default)]
struct Rows(Vec<(&'static str, &'static str, f64, f64)>);

impl Rows {
    fn add(&mut self, what: &'static str, who: &'static str, times: Vec<f64>) {
        let (min, p50) = (times[0], times[times.len() / 2]);
        match self.0.iter_mut().find(|row| (row.0, row.1) == (what, who)) {
            Some(row) => (row.2, row.3) = (row.2.min(min), row.3.min(p50)),
            None => self.0.push((what, who, min, p50)),
        }
    }

    fn print(&self) {
        for (hand, ours) in self.0.iter().zip(&self.0[1..]).step_by(2) {
            println!(
                "{:<9} min {:.2} of {:.2} us ({:.2})  p50 {:.2} of {:.2} us ({:.2})",
                hand.0,
                ours.2,
                hand.2,
                ours.2 / hand.2,
                ours.3,
                hand.3,
                ours.3 / hand.3
            );
        }
    }
}
