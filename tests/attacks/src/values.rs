//! Types, counts and indices that a typed call does not expect.

use crate::Attack;
use std::fmt::Debug;
use tsumugi::array::{ArrayOptions, Distribution};
use tsumugi::{
    AddrError, Buffer, Busy, Config, Error, MessageError, Outcome, Path, Plain, Rank, Runtime,
    Source,
};

pub const ALL: &[Attack] = &[
    ("receive_values_of_no_size", receive_values_of_no_size),
    ("values_of_any_type", values_of_any_type),
    ("more_than_there_can_be", more_than_there_can_be),
    ("indices_that_wrap", indices_that_wrap),
    ("configurations_that_wrap", configurations_that_wrap),
];

/// A message of 7 bytes for a receiver whose values have no size.
fn receive_values_of_no_size() {
    let ends = tsumugi::run_ranks(2, |rt| {
        let comm = rt.comm();
        if rt.rank() == Rank(0) {
            comm.send(Rank(1), 2, &[1u8; 7])?;
            return Ok(None);
        }
        Ok::<_, Error>(Some(comm.recv_vec::<[u64; 0]>(Rank(0), 2).map(|(_, values)| values.len())))
    });
    let ends = ends.expect("both ranks end");
    assert!(
        matches!(ends[1], Some(Err(MessageError::Uneven { .. }))),
        "the receive ends with {:?}",
        ends[1]
    );
}

/// Every typed call on values of size zero, of one word, of an odd size, of a wide
/// alignment and of many cache lines, in counts from zero to many, on all paths.
fn values_of_any_type() {
    all_ways(|rt| {
        all_calls(rt, |_| [0u64; 0])?;
        all_calls(rt, |n| n as u8)?;
        all_calls(rt, |n| n as u16)?;
        all_calls(rt, |n| n as f64)?;
        all_calls(rt, |n| [n as u8, 1, 2])?;
        all_calls(rt, |n| [n as u32; 3])?;
        all_calls(rt, |n| n as u128)?;
        all_calls(rt, |n| [[n as u16; 5]; 7])?;
        all_calls(rt, |n| [n as u64; 600])?;
        in_arrays(rt, |n| n as u8)?;
        in_arrays(rt, |n| [n as u8, 1, 2])?;
        in_arrays(rt, |n| [n as u64; 600])
    });
}

pub fn all_ways(main: impl Fn(&Runtime) -> Result<(), Error> + Sync) {
    for path in [Path::Direct, Path::Delegate, Path::Offload] {
        let config = Config::from_env().expect("an environment without errors").path(path);
        config.run_ranks(2, &main).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
}

pub fn all_calls<T: Plain + PartialEq + Debug>(
    rt: &Runtime,
    make: impl Fn(usize) -> T + Copy,
) -> Result<(), Error> {
    for count in [0, 1, 7, 1000] {
        one_sided(rt, count, make)?;
        messages(rt, count, make)?;
        global(rt, count, make)?;
    }
    Ok(())
}

pub fn values<T>(count: usize, make: impl Fn(usize) -> T) -> Vec<T> {
    (0..count).map(make).collect()
}

fn one_sided<T: Plain + PartialEq + Debug>(
    rt: &Runtime,
    count: usize,
    make: impl Fn(usize) -> T + Copy,
) -> Result<(), Error> {
    let peer = Rank(1 - rt.rank().0);
    let (there, window) = (rt.share::<T>(count)?, rt.window::<T>(count)?);
    let given = values(count, |n| make(n + 1));
    let blank = values(count, |_| make(0));
    rt.put_slice(there.at(peer, 0), &given)?;
    window.put(peer, 0, &given)?;
    window.fence()?;
    let mut taken = blank.clone();
    rt.get_slice(there.at(rt.rank(), 0), &mut taken)?;
    assert_eq!(taken, given);
    taken = blank.clone();
    window.get_slice(rt.rank(), 0, &mut taken)?;
    assert_eq!(taken, given);
    for (index, value) in given.iter().enumerate().take(8) {
        assert_eq!(rt.get(there.at(peer, index))?, *value);
        assert_eq!(window.get(peer, index)?, *value);
        rt.put(there.at(peer, index), *value)?;
    }
    let past = rt.get(there.at(peer, count));
    assert!(size_of::<T>() == 0 || matches!(past, Err(AddrError::OutOfRange { .. })), "{past:?}");
    let mut longer = values(count + 1, make);
    let past = rt.get_slice(there.at(peer, 0), &mut longer);
    assert!(size_of::<T>() == 0 || matches!(past, Err(AddrError::OutOfRange { .. })), "{past:?}");
    // After the barrier, the peer has read its values, and they may change.
    rt.barrier()?;
    // Operations that own their buffer until they end.
    let begin = |get: bool, buf: Buffer<T>| {
        let (ops, from) = (rt.ops(), there.at(peer, 0));
        let mut operation = if get { ops.get_buffer(from, buf) } else { ops.put_buffer(from, buf) };
        loop {
            match operation.try_begin() {
                Ok(begun) => {
                    let Outcome { result, buf } = begun.wait();
                    break result.map(|_| buf);
                }
                Err(Busy { operation: back, .. }) => operation = back,
            }
            tsumugi::ult::yield_now();
        }
    };
    let mut buf = begin(true, rt.buffer::<T>(count)?)?;
    assert_eq!(buf[..], given[..]);
    buf.reverse();
    let buf = begin(false, buf)?;
    let back = tsumugi::ult::block_on(
        rt.ops().get_buffer(there.at(peer, 0), rt.buffer(count)?).into_future(),
    );
    back.result?;
    assert_eq!(back.buf[..], buf[..]);
    let put = tsumugi::ult::block_on(rt.ops().put_buffer(there.at(peer, 0), buf).into_future());
    put.result?;
    let refused = rt.ops().get_buffer(there.at(Rank(9), 0), put.buf).wait().result;
    assert!(matches!(refused, Err(AddrError::NoSuchRank { .. })), "{refused:?}");
    rt.barrier()
}

fn messages<T: Plain + PartialEq + Debug>(
    rt: &Runtime,
    count: usize,
    make: impl Fn(usize) -> T + Copy,
) -> Result<(), Error> {
    let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
    let (given, mut taken) = (values(count, |n| make(n + 1)), values(count, |_| make(0)));
    let received = comm.send_recv(peer, 1, &given, peer, 1, &mut taken)?;
    assert_eq!((received.bytes, &taken), (size_of_val(&given[..]), &given));
    let sending = comm.isend(peer, 2, given.clone())?;
    let (received, vec) = comm.recv_vec::<T>(peer, 2)?;
    assert!(received.bytes == size_of_val(&given[..]));
    if size_of::<T>() > 0 {
        assert_eq!(vec, given);
        assert_eq!(received.values::<T>(), Some(count));
    }
    assert_eq!(sending.wait()?, given);
    let receiving = comm.irecv(peer, 3, values(count, |_| make(0)))?;
    let mut buf = rt.buffer::<T>(count)?;
    buf.copy_from_slice(&given);
    let sending = comm.isend(peer, 3, buf)?;
    comm.wait_all(&[&sending, &receiving]);
    assert_eq!(sending.wait()?[..], given[..]);
    assert_eq!(receiving.wait()?.1, given);
    // The sender's type differs from the receiver's.
    let sending = comm.isend(peer, 4, vec![1u8; 7])?;
    let odd = comm.recv_vec::<T>(Source::Any, 4);
    let fits = size_of::<T>() > 0 && 7usize.is_multiple_of(size_of::<T>());
    assert!(fits == odd.is_ok(), "{odd:?}");
    sending.wait()?;
    Ok(())
}

fn global<T: Plain + PartialEq + Debug>(
    rt: &Runtime,
    count: usize,
    make: impl Fn(usize) -> T + Copy,
) -> Result<(), Error> {
    let global = rt.global()?;
    let own = global.expose::<T>(count)?;
    let first = own.at(0).addr();
    let there = global.tell(first)?;
    let peer = global.pointer::<T>(there[1 - rt.rank().0 as usize].to_bits());
    let given = values(count, |n| make(n + 1));
    let mut taken = values(count, |_| make(0));
    let put = global.put_slice(peer, &given);
    assert!(put.is_ok() || first.to_bits() == 0 || size_of_val(&given[..]) == 0, "{put:?}");
    rt.barrier()?;
    if put.is_ok() {
        global.get_slice(own.at(0), &mut taken)?;
        assert_eq!(taken, given);
        for count in [count + 1, 1 << 40, usize::MAX] {
            let copied = global.copy(own.at(0), peer, count);
            assert!(copied.is_err() || size_of::<T>() == 0, "{count} values were copied");
        }
        let past = global.get(own.at(usize::MAX));
        assert!(past.is_err() || size_of::<T>() == 0, "{past:?}");
    }
    rt.barrier()
}

fn in_arrays<T: Plain + PartialEq + Debug>(
    rt: &Runtime,
    make: impl Fn(usize) -> T + Copy,
) -> Result<(), Error> {
    let none = ArrayOptions::new();
    for options in [none.page_len(0), none.known(0), none.room(0)] {
        assert!(options.create::<T>(rt, 21).is_err(), "{options:?}");
    }
    for options in [none, none.page_len(1), none.page_len(7)] {
        let array = options.create::<T>(rt, 21)?;
        let given = values(21, |n| make(n + 1));
        if rt.rank() == Rank(0) {
            array.put_slice(0, &given)?;
        }
        rt.barrier()?;
        array.acquire();
        assert_eq!(array.checkout(0..21, tsumugi::array::Read)?[..], given[..]);
        assert_eq!(array.get(20)?, given[20]);
        assert!(array.get(21).is_err() && array.get(usize::MAX).is_err());
        assert!(array.get_slice(20, &mut values(2, make)).is_err());
        assert!(array.checkout(20..usize::MAX, tsumugi::array::Read).is_err());
        rt.barrier()?;
    }
    Ok(())
}

/// Counts for which there cannot be memory. Each call is refused.
fn more_than_there_can_be() {
    all_ways(|rt| {
        let global = rt.global()?;
        for count in [1 << 40, 1 << 60, 1 << 61, (1 << 61) + 1, usize::MAX / 8, usize::MAX] {
            let refused = |what: &str, error: Option<Error>| {
                assert!(error.is_some(), "{what} of {count:#x}");
            };
            refused("expose", rt.expose::<u64>(count).err());
            refused("expose", rt.expose::<[u64; 1 << 20]>(count).err());
            refused("buffer", rt.buffer::<u64>(count).err());
            refused("buffer", rt.buffer::<[u8; 3]>(count).err());
            refused("share", rt.share::<u64>(count).err());
            refused("window", rt.window::<u64>(count).err());
            refused("global", global.expose::<u64>(count).err());
            refused("pool", global.pool(count as u64).err());
            refused("arrays", rt.arrays(count).err());
            refused("array", rt.array::<u64>(count).err());
            for page_len in [1, 1 << 20, 1 << 37, 1 << 61, usize::MAX] {
                for first in [Distribution::Block, Distribution::Cyclic] {
                    let options =
                        ArrayOptions::new().page_len(page_len).distribution(first).room(4).known(4);
                    let array = options.create::<u64>(rt, count);
                    // An array with few frames can be made if no page is used. Its last
                    // element has no frame.
                    if let Ok(array) = array {
                        assert!(array.checkout(count - 1..count, tsumugi::array::Write).is_err());
                    }
                }
            }
        }
        // Values of no size have room everywhere.
        assert_eq!(rt.expose::<[u64; 0]>(usize::MAX)?.len(), usize::MAX);
        assert_eq!(rt.buffer::<[u64; 0]>(usize::MAX)?.len(), usize::MAX);
        rt.barrier()
    });
}

/// No index is in range, and none wraps around to a valid one.
fn indices_that_wrap() {
    // An address has no room for an index between these two.
    const KEPT: usize = 1 << 62;
    const UNKEPT: usize = KEPT.wrapping_neg() + 1;
    all_ways(|rt| {
        let (shared, window) = (rt.share::<u64>(8)?, rt.window::<u64>(8)?);
        let (exposed, own) = (rt.expose::<u64>(8)?, rt.rank());
        let global = rt.global()?;
        let block = global.expose::<u64>(8)?;
        let is_refused = |result: Result<(), AddrError>| {
            let is_named = matches!(
                result,
                Err(AddrError::OutOfRange { addr, .. }) if addr.offset >= 64
            );
            assert!(is_named, "{result:?}");
        };
        let is_told = |result: Result<u64, AddrError>, index: usize| {
            let told = result.unwrap_err().to_string();
            let named = match index {
                0..KEPT | UNKEPT.. => format!("index {index},"),
                _ => "an index from 2^62 to 2^64 - 2^62".to_owned(),
            };
            assert!(index < 1 << 60 || told.contains(&named), "{told}: {named}");
        };
        for index in [8, 1 << 60, 1 << 61, (1 << 61) + 7, (3 << 61) + 1, usize::MAX - 2, usize::MAX]
        {
            is_told(rt.get(shared.at(own, index)), index);
            is_told(window.get(own, index), index);
            is_told(rt.get(exposed.at(index)), index);
            is_told(rt.fetch_add(shared.at(own, 1).add(index as u64), 1), index);
            for at in [shared.at(own, index), exposed.at(index), window.at(own, index)] {
                is_refused(rt.put(at, 42));
                is_refused(rt.put_slice(at, &[42; 3]));
                is_refused(rt.get(at).map(drop));
                is_refused(rt.fetch_add(at, 1).map(drop));
                is_refused(rt.wait_until(at, tsumugi::Until::Equal(0)).map(drop));
            }
            is_refused(window.put(own, index, &[42]));
            is_refused(window.get(own, index).map(drop));
            is_refused(rt.put(shared.at(own, 1).add(index as u64), 42));
            is_refused(rt.put(shared.at(own, 1).add(index as u64).add(index as u64), 42));
            assert!(global.put(block.at(index), 42).is_err());
            is_refused(rt.put(block.remote(index), 42));
        }
        is_refused(rt.put(shared.at(own, 1).add(u64::MAX), 42));
        for index in 0..8 {
            assert_eq!(rt.get(shared.at(own, index))? + rt.get(exposed.at(index))?, 0);
            assert_eq!(window.get(own, index)?, 0);
        }
        rt.barrier()
    });
}

/// Each size is refused before a sum of sizes overflows.
fn configurations_that_wrap() {
    for bytes in [1 << 50, 1 << 62, usize::MAX / 2 + 1, usize::MAX - 4095, usize::MAX] {
        for field in 0..5 {
            let mut config = Config::from_env().expect("an environment without errors");
            let space = &mut config.space;
            match field {
                0 => space.base = Some(bytes),
                1 => space.starter_bytes = bytes,
                2 => space.exposed_bytes = bytes,
                3 => space.heap_bytes = bytes,
                _ => space.stack_bytes = bytes,
            }
            let ran = config.run_ranks(2, |rt| rt.barrier());
            assert!(matches!(ran, Err(Error::Space(_))), "field {field} of {bytes:#x}: {ran:?}");
        }
    }
    let config = Config::from_env().expect("an environment without errors").workers(usize::MAX);
    assert_eq!(config.choose(4096).workers, usize::MAX);
}
