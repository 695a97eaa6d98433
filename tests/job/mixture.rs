//! Random messages between all ranks, checked against MPI's rules.
//!
//! Each rank draws the sends of all ranks in a round from the round's seed, so it knows
//! the messages that it must receive. Receives are drawn, too: source, tag, length and
//! kind of the buffer, and the time when a receive is posted or ended; between them are
//! probes. The messages that are left at the end of a round are received from any source.
//!
//! The rule: a receive takes, of the messages of one source, the first message sent that
//! fits its pattern and that no receive posted before it has taken.

// The crate `tsumugi`, under a name that the crate's own tests can use, too.
use super::api::comm::{Message, Receiving, Sending};
use super::api::{self, Comm, Error, MessageError, Rank, Received, Runtime, Source, Tags};
use std::collections::HashSet;
use tsumugi_conformance::Seeded;

/// One message of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    from: Rank,
    to: Rank,
    context: usize,
    tag: u32,
    bytes: usize,
    /// The number of the message among those of its sender in this round.
    number: usize,
}

/// A receive that has ended, in the order of posting.
#[derive(Debug)]
struct Taken {
    posted: usize,
    context: usize,
    source: Source,
    tags: Tags,
    message: Sent,
}

/// A buffer in the partition, or outside of it.
enum Memory {
    Inside(api::Buffer<u8>),
    Outside(Vec<u8>),
}

enum Posted<'a> {
    Inside(Receiving<'a, api::Buffer<u8>>),
    Outside(Receiving<'a, Vec<u8>>),
}

enum Begun<'a> {
    Inside(Sending<'a, api::Buffer<u8>>),
    Outside(Sending<'a, Vec<u8>>),
}

struct Wanted<'a> {
    posted: usize,
    context: usize,
    source: Source,
    tags: Tags,
    room: usize,
    handle: Posted<'a>,
}

/// Runs so many rounds, with seeds from `first` on. Collective.
pub fn play(rt: &Runtime, first: u64, rounds: u64) -> Result<(), Error> {
    let comm = rt.comm();
    let contexts = [comm.clone(), comm.duplicate()?];
    for seed in first..first + rounds {
        round(rt, &contexts, seed).map_err(|error| {
            Error::program(format_args!("{} in round {seed}: {error}", rt.rank()))
        })?;
        rt.barrier()?;
    }
    Ok(())
}

fn round(rt: &Runtime, contexts: &[Comm; 2], seed: u64) -> Result<(), Error> {
    let sent: Vec<Vec<Sent>> = rt.ranks().map(|from| draw_sends(seed, from, rt.size())).collect();
    let mut draw = Seeded(seed << 8 | u64::from(rt.rank().0) | 1 << 60);
    let mut due = [0; 2];
    for message in sent.iter().flatten().filter(|message| message.to == rt.rank()) {
        due[message.context] += 1;
    }
    let mut outgoing = sent[rt.rank().0 as usize].iter();
    let (mut sending, mut wanted, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    let mut posts = 0;
    for _ in 0..3 * MESSAGES {
        match draw.below(8) {
            0..3 => {
                if let Some(message) = outgoing.next() {
                    send(rt, &contexts[message.context], message, &mut draw, &mut sending)?;
                }
            }
            3..6 if wanted.len() < 8 => {
                wanted.push(post(rt, contexts, &mut draw, posts)?);
                posts += 1;
            }
            6 if !wanted.is_empty() => {
                // A wait could last for ever, so the receive is cancelled first.
                let at = draw.below(wanted.len() as u64) as usize;
                let one: Wanted<'_> = wanted.swap_remove(at);
                end(one, &sent, rt.rank(), &mut due, &mut taken)?;
            }
            _ => {
                let context = draw.below(2) as usize;
                let (source, tags) = draw_pattern(&mut draw, rt.size());
                if let Some(found) = contexts[context].try_probe(source, tags) {
                    assert!(fits(source, tags, found.source, found.tag), "{found:?}");
                }
            }
        }
    }
    for message in outgoing {
        send(rt, &contexts[message.context], message, &mut draw, &mut sending)?;
    }
    for one in wanted {
        end(one, &sent, rt.rank(), &mut due, &mut taken)?;
    }
    for (context, comm) in contexts.iter().enumerate() {
        while due[context] > 0 {
            let (source, tags) = (Source::Any, Tags::Any);
            let (received, bytes) = comm.recv_vec::<u8>(source, tags)?;
            due[context] -= 1;
            let message = identify(&sent, rt.rank(), context, received, &bytes);
            taken.push(Taken { posted: posts, context, source, tags, message });
            posts += 1;
        }
    }
    for one in sending {
        match one {
            Begun::Inside(handle) => drop(handle.wait()?),
            Begun::Outside(handle) => drop(handle.wait()?),
        }
    }
    check(&sent, rt.rank(), taken);
    Ok(())
}

fn send<'a>(
    rt: &Runtime,
    comm: &'a Comm,
    message: &Sent,
    draw: &mut Seeded,
    sending: &mut Vec<Begun<'a>>,
) -> Result<(), Error> {
    let memory = filled(rt, message, draw)?;
    let Sent { to, tag, .. } = *message;
    sending.push(match memory {
        Memory::Inside(bytes) => Begun::Inside(comm.isend(to, tag, bytes)?),
        Memory::Outside(bytes) => Begun::Outside(comm.isend(to, tag, bytes)?),
    });
    // The handles of some sends are dropped at once; the messages go all the same.
    if draw.below(4) == 0 {
        drop(sending.pop());
    }
    Ok(())
}

fn post<'a>(
    rt: &Runtime,
    contexts: &'a [Comm; 2],
    draw: &mut Seeded,
    posted: usize,
) -> Result<Wanted<'a>, Error> {
    let context = draw.below(2) as usize;
    let (source, tags) = draw_pattern(draw, rt.size());
    let room = if draw.below(4) == 0 { draw_bytes(draw) } else { BYTES_MAX };
    let comm = &contexts[context];
    let handle = match draw.below(3) {
        0 => Posted::Outside(comm.irecv(source, tags, vec![0; room])?),
        _ => Posted::Inside(comm.irecv(source, tags, rt.buffer(room)?)?),
    };
    Ok(Wanted { posted, context, source, tags, room, handle })
}

/// Cancels a receive and waits for it: it ends as cancelled, or with a message.
fn end(
    one: Wanted<'_>,
    sent: &[Vec<Sent>],
    own: Rank,
    due: &mut [usize],
    taken: &mut Vec<Taken>,
) -> Result<(), Error> {
    let Wanted { posted, context, source, tags, room, handle } = one;
    let (result, bytes) = match handle {
        Posted::Inside(handle) => {
            if !handle.is_done() {
                handle.cancel();
            }
            match handle.wait() {
                Ok((received, bytes)) => (Ok(received), bytes.to_vec()),
                Err(error) => (Err(error), Vec::new()),
            }
        }
        Posted::Outside(handle) => {
            if !handle.is_done() {
                handle.cancel();
            }
            match handle.wait() {
                Ok((received, bytes)) => (Ok(received), bytes),
                Err(error) => (Err(error), Vec::new()),
            }
        }
    };
    let message = match result {
        Ok(received) => identify(sent, own, context, received, &bytes),
        Err(MessageError::Cancelled) => return Ok(()),
        Err(MessageError::Truncated { source, tag, bytes, room: had }) => {
            assert!(had == room && bytes > room, "{bytes} bytes for {room}");
            // The content does not say which message of this length it was: any message
            // that the rule allows is right.
            Sent { from: source, to: own, context, tag, bytes, number: usize::MAX }
        }
        Err(error) => return Err(error.into()),
    };
    due[context] -= 1;
    taken.push(Taken { posted, context, source, tags, message });
    Ok(())
}

/// The message that was received, found by its whole content.
fn identify(
    sent: &[Vec<Sent>],
    own: Rank,
    context: usize,
    received: Received,
    bytes: &[u8],
) -> Sent {
    let Received { source, tag, bytes: len } = received;
    let theirs = sent[source.0 as usize].iter().filter(|message| message.to == own);
    let of_this =
        |message: &&Sent| message.context == context && message.tag == tag && message.bytes == len;
    let bytes = &bytes[..len];
    let is_it = |message: &&Sent| (0..len).all(|at| bytes[at] == content(message, at));
    // Several short messages may have the same content. Then any of them that the rule
    // allows is right.
    let alike: Vec<&Sent> = theirs.filter(of_this).filter(is_it).collect();
    assert!(!alike.is_empty(), "{received:?} has bytes that {source} has not sent");
    let number = if alike.len() == 1 { alike[0].number } else { usize::MAX };
    Sent { from: source, to: own, context, tag, bytes: len, number }
}

/// Checks that each receive has taken the message that the rule says.
fn check(sent: &[Vec<Sent>], own: Rank, mut taken: Vec<Taken>) {
    taken.sort_by_key(|one| one.posted);
    let mut gone = HashSet::new();
    for one in &taken {
        let from = one.message.from;
        let first = sent[from.0 as usize].iter().find(|message| {
            message.to == own
                && message.context == one.context
                && fits(one.source, one.tags, from, message.tag)
                && !gone.contains(&(from, message.number))
        });
        let first = first.unwrap_or_else(|| panic!("{one:?} took a message that was not sent"));
        let got = one.message;
        let same = first.tag == got.tag
            && first.bytes == got.bytes
            && (got.number == usize::MAX || got.number == first.number);
        assert!(same, "receive {one:?} should have taken {first:?}");
        gone.insert((from, first.number));
    }
    let due = sent.iter().flatten().filter(|message| message.to == own).count();
    assert_eq!(taken.len(), due, "messages that {own} received");
}

fn fits(source: Source, tags: Tags, from: Rank, tag: u32) -> bool {
    [Source::Any, Source::Is(from)].contains(&source) && [Tags::Any, Tags::Is(tag)].contains(&tags)
}

fn draw_sends(seed: u64, from: Rank, size: u32) -> Vec<Sent> {
    let mut draw = Seeded(seed << 8 | u64::from(from.0));
    let messages = draw.below(MESSAGES);
    let one = |number| Sent {
        from,
        to: Rank(draw.below(u64::from(size)) as u32),
        context: draw.below(2) as usize,
        tag: draw.below(TAGS) as u32,
        bytes: draw_bytes(&mut draw),
        number,
    };
    (0..messages as usize).map(one).collect()
}

fn draw_pattern(draw: &mut Seeded, size: u32) -> (Source, Tags) {
    let source = match draw.below(4) {
        0 => Source::Any,
        _ => Source::Is(Rank(draw.below(u64::from(size)) as u32)),
    };
    let tags = match draw.below(4) {
        0 => Tags::Any,
        _ => Tags::Is(draw.below(TAGS) as u32),
    };
    (source, tags)
}

/// A length; the lengths reach across all sizes at which the protocol of a message changes.
fn draw_bytes(draw: &mut Seeded) -> usize {
    let below = [1, 100, 300, 3000, 10_000, 20_000, BYTES_MAX as u64];
    let below = below[draw.below(below.len() as u64) as usize];
    draw.below(below) as usize
}

fn filled(rt: &Runtime, message: &Sent, draw: &mut Seeded) -> Result<Memory, Error> {
    let bytes = (0..message.bytes).map(|at| content(message, at));
    Ok(match draw.below(3) {
        0 => Memory::Outside(bytes.collect()),
        _ => {
            let mut buf = rt.buffer(message.bytes)?;
            buf.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
            Memory::Inside(buf)
        }
    })
}

fn content(message: &Sent, at: usize) -> u8 {
    let of = message.number * 31 + message.from.0 as usize * 7 + message.context;
    (of + at * 13 + (at >> 8)) as u8
}

const MESSAGES: u64 = 24;
const TAGS: u64 = 3;
const BYTES_MAX: usize = 40_000;
