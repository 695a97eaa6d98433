//! Many ranks, many messages, any order: what is promised holds, from 1,000
//! seeds; and what was broken on purpose is found.
//!
//! A rank does something only if it was woken: by a bell, a completion, its
//! own time limit, a cell that is landing, or because it has something to
//! send and there may be room. So a wake-up that is lost is a deadlock here.

extern crate std;

use super::harness::{LANDING_WORDS, Seeded, Sizes, USER, World, memory, tables};
use crate::am::{
    Answer, Bell, Body, CallError, Event, HandlerId, INLINE_BYTES_MAX, Incoming, Inline, Out,
    Payload, ReplyTo, SendError, Token,
};
use crate::mem::{LocalAddr, Rank};
use crate::sync::mapped::Ordering;
use crate::time::Instant;
use core::time::Duration;
use std::collections::HashMap;
use std::format;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::{String, ToString};
use std::vec::Vec;

/// What a run does.
#[derive(Clone, Copy, Default)]
struct Plan {
    mutant: Option<&'static str>,
    /// The last rank dies somewhere in the middle.
    kill: bool,
    time_limits: bool,
}

const ECHO: HandlerId = HandlerId(1);
const LATER: HandlerId = HandlerId(2);
const UNKNOWN: HandlerId = HandlerId(9);
const STEPS_MAX: usize = 400_000;

/// A rank's side of the story.
#[derive(Default)]
struct Story {
    to_send: usize,
    /// It found no room, and there was none since.
    is_stuck: bool,
    woken: bool,
    /// Requests sent to each rank so far, and handled from each.
    sent: Vec<u64>,
    handled: Vec<u64>,
    under_way: HashMap<Token, Sent>,
    /// Long ones that ran into their limit.
    abandoned: HashMap<Token, usize>,
    unanswered: Vec<(ReplyTo, Inline)>,
    busy_user: Vec<bool>,
}

struct Sent {
    id: u64,
    to: usize,
    handler: HandlerId,
    limited: bool,
    block: Option<usize>,
}

/// Long payloads lie in blocks of a rank's own memory.
const BLOCK_WORDS: usize = LANDING_WORDS;

fn run(seed: u64, plan: Plan) -> Result<(), String> {
    let mut seeded = Seeded(seed);
    let ranks = 2 + seeded.below(7);
    let sizes = Sizes {
        ranks: ranks as u32,
        cells: 1 << seeded.below(4),
        calls: 1 + seeded.below(20),
        staging: 2 + seeded.below(12),
        landings: 1 + seeded.below(3),
        bell: if seeded.chance(2) { Bell::WithCell } else { Bell::AfterCell },
    };
    let memory = memory(sizes);
    let mut tables = tables(sizes);
    let mut world = World::new(sizes, &memory, &mut tables, plan.mutant);
    let mut stories: Vec<Story> = (0..ranks)
        .map(|_| Story {
            to_send: 20 + seeded.below(40),
            sent: std::vec![0; ranks],
            handled: std::vec![0; ranks],
            busy_user: std::vec![false; 1024 / BLOCK_WORDS],
            ..Story::default()
        })
        .collect();
    let kill_at = if plan.kill { 200 + seeded.below(3000) } else { usize::MAX };
    for step in 0..STEPS_MAX {
        world.now = Instant::from_ns(step as u64);
        if step == kill_at {
            let last = ranks - 1;
            world.dead[last] = true;
            stories[last] = Story {
                sent: std::mem::take(&mut stories[last].sent),
                handled: std::mem::take(&mut stories[last].handled),
                ..Story::default()
            };
            for (machine, story) in world.machines.iter_mut().zip(&mut stories).take(last) {
                machine.handle(Event::Lost(Rank(last as u32)), world.now);
                story.woken = true;
            }
        }
        if !world.flights.is_empty() && !seeded.chance(3) {
            let flight = seeded.below(world.flights.len());
            world.advance(flight, &mut seeded, false);
            stories.iter_mut().for_each(|story| story.woken = true);
            continue;
        }
        let rank = seeded.below(ranks);
        if !world.dead[rank] {
            turn(&mut world, &mut stories, rank, plan, &mut seeded)?;
        }
        if world.flights.is_empty() && (0..ranks).all(|rank| is_done(&world, &stories, rank)) {
            return finish(&world, &stories, plan);
        }
    }
    let open: usize = stories.iter().map(|story| story.under_way.len() + story.to_send).sum();
    Err(format!("deadlock: {open} requests have not ended after {STEPS_MAX} steps"))
}

fn is_done(world: &World<'_>, stories: &[Story], rank: usize) -> bool {
    let story = &stories[rank];
    world.dead[rank]
        || (story.to_send == 0
            && story.under_way.is_empty()
            && story.abandoned.is_empty()
            && story.unanswered.is_empty()
            && !story.woken
            && !world.rung[rank]
            && !world.machines[rank].is_landing())
}

fn finish(world: &World<'_>, stories: &[Story], plan: Plan) -> Result<(), String> {
    for from in 0..stories.len() {
        for to in 0..stories.len() {
            let (sent, handled) = (stories[from].sent[to], stories[to].handled[from]);
            if sent != handled && !world.dead[from] && !world.dead[to] {
                return Err(format!("of {sent} requests from {from} to {to}, {handled} came"));
            }
        }
    }
    let limits = plan.time_limits || plan.kill;
    for (rank, machine) in world.machines.iter().enumerate() {
        if machine.dropped() > 0 && !limits {
            return Err(format!("rank {rank} has dropped {} cells", machine.dropped()));
        }
        if machine.calls() > 0 && !world.dead[rank] {
            return Err(format!("rank {rank} has {} calls left", machine.calls()));
        }
    }
    Ok(())
}

fn turn(
    world: &mut World<'_>,
    stories: &mut [Story],
    rank: usize,
    plan: Plan,
    seeded: &mut Seeded,
) -> Result<(), String> {
    let now = world.now;
    let machine = &mut world.machines[rank];
    let is_due = machine.next_deadline().is_some_and(|deadline| deadline <= now);
    let wakes = [
        std::mem::take(&mut world.rung[rank]),
        std::mem::take(&mut stories[rank].woken),
        machine.is_landing(),
        is_due,
        stories[rank].to_send > 0 && !stories[rank].is_stuck,
        !stories[rank].unanswered.is_empty(),
    ];
    if !wakes.contains(&true) {
        return Ok(());
    }
    machine.handle(if wakes[0] { Event::Rang } else { Event::Tick }, now);
    while let Some(out) = world.machines[rank].poll() {
        match out {
            Out::Run(request) => serve(world, stories, rank, request)?,
            Out::Done { token, result } => done(&mut stories[rank], token, result, world, plan)?,
            Out::Released { token } => {
                let block = stories[rank].abandoned.remove(&token).ok_or("released twice")?;
                stories[rank].busy_user[block] = false;
            }
        }
        if seeded.chance(5) {
            // The rest at its next turn.
            stories[rank].woken = true;
            break;
        }
    }
    if !stories[rank].unanswered.is_empty() && seeded.chance(3) {
        let story = &mut stories[rank];
        let (waiting, value) = story.unanswered.swap_remove(seeded.below(story.unanswered.len()));
        if let Err(waiting) = world.machines[rank].reply(waiting, &Answer::Value(value)) {
            story.unanswered.push((waiting, value));
        }
    }
    if world.machines[rank].take_room() {
        stories[rank].is_stuck = false;
    }
    while stories[rank].to_send > 0 && !stories[rank].is_stuck && !seeded.chance(4) {
        send(world, &mut stories[rank], rank, plan, seeded)?;
    }
    world.post(rank);
    Ok(())
}

fn send(
    world: &mut World<'_>,
    story: &mut Story,
    rank: usize,
    plan: Plan,
    seeded: &mut Seeded,
) -> Result<(), String> {
    let to = seeded.below(story.sent.len());
    let id = story.sent[to];
    let kind = seeded.below(10);
    let limited = plan.time_limits && seeded.chance(3);
    let deadline = limited.then(|| world.now + Duration::from_nanos(seeded.next() % 600));
    let handler = match seeded.below(8) {
        0 => UNKNOWN,
        1 | 2 => LATER,
        _ => ECHO,
    };
    let bytes = content(rank, to, id, seeded.below(INLINE_BYTES_MAX - 16));
    let machine = &mut world.machines[rank];
    let to_rank = Rank(to as u32);
    let (sent, block) = match kind {
        0..4 => (machine.cast(to_rank, ECHO, &bytes).map(|()| None), None),
        4..9 => {
            let payload = Payload::Inline(&bytes);
            (machine.call(to_rank, handler, payload, deadline).map(Some), None)
        }
        _ => {
            let Some(block) = story.busy_user.iter().position(|busy| !busy) else { return Ok(()) };
            let bytes = content(rank, to, id, 300 + seeded.below(8 * BLOCK_WORDS - 316));
            for (word, bytes) in bytes.chunks(8).enumerate() {
                let mut value = [0; 8];
                value[..bytes.len()].copy_from_slice(bytes);
                world.user(rank)[block * BLOCK_WORDS + word]
                    .store(u64::from_le_bytes(value), Ordering::Relaxed);
            }
            let from = LocalAddr { key: USER, offset: (block * BLOCK_WORDS * 8) as u64 };
            let payload = Payload::Long { from, bytes: bytes.len() as u64 };
            let call = world.machines[rank].call(to_rank, handler, payload, deadline);
            (call.map(Some), Some(block))
        }
    };
    match sent {
        Ok(token) => {
            story.sent[to] += 1;
            story.to_send -= 1;
            if let Some(token) = token {
                if let Some(block) = block {
                    story.busy_user[block] = true;
                }
                let entry = Sent { id, to, handler, limited, block };
                if story.under_way.insert(token, entry).is_some() {
                    return Err("a token was given out twice".to_string());
                }
            }
        }
        Err(SendError::Busy(_)) => story.is_stuck = true,
        Err(SendError::Addr(_)) if world.dead[to] => story.to_send -= 1,
        Err(error) => return Err(error.to_string()),
    }
    Ok(())
}

fn serve(
    world: &mut World<'_>,
    stories: &mut [Story],
    rank: usize,
    request: Incoming,
) -> Result<(), String> {
    let from = request.from.0 as usize;
    let (bytes, landed) = match request.body {
        Body::Inline(inline) => (inline.to_vec(), None),
        Body::Landed(landed) => {
            (world.landing(rank, landed.index(), landed.bytes).into_vec(), Some(landed))
        }
    };
    let id = stories[rank].handled[from];
    if bytes != content(from, rank, id, bytes.len().saturating_sub(16)) {
        return Err(format!("request {id} from {from} to {rank} is another, or torn"));
    }
    stories[rank].handled[from] += 1;
    if let Some(landed) = landed {
        world.machines[rank].release(landed);
    }
    let Some(mut waiting) = request.reply_to else { return Ok(()) };
    let value = Inline::new(&answer(from, rank, id)).unwrap();
    match request.handler {
        ECHO => {
            world.machines[rank].reply(waiting, &Answer::Value(value)).map_err(|_| "no room")?
        }
        LATER => {
            world.machines[rank].defer(&mut waiting);
            stories[rank].unanswered.push((waiting, value));
        }
        _ => world.machines[rank].reply(waiting, &Answer::UnknownHandler).map_err(|_| "no room")?,
    }
    Ok(())
}

fn done(
    story: &mut Story,
    token: Token,
    result: Result<Inline, CallError>,
    world: &World<'_>,
    plan: Plan,
) -> Result<(), String> {
    let sent = story.under_way.remove(&token).ok_or("a call has ended twice")?;
    if let Some(block) = sent.block {
        match result {
            Err(CallError::Timeout) => {
                story.abandoned.insert(token, block);
            }
            _ => story.busy_user[block] = false,
        }
    }
    match result {
        Ok(value) if sent.handler == UNKNOWN => Err(format!("{value:?} from nowhere")),
        Ok(value) if value[8..] == answer(0, sent.to, sent.id)[8..] => Ok(()),
        Ok(_) => Err(format!("call {} to {} got another's reply", sent.id, sent.to)),
        Err(CallError::UnknownHandler { handler: UNKNOWN }) => Ok(()),
        Err(CallError::Timeout) if sent.limited => Ok(()),
        Err(CallError::PeerLost { .. }) if plan.kill && world.dead[sent.to] => Ok(()),
        Err(error) => Err(format!("call {} to {}: {error}", sent.id, sent.to)),
    }
}

/// The bytes of request `id`: 16 and `more`.
fn content(from: usize, to: usize, id: u64, more: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(more + 16);
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(&[from as u8, to as u8, 1, 2, 3, 4, 5, 6]);
    bytes.extend((0..more).map(|index| (index as u64 ^ id ^ from as u64) as u8));
    bytes
}

fn answer(from: usize, at: usize, id: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&(from as u64).to_le_bytes());
    bytes[8..16].copy_from_slice(&(at as u64).to_le_bytes());
    bytes[16..].copy_from_slice(&id.to_le_bytes());
    bytes
}

fn all(seeds: core::ops::Range<u64>, plan: Plan) {
    for seed in seeds {
        run(seed, plan).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn nothing_is_lost_doubled_or_reordered() {
    all(0..600, Plan::default());
}

#[test]
fn time_limits_end_calls_once() {
    all(600..800, Plan { time_limits: true, ..Plan::default() });
}

#[test]
fn a_death_ends_what_it_must_and_nothing_else() {
    all(800..1000, Plan { kill: true, time_limits: true, ..Plan::default() });
}

/// Whether one of these seeds finds the defect.
fn is_caught(mutant: &'static str, plan: Plan) -> bool {
    let plan = Plan { mutant: Some(mutant), ..plan };
    let quiet = std::panic::take_hook();
    std::panic::set_hook(std::boxed::Box::new(|_| {}));
    let caught = (0..200)
        .any(|seed| !matches!(catch_unwind(AssertUnwindSafe(|| run(seed, plan))), Ok(Ok(()))));
    std::panic::set_hook(quiet);
    caught
}

#[test]
fn planted_defects_are_caught() {
    let plain = Plan::default();
    let limits = Plan { time_limits: true, ..plain };
    for (mutant, plan) in [
        ("am_no_reply_reservation", plain),
        ("am_lap_ignored", plain),
        ("am_torn_forgotten", plain),
        ("am_words_unmasked", plain),
        ("am_early_credit", plain),
        ("am_generation_ignored", limits),
        ("am_timeout_frees_reply_cell", limits),
    ] {
        assert!(is_caught(mutant, plan), "{mutant} was not caught");
    }
}
