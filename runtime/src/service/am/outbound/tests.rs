use super::*;
use tsumugi_core::op::Kind;

fn flight(agent: Agent) -> RemoteFlight {
    let key = RegionKey::new(1, 1).of(agent);
    let at = RemoteAddr { offset: 4, rank: Rank(0), key };
    let op = Op::atomic(Kind::FetchOr, at, 8u32);
    RemoteFlight { op, rest: Rest::Nothing, table: None }
}

/// The device has compare-and-swap, and a rival changes the word before the first one.
#[test]
fn an_atomic_that_the_device_lacks_goes_by_its_compare_and_swap() {
    let mut flight = flight(Agent::Device);
    let (mut word, mut rivals) = (5u64 << 32 | 1, 1);
    let mut result = Err(AddrError::Unsupported { addr: flight.op.remote });
    let mut turns = 0;
    while let Some(op) = flight.turn(&mut result) {
        (flight.op, turns) = (op, turns + 1);
        let found = word;
        match op.kind {
            Kind::CompareSwap if rivals > 0 => (word, rivals) = (word | 2 << 32, 0),
            Kind::CompareSwap if found == op.compare() => word = op.operand(),
            kind => assert_eq!(kind, Kind::GetWord),
        }
        result = Ok(if op.kind == Kind::CompareSwap && rivals == 0 && turns == 2 {
            word
        } else {
            found
        });
    }
    assert_eq!((result, word, turns), (Ok(7), 15 << 32 | 1, 3));
}

#[test]
fn an_error_ends_the_compare_and_swap_loop() {
    let mut of_cpu = flight(Agent::Cpu);
    let unsupported = Err(AddrError::Unsupported { addr: of_cpu.op.remote });
    let mut result = unsupported;
    assert!(of_cpu.turn(&mut result).is_none() && result == unsupported);
    let (mut flight, mut result) = (flight(Agent::Device), unsupported);
    assert!(flight.turn(&mut result).is_some());
    let lost = Err(AddrError::PeerLost { rank: Rank(0) });
    result = lost;
    assert!(flight.turn(&mut result).is_none() && result == lost);
}
