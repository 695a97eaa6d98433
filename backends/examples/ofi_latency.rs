//! How long a put, a get and a fetch-add of 8 bytes take over libfabric, one
//! after another: `ofi_latency target|origin PROVIDER SOURCE FOLDER [OPS
//! [event]]`.
//!
//! With `event` the completion queue has a descriptor to sleep on. The two sides
//! find each other by files in the folder. A put is over when it has landed
//! (delivery complete). The target polls; `ci/ofi_netns.sh` runs both, in
//! network namespaces of their own, beside the same work in C.

use std::path::Path;
use std::ptr::NonNull;
use std::time::Instant;
use tsumugi_backends::ofi::{OfiConfig, OfiDomain};
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::mem::{Access, LocalAddr, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind, Op};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [role, provider, source, folder, rest @ ..] = &args[..] else {
        eprintln!("ofi_latency target|origin PROVIDER SOURCE FOLDER [OPS [event]]");
        std::process::exit(2);
    };
    let ops = rest.first().map_or(2000, |ops| ops.parse().expect("a number of operations"));
    let (own, other) = if role == "target" { (1, 0) } else { (0, 1) };
    let config = OfiConfig {
        provider: Some(provider.clone()),
        source: Some(source.clone()),
        event: rest.get(1).is_some_and(|word| word == "event"),
        ..OfiConfig::default()
    };
    let domain = OfiDomain::open(&config, Rank(own), 2).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1);
    });
    let memory = vec![0u64; 1 << 18].leak();
    let base = NonNull::from(&mut *memory).cast();
    // SAFETY: leaked, and used as nothing but bytes.
    let region = unsafe { domain.register(base, 1 << 21, Access::ReadWrite) }.expect("a region");
    let folder = Path::new(folder);
    let mut card = region.key.to_bits().to_le_bytes().to_vec();
    card.extend(domain.card());
    publish(folder, own, &card);
    let theirs = find(folder, other);
    let (key, card) = theirs.split_at(4);
    let (key, card) = (u32::from_le_bytes(key.try_into().expect("4 bytes")), card.to_vec());
    domain.find(move |_, into| {
        into[..card.len()].copy_from_slice(&card);
        Some(card.len())
    });
    let mut endpoint = domain.endpoint();
    if own == 1 {
        let done = folder.join("done");
        while !done.exists() {
            for _ in 0..10_000 {
                endpoint.poll(&mut []);
            }
        }
        return;
    }
    let remote = |offset| RemoteAddr { rank: Rank(1), key: RegionKey::from_bits(key), offset };
    let local = LocalAddr { key: region.key, offset: 0 };
    measure(&mut endpoint, ops, "put", Op::put(local, remote(0), 8));
    measure(&mut endpoint, ops, "get", Op::get(remote(0), local, 8));
    measure(&mut endpoint, ops, "fetch-add", Op::atomic(Kind::FetchAdd, remote(8000), 1u64));
    assert_eq!(endpoint.failures().count, 0, "{:?}", endpoint.failures());
    std::fs::write(folder.join("done"), "").expect("a folder to write to");
}

fn measure(endpoint: &mut impl Endpoint, ops: usize, name: &str, op: Op) {
    let mut once = || {
        let (start, mut done) = (Instant::now(), [Completion::EMPTY]);
        while endpoint.post(&[op]) == 0 {
            endpoint.poll(&mut []);
        }
        while endpoint.poll(&mut done) == 0 {}
        done[0].result.expect("it works");
        start.elapsed().as_nanos() as u64
    };
    (0..50).for_each(|_| _ = once());
    let mut times: Vec<u64> = (0..ops).map(|_| once()).collect();
    times.sort_unstable();
    let at = |part: usize| times[ops * part / 100] as f64 / 1e3;
    println!("ours {name} min {:.2} p10 {:.2} p50 {:.2}", at(0), at(10), at(50));
}

/// A file that is there whole or not at all.
fn publish(folder: &Path, rank: u32, bytes: &[u8]) {
    let (draft, name) = (folder.join(format!("draft{rank}")), folder.join(format!("card{rank}")));
    std::fs::write(&draft, bytes).and_then(|()| std::fs::rename(draft, name)).expect("a folder");
}

fn find(folder: &Path, rank: u32) -> Vec<u8> {
    loop {
        if let Ok(bytes) = std::fs::read(folder.join(format!("card{rank}"))) {
            return bytes;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
