//! How long a put, a get and a fetch-add of 8 bytes take over libibverbs, one
//! after another, beside the same requests posted and polled for by hand:
//! `verbs_latency [DEVICE[,DEVICE] [ROUNDS [OPS]]]`.
//!
//! Both reach this very process by a pair of the same device, or by one of each
//! of two, so that nobody else is waited for. Rounds alternate; what counts is
//! the smallest.

use std::mem::{ManuallyDrop, zeroed};
use std::ptr::{NonNull, null_mut};
use std::time::Instant;
use tsumugi_backends::verbs::sys::*;
use tsumugi_backends::verbs::{Config, Facts, VerbsDomain, VerbsEndpoint};
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::mem::{Access, LocalAddr, Rank, Region, RemoteAddr};
use tsumugi_core::op::{Kind, Op};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or| args.get(at).map_or(or, |text| text.parse().expect("a number"));
    let (rounds, ops) = (number(1, 10), number(2, 1000));
    let devices: Vec<_> = args.first().into_iter().flat_map(|names| names.split(',')).collect();
    let open = |device: Option<&&str>, rank, size| {
        let config = Config { device: device.map(|name| name.to_string()), ..Config::default() };
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
    let bare = Bare::open([domain.facts(), peer.facts()], memory.as_mut_ptr());
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
        }
    }
    for batch in [1u64, 16, 64] {
        batches(&mut endpoint, op(0), batch);
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
fn batches(endpoint: &mut VerbsEndpoint<'_>, put: Op, batch: u64) {
    let ops = vec![put; batch as usize];
    let (before, start, rounds) = (endpoint.counts().doorbells, Instant::now(), 2000 / batch);
    for _ in 0..rounds {
        assert_eq!(endpoint.post(&ops), ops.len());
        let (mut came, mut done) = (0, [Completion::EMPTY; 64]);
        while came < ops.len() {
            came += endpoint.poll(&mut done);
        }
    }
    let count = (rounds * batch) as f64;
    let doorbells = (endpoint.counts().doorbells - before) as f64;
    let us = start.elapsed().as_secs_f64() * 1e6;
    println!("{batch} puts at once: {:.3} doorbells, {:.2} us each", doorbells / count, us / count);
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

/// Two pairs, each other's peers.
struct Bare {
    qp: *mut ibv_qp,
    cq: *mut ibv_cq,
    near: u64,
    lkey: u32,
    rkey: u32,
}

impl Bare {
    /// `memory` is 8 KiB that stay.
    fn open(facts: [&Facts; 2], memory: *mut u64) -> Self {
        let library = Library::load().expect("the library");
        // SAFETY: calls as libibverbs documents them, each answer looked at;
        // nothing is ever closed.
        unsafe {
            let mut count = 0;
            let list = (library.ibv_get_device_list)(&mut count);
            let name = |device| {
                std::ffi::CStr::from_ptr((library.ibv_get_device_name)(device)).to_string_lossy()
            };
            let access = IBV_ACCESS_LOCAL_WRITE
                | IBV_ACCESS_REMOTE_READ
                | IBV_ACCESS_REMOTE_WRITE
                | IBV_ACCESS_REMOTE_ATOMIC;
            let pair = |facts: &Facts| {
                let device = (0..count as usize)
                    .map(|at| *list.add(at))
                    .find(|&device| name(device) == facts.device)
                    .expect("the device");
                let context = (library.ibv_open_device)(device);
                let pd = (library.ibv_alloc_pd)(context);
                let mr = (library.ibv_reg_mr)(pd, memory.cast(), 8192, access as i32);
                let cq = (library.ibv_create_cq)(context, 64, null_mut(), null_mut(), 0);
                assert!(!mr.is_null() && !cq.is_null());
                let mut attr: ibv_qp_init_attr = zeroed();
                (attr.send_cq, attr.recv_cq, attr.qp_type) = (cq, cq, IBV_QPT_RC);
                attr.cap = ibv_qp_cap {
                    max_send_wr: 16,
                    max_recv_wr: 1,
                    max_send_sge: 1,
                    max_recv_sge: 1,
                    max_inline_data: 64,
                };
                let qp = (library.ibv_create_qp)(pd, &mut attr);
                assert!(!qp.is_null());
                (qp, cq, mr)
            };
            let [(qp, cq, mr), (other, _, far_mr)] = facts.map(pair);
            let [near, far] = facts;
            for (qp, facts, peer, peer_facts) in [(qp, near, other, far), (other, far, qp, near)] {
                let mut attr: ibv_qp_attr = zeroed();
                (attr.qp_state, attr.port_num) = (IBV_QPS_INIT, facts.port);
                attr.qp_access_flags = access;
                let init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
                assert_eq!((library.ibv_modify_qp)(qp, &mut attr, init), 0);
                attr.qp_state = IBV_QPS_RTR;
                attr.path_mtu = (facts.mtu_bytes / 128).ilog2();
                (attr.dest_qp_num, attr.max_dest_rd_atomic) = ((*peer).qp_num, facts.reads_max);
                attr.min_rnr_timer = 12;
                attr.ah_attr.grh.dgid.raw = peer_facts.gid;
                attr.ah_attr.grh.sgid_index = facts.gid_index;
                attr.ah_attr.grh.hop_limit = 64;
                (attr.ah_attr.dlid, attr.ah_attr.port_num) = (peer_facts.lid, facts.port);
                attr.ah_attr.is_global = facts.ethernet.into();
                let rtr = IBV_QP_STATE
                    | IBV_QP_AV
                    | IBV_QP_PATH_MTU
                    | IBV_QP_DEST_QPN
                    | IBV_QP_RQ_PSN
                    | IBV_QP_MAX_DEST_RD_ATOMIC
                    | IBV_QP_MIN_RNR_TIMER;
                assert_eq!((library.ibv_modify_qp)(qp, &mut attr, rtr), 0);
                attr.qp_state = IBV_QPS_RTS;
                (attr.timeout, attr.retry_cnt, attr.rnr_retry) = (14, 6, 7);
                attr.max_rd_atomic = facts.reads_asked_max;
                let rts = IBV_QP_STATE
                    | IBV_QP_TIMEOUT
                    | IBV_QP_RETRY_CNT
                    | IBV_QP_RNR_RETRY
                    | IBV_QP_SQ_PSN
                    | IBV_QP_MAX_QP_RD_ATOMIC;
                assert_eq!((library.ibv_modify_qp)(qp, &mut attr, rts), 0);
            }
            Self { qp, cq, near: memory as u64, lkey: (*mr).lkey, rkey: (*far_mr).rkey }
        }
    }

    fn once(&self, opcode: u32) {
        let remote_addr = self.near + 4096 + 128;
        let mut sge = ibv_sge { addr: self.near + 64, length: 8, lkey: self.lkey };
        let wr = if opcode == IBV_WR_ATOMIC_FETCH_AND_ADD {
            let atomic = ibv_wr_atomic { remote_addr, compare_add: 1, swap: 0, rkey: self.rkey };
            ibv_wr { atomic: ManuallyDrop::new(atomic) }
        } else {
            ibv_wr { rdma: ManuallyDrop::new(ibv_wr_rdma { remote_addr, rkey: self.rkey }) }
        };
        let inline = if opcode == IBV_WR_RDMA_WRITE { IBV_SEND_INLINE } else { 0 };
        let mut request = ibv_send_wr {
            wr_id: 1,
            next: null_mut(),
            sg_list: &mut sge,
            num_sge: 1,
            opcode,
            send_flags: IBV_SEND_SIGNALED | inline,
            imm_data: 0,
            wr,
            qp_type: 0,
            _last: [0; 6],
        };
        // SAFETY: an open pair and queue; the memory stays.
        unsafe {
            assert_eq!(ibv_post_send(self.qp, &mut request, &mut null_mut()), 0);
            let mut done: ibv_wc = zeroed();
            loop {
                match ibv_poll_cq(self.cq, 1, &mut done) {
                    0 => {}
                    1 => break,
                    code => panic!("ibv_poll_cq: {code}"),
                }
            }
            assert_eq!(done.status, IBV_WC_SUCCESS);
        }
    }
}
