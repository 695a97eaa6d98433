//! Joining a job whose other ranks are made up.

use super::*;
use crate::error::Error;
use tsumugi_backends::boot::Given;
use tsumugi_backends::boot::RankCard;
use tsumugi_backends::boot::card::CardHead;
use tsumugi_core::boot::Bootstrap;
use tsumugi_core::mem::Rank;

fn join<F>(boot: Given<F>) -> Error
where
    Given<F>: Bootstrap + 'static,
{
    let (space, network) = Default::default();
    let config = JobConfig { space: &space, network: &network, verbose: false };
    JoinedJob::join_with(Box::new(boot), &config).unwrap_err()
}

#[test]
fn ranks_of_other_nodes_are_counted_and_named() {
    // The peer's card states another node.
    let mut peers_turn = Vec::new();
    let head = CardHead { node: 1, ..CardHead::default() };
    let elsewhere = RankCard { head, host: "elsewhere".into(), network: vec![] };
    let elsewhere = elsewhere.to_bytes();
    let gather = move |own: &[u8], all: &mut [u8]| {
        let (mine, peer) = all.split_at_mut(own.len());
        mine.copy_from_slice(own);
        if own.len() == 4 {
            peer.copy_from_slice(&(elsewhere.len() as u32).to_le_bytes());
        } else {
            peers_turn.push(own.len());
            peer[..elsewhere.len()].copy_from_slice(&elsewhere);
        }
        true
    };
    let given = Given::new(Rank(0), 2, gather).unwrap();
    let error = join(given);
    let Error::SeveralNodes { ranks: 2, nodes: 2, hosts, .. } = &error else { panic!("{error}") };
    assert!(hosts.contains("elsewhere"), "{error}");
}

#[test]
fn a_broken_card_is_an_error_that_names_its_rank() {
    let gather = |own: &[u8], all: &mut [u8]| {
        all.chunks_mut(own.len()).for_each(|chunk| chunk.copy_from_slice(own));
        if own.len() > 4 {
            all[own.len()] = b'?';
        }
        true
    };
    let given = Given::new(Rank(0), 2, gather).unwrap();
    let error = join(given);
    assert!(matches!(error, Error::Card { rank: Rank(1), .. }), "{error}");
}
