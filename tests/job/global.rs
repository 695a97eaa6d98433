//! Global memory between all ranks, on one node or several: accesses, copies that a
//! third rank requests, a chain of operations through all ranks, stale addresses.

use super::{api, roles};
use api::global::{After, Change, Copy, ListCopy};
use api::{AddrError, Agent, Error, Global, GlobalAddr, GlobalPtr, MemoryOptions, Rank, Runtime};
use std::sync::Arc;
use tsumugi_core::op::Kind;

/// Runs the whole test, with the processors as the agent, and with the device where there
/// is one. Collective.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    // From here on, the keys of rank 0 differ from those of the others.
    let _own = if rt.rank() == Rank(0) { None } else { Some(rt.expose::<u8>(1)?) };
    let global = rt.global()?;
    for agent in [Agent::Cpu, Agent::Device] {
        let words = MemoryOptions::new().agent(agent).expose_global::<u64>(&global, WORDS)?;
        if words.agent() != agent {
            continue;
        }
        let all = tell(rt, words.at(0))?;
        accesses(rt, &global, &all)?;
        rt.barrier()?;
        copies(rt, &global, &all)?;
        rt.barrier()?;
        order(rt, &global, &all)?;
        rt.barrier()?;
        updates(rt, &global, &all)?;
        gone(rt, &global, agent)?;
        roles::say(&format!("global words by {agent:?}: all there"));
    }
    between_agents(rt, &global)
}

/// Lists of copies between memory of both agents, from each rank to the next one. Rank 0
/// begins them all, also those in which it has no part.
fn between_agents(rt: &Runtime, global: &Global) -> Result<(), Error> {
    let own = u64::from(rt.rank().0);
    let (device, cpu) = (
        MemoryOptions::new().agent(Agent::Device).expose_global::<u64>(global, 8)?,
        global.expose::<u64>(8)?,
    );
    let (devices, cpus) = (tell(rt, device.at(0))?, tell(rt, cpu.at(0))?);
    global.put_slice(device.at(0), &[own; 2])?;
    global.put_slice(cpu.at(0), &[10 + own; 2])?;
    rt.barrier()?;
    let size = rt.size() as usize;
    if own == 0 {
        let list = global.expose::<u64>(3 * 4)?;
        for from in 0..size {
            let to = (from + 1) % size;
            let row = |place: i64, dst: &[GlobalPtr<u64>], src: &[GlobalPtr<u64>]| {
                let dst = global.index(dst[to], 2 + place)?.addr().to_bits();
                let row = [dst, src[from].addr().to_bits(), 8];
                global.put_slice(list.at(3 * place as usize), &row)
            };
            row(0, &cpus, &cpus)?;
            row(1, &cpus, &devices)?;
            row(2, &devices, &cpus)?;
            row(3, &devices, &devices)?;
            let entries = list.at(0).addr();
            let (from, to) = (Rank(from as u32), Rank(to as u32));
            global.begin(ListCopy { entries, count: 4, from, to }).wait()?;
            let (dst, src) = (devices[to.0 as usize], devices[from.0 as usize]);
            global.copy(global.index(dst, 6)?, src, 2)?;
        }
    }
    rt.barrier()?;
    let before = (own + u64::from(rt.size()) - 1) % u64::from(rt.size());
    let mut found = [0; 8];
    global.get_slice(cpu.at(0), &mut found)?;
    assert_eq!(found[2..4], [10 + before, before]);
    global.get_slice(device.at(0), &mut found)?;
    assert_eq!(found[4..], [10 + before, before, before, before]);
    rt.barrier()
}

fn tell(rt: &Runtime, own: GlobalPtr<u64>) -> Result<Vec<GlobalPtr<u64>>, Error> {
    let bits = rt.allgather(own.addr().to_bits())?.into_iter();
    Ok(bits.map(|bits| GlobalPtr::new(GlobalAddr::from_bits(bits))).collect())
}

fn accesses(rt: &Runtime, global: &Global, all: &[GlobalPtr<u64>]) -> Result<(), Error> {
    let own = rt.rank().0;
    for rank in rt.ranks() {
        let at = global.index(all[rank.0 as usize], i64::from(own) * 4)?;
        global.put(at, 5)?;
        assert_eq!(global.fetch_add(at, 2)?, 5);
        assert_eq!(global.fetch_and(at, 6)?, 7);
        assert_eq!(global.fetch_or(at, 8)?, 6);
        assert_eq!(global.fetch_xor(at, 1)?, 14);
        assert_eq!(global.swap(at, 9)?, 15);
        assert_eq!(global.compare_swap(at, 9, 8)?, 9);
        global.add(at, 3)?;
        global.and(at, 0b1001)?;
        global.or(at, 0b0100)?;
        global.xor(at, 0b1100)?;
        assert_eq!(global.get(at)?, ((8 + 3) & 0b1001 | 0b0100) ^ 0b1100);
        let high = global.index(at.cast::<u32>(), 1)?;
        assert_eq!(global.fetch_add(high, 3)?, 0);
        assert_eq!(global.get(at)?, 3 << 32 | 1);
        global.put_slice(at, &[1, 2, 3])?;
        let mut back = [0; 4];
        global.get_slice(at, &mut back)?;
        assert_eq!(back, [1, 2, 3, 0]);
        global.put_slice(at, &[0; 4])?;
        let beyond = global.index(all[rank.0 as usize], WORDS as i64)?;
        let refused = AddrError::OutOfRange {
            addr: beyond.addr(),
            bytes: 8,
            region_bytes: Some(8 * WORDS as u64),
        };
        assert_eq!(global.get(beyond), Err(refused));
    }
    Ok(())
}

/// Rank 0 requests copies of the words of each rank to the next rank.
fn copies(rt: &Runtime, global: &Global, all: &[GlobalPtr<u64>]) -> Result<(), Error> {
    let own = rt.rank().0 as usize;
    let lines: Vec<u64> = (0..LINE as u64).map(|word| (own as u64) << 32 | word).collect();
    global.put_slice(global.index(all[own], SENT)?, &lines)?;
    rt.barrier()?;
    if own == 0 {
        let begun: Vec<_> = (0..all.len())
            .map(|from| {
                let to = (from + 1) % all.len();
                let src = global.index(all[from], SENT)?;
                let dst = global.index(all[to], RECEIVED)?;
                let flag = global.index(all[to], FLAG)?;
                let copy = Copy::new(dst.addr(), src.addr(), 8 * LINE as u64);
                Ok(global.begin(copy.then_add(flag.addr(), 1)))
            })
            .collect::<Result<_, Error>>()?;
        for operation in begun {
            operation.wait()?;
        }
    }
    rt.barrier()?;
    let before = (own + all.len() - 1) % all.len();
    let mut received = vec![0; LINE];
    global.get_slice(global.index(all[own], RECEIVED)?, &mut received)?;
    for (word, value) in received.into_iter().enumerate() {
        assert_eq!(value, (before as u64) << 32 | word as u64);
    }
    assert_eq!(global.get(global.index(all[own], FLAG)?)?, 1);
    Ok(())
}

/// Rank 0 copies a word from rank to rank, each copy after the one before.
fn order(rt: &Runtime, global: &Global, all: &[GlobalPtr<u64>]) -> Result<(), Error> {
    if rt.rank() != Rank(0) {
        return Ok(());
    }
    for round in 1..=10 {
        let first = Change::atomic(Kind::Swap, all[all.len() - 1].addr(), round);
        let mut last = global.begin(first);
        for rank in (1..all.len()).rev() {
            let copy = Copy::new(all[rank - 1].addr(), all[rank].addr(), 8);
            last = global.begin_after(copy, After::One(last.handle()));
        }
        assert_eq!(global.flush_all().wait(), Ok(0));
        assert!(last.has_ended());
        assert_eq!(global.get(all[0])?, round);
    }
    Ok(())
}

/// ULTs of all ranks add to one word of each rank.
fn updates(rt: &Runtime, global: &Global, all: &[GlobalPtr<u64>]) -> Result<(), Error> {
    const ULTS: u64 = 20;
    const STEPS: u64 = 10;
    let tallies: Result<Vec<_>, _> = all.iter().map(|at| global.index(*at, TALLY)).collect();
    let tallies = Arc::new(tallies?);
    let ults: Vec<_> = (0..ULTS)
        .map(|ult| {
            let (global, tallies) = (global.clone(), tallies.clone());
            rt.spawn(move |_| {
                for step in 0..STEPS {
                    let at = tallies[(ult + step) as usize % tallies.len()];
                    if step % 2 == 0 {
                        global.fetch_add(at, 1).unwrap();
                    } else {
                        let add = Change::atomic(Kind::FetchAdd, at.addr(), 1u64);
                        global.begin(add).wait().unwrap();
                    }
                }
            })
        })
        .collect();
    ults.into_iter().for_each(|ult| ult.join().unwrap());
    rt.barrier()?;
    let own = global.get(tallies[rt.rank().0 as usize])?;
    assert_eq!(rt.sum(own)?, ULTS * STEPS * u64::from(rt.size()));
    Ok(())
}

/// The address of a freed region is stale, and never reaches the next region at its
/// place.
fn gone(rt: &Runtime, global: &Global, agent: Agent) -> Result<(), Error> {
    for _ in 0..10 {
        let words = MemoryOptions::new().agent(agent).expose_global::<u64>(global, 8)?;
        let all = tell(rt, words.at(3))?;
        for &at in &all {
            global.fetch_add(at, 1)?;
        }
        rt.barrier()?;
        assert_eq!(global.get(words.at(3))?, u64::from(rt.size()));
        drop(words);
        rt.barrier()?;
        for at in all {
            let error = loop {
                match global.put(at, 1) {
                    Ok(()) => api::ult::yield_now(),
                    Err(error) => break error,
                }
            };
            assert_eq!(error, AddrError::StaleKey { addr: at.addr() });
        }
    }
    Ok(())
}

const LINE: usize = 40_000;
const SENT: i64 = 1000;
const RECEIVED: i64 = SENT + LINE as i64;
const FLAG: i64 = 900;
const TALLY: i64 = 901;
const WORDS: usize = RECEIVED as usize + LINE;
