//! Compares the distributed search with the serial one, on ranks that are threads.

use super::*;
use crate::graph::Csr;
use tsumugi_core::random::SplitMix64;

fn levels(csr: &Csr, from: u32, ranks: u32, ults: u32) -> Vec<u32> {
    let answers = tsumugi::run_ranks(ranks, |rt: &Runtime| {
        let first = rt.rank() == Rank(0);
        let spread = Arc::new(Spread::new(rt, first.then_some(csr))?);
        GraphSearch::new(rt, &spread, ults)?.run(first.then_some(from), |_| ())?;
        let found = spread.gather(rt)?;
        rt.barrier()?;
        Ok::<_, Error>(found)
    });
    let answers = answers.unwrap();
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    answers.into_iter().next().unwrap()
}

fn random(vertices: u32, edges: usize, seed: u64) -> Csr {
    let mut random = SplitMix64::new(seed);
    let mut end = || random.below(vertices.into()) as u32;
    Csr::new(vertices, (0..edges).map(|_| (end(), end())).collect())
}

#[test]
fn levels_agree_with_the_serial_search_on_random_graphs() {
    for seed in 0..8 {
        let csr = random(300, 400, seed);
        for (ranks, ults) in [(1, 1), (2, 3), (4, 300), (7, 1)] {
            let found = levels(&csr, 5, ranks, ults);
            assert_eq!(found, csr.levels(5), "seed {seed}, {ranks} ranks x {ults}");
        }
    }
}

#[test]
fn a_row_longer_than_a_buffer_and_a_long_path_are_searched() {
    let star: Vec<_> = (1..1000).map(|leaf| (0, leaf)).collect();
    let star = Csr::new(1000, star);
    assert_eq!(levels(&star, 7, 3, 2), star.levels(7));
    let path = Csr::new(60, (0..59).map(|v| (v, v + 1)).collect());
    assert_eq!(levels(&path, 59, 3, 2), path.levels(59));
}

#[test]
fn a_lonely_vertex_reaches_itself() {
    let csr = Csr::new(3, vec![(0, 1)]);
    assert_eq!(levels(&csr, 2, 4, 2), [UNREACHED, UNREACHED, 0]);
    assert_eq!(levels(&Csr::new(1, vec![]), 0, 2, 1), [0]);
}

#[test]
fn the_last_progress_is_the_number_of_reached_vertices() {
    let csr = random(200, 600, 1);
    let expected = csr.levels(0).iter().filter(|level| **level != UNREACHED).count() as u64;
    let most = Arc::new(AtomicU64::new(0));
    let ended = tsumugi::run_ranks(2, |rt: &Runtime| {
        let first = rt.rank() == Rank(0);
        let spread = Arc::new(Spread::new(rt, first.then_some(&csr))?);
        let most = most.clone();
        let tell = move |so_far| {
            most.fetch_max(so_far, Ordering::Relaxed);
        };
        GraphSearch::new(rt, &spread, 2)?.run(first.then_some(0), tell)
    });
    ended.unwrap();
    assert_eq!(most.load(Ordering::Relaxed), expected);
}
