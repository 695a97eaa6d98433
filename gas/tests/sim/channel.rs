//! Messages of all lengths, through rings that are shorter than most of them.

use super::rank::{Party, Room, Sizes};
use super::*;
use std::slice;
use tsumugi_core::mem::Region;
use tsumugi_core::sim::{Actor, Net, SimEvent as Told, SimNode, check};
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_core::time::Instant;
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::channel::{Channel, ReceivedPart, Receiver, Sender};
use tsumugi_gas::order::After;
use tsumugi_gas::request::WordRequest;

const MESSAGES: u64 = 12;
const LONGEST: u64 = 500;

/// The byte at `index` of message `number`.
fn byte(number: u64, index: u64) -> u8 {
    (number * 37 + index * 11 + 5) as u8
}

enum End<'n> {
    Sends { sender: Sender, source: (Region, GlobalAddr), head: Region, next: u64 },
    Receives { receiver: Receiver<'n>, next: u64, got: Vec<u8>, report: Option<WordRequest> },
}

struct Program<'n> {
    party: Party<'n>,
    end: End<'n>,
    lengths: Vec<u64>,
    draw: Seeded,
}

impl Program<'_> {
    fn go_on(&mut self) {
        let node = self.party.node;
        match &mut self.end {
            End::Sends { sender, source, head, next } => loop {
                let head = node.load(head.key, 0).unwrap();
                match sender.advance(&mut self.party.machine, head) {
                    Ok(true) if *next < MESSAGES && sender.has_sent(&self.party.machine) => {}
                    _ => break,
                }
                let bytes = self.lengths[*next as usize];
                for word in 0..LONGEST.div_ceil(8) {
                    let bytes = [0, 1, 2, 3, 4, 5, 6, 7].map(|index| byte(*next, word * 8 + index));
                    node.store(source.0.key, word * 8, u64::from_le_bytes(bytes)).unwrap();
                }
                assert!(sender.try_send(source.1, bytes));
                *next += 1;
            },
            End::Receives { receiver, next, got, report } => loop {
                let mut buffer = vec![0; 1 + self.draw.below(100) as usize];
                if report.is_none() {
                    *report = receiver.poll_report();
                }
                if let Some(word) = *report
                    && self.party.machine.try_issue(word.into(), After::Nothing).is_ok()
                {
                    *report = None;
                }
                let Some(received) = receiver.try_receive(&mut buffer) else { break };
                match received {
                    ReceivedPart::Part(bytes) => got.extend(&buffer[..bytes]),
                    ReceivedPart::End(bytes) => {
                        got.extend(&buffer[..bytes]);
                        let wanted = (0..self.lengths[*next as usize]).map(|at| byte(*next, at));
                        assert_eq!(*got, wanted.collect::<Vec<u8>>(), "message {next}");
                        got.clear();
                        *next += 1;
                    }
                }
            },
        }
        self.party.pump();
        self.party.outs.clear();
    }
}

impl Actor for Program<'_> {
    fn on_event(&mut self, _: &SimNode<'_>, event: Told) {
        self.party.on_event(event);
        self.go_on();
    }
}

fn run(seed: u64) {
    let net = Net::new(config(2, seed));
    let mut draw = Seeded(seed);
    let mut sizes = Sizes::new(2);
    sizes.shape.own_jobs = 2 + draw.below(16) as u32;
    let mut rooms: Vec<Room> = (0..2).map(|_| Room::new(&sizes)).collect();
    let mut parties: Vec<Party<'_>> = rooms
        .iter_mut()
        .enumerate()
        .map(|(rank, room)| Party::new(&net, rank as u32, &sizes, room))
        .collect();
    let bytes = 64 << draw.below(3);
    let ring = parties[1].open(Channel::ring_size(bytes));
    let head = parties[0].open(8);
    let source = parties[0].open(LONGEST.next_multiple_of(8));
    let channel = Channel::new(sizes.split, ring.1, head.1, bytes);
    let base = ring.0.base.cast::<AtomicU64>();
    let len = Channel::ring_size(bytes) as usize / 8;
    // SAFETY: the network's, as long as it; only ever atomics and bytes.
    let words = unsafe { slice::from_raw_parts(base.as_ptr(), len) };
    let lengths: Vec<u64> = (0..MESSAGES).map(|_| draw.below(LONGEST + 1)).collect();
    let ends = [
        End::Sends { sender: channel.sender(), source, head: head.0, next: 0 },
        End::Receives { receiver: channel.receiver(words), next: 0, got: Vec::new(), report: None },
    ];
    let mut programs: Vec<Program<'_>> = parties
        .into_iter()
        .zip(ends)
        .map(|(party, end)| Program { party, end, lengths: lengths.clone(), draw: Seeded(seed) })
        .collect();
    net.start(&mut programs);
    programs.iter_mut().for_each(Program::go_on);
    net.run_until(Instant::from_ns(200_000_000), &mut programs);
    let End::Receives { next, .. } = programs[1].end else { unreachable!() };
    assert_eq!(next, MESSAGES, "not all messages that were sent were received");
}

#[test]
fn messages_come_whole_and_in_order() {
    check(SEEDS, run);
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    assert_caught(&["gas_channel_unordered"], run);
}
