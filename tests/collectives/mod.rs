//! A program of collectives, of which each rank checks the results: of a group of any
//! ranks, on one node or several.

use super::api::deferred::Begin;
use super::api::group::{And, Commuting, Group, Max, Min, Or, Prod, Sum, Xor};
use super::api::{Deferred, Error, Plain, Runtime, Status};

/// All collectives, on the group of all ranks and on groups that are split from it.
pub fn play(rt: &Runtime, lens: &[usize]) -> Result<(), Error> {
    let world = rt.world();
    for len in lens {
        on(&world, *len)?;
        begun(&world, *len)?;
    }
    // Even and odd places, in the opposite order; the third of three has no group.
    let color = world.rank() % 2;
    let key = -i64::from(world.rank());
    let half = world.split(Some(color), key)?.expect("a color");
    let mine = (0..world.size()).rev().filter(|member| member % 2 == color);
    let members: Vec<u32> = (0..half.size()).map(|at| half.translate(at).unwrap().0).collect();
    assert!(members.iter().copied().eq(mine), "{members:?}");
    assert_eq!(half.translate(half.size()), None);
    assert_eq!(half.place_of(rt.rank()), Some(half.rank()));
    let some = world.split((world.rank() != 2).then_some(7), 0)?;
    assert_eq!(some.is_none(), world.rank() == 2);
    for len in lens.iter().take(2) {
        on(&half, *len)?;
        if let Some(some) = &some {
            on(some, *len)?;
            begun(some, *len)?;
        }
    }
    // Numbers of groups are used again.
    for _ in 0..100 {
        drop(world.duplicate()?);
    }
    let twin = half.duplicate()?;
    let one = start(half.ops().allreduce(vec![1u32], Sum));
    let other = start(twin.ops().allreduce(vec![2], Sum));
    assert_eq!(other.wait()?, [2 * half.size()]);
    assert_eq!(one.wait()?, [half.size()]);
    world.barrier()
}

/// The value number `at` of a member.
fn value(member: u32, at: usize) -> u64 {
    (u64::from(member) + 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (at as u64) << 7
}

fn values(member: u32, len: usize) -> Vec<u64> {
    (0..len).map(|at| value(member, at)).collect()
}

/// Two affine functions of 32 bits, one after the other: this does not commute.
fn compose(left: [u32; 2], right: [u32; 2]) -> [u32; 2] {
    let [a, b] = left;
    [a.wrapping_mul(right[0]), a.wrapping_mul(right[1]).wrapping_add(b)]
}

fn affine(member: u32, at: usize) -> [u32; 2] {
    [2 * member + 3, member ^ at as u32]
}

fn folded<T: Plain>(
    of: impl Iterator<Item = u32>,
    len: usize,
    value: impl Fn(u32, usize) -> T,
    f: impl Fn(T, T) -> T,
) -> Vec<T> {
    let members: Vec<u32> = of.collect();
    let each = |at| members.iter().map(|member| value(*member, at)).reduce(&f);
    (0..len).filter_map(each).collect()
}

fn on(group: &Group, len: usize) -> Result<(), Error> {
    let (me, size) = (group.rank(), group.size());
    let all = || 0..size;
    for root in [0, size / 2, size - 1] {
        let mut data = if me == root { values(root, len) } else { vec![0; len] };
        group.broadcast(&mut data, root)?;
        assert_eq!(data, values(root, len), "broadcast of {len} from {root}");
        let mut data = values(me, len);
        group.reduce(&mut data, root, Sum)?;
        let expected = folded(all(), len, value, u64::wrapping_add);
        assert_eq!(data, if me == root { expected } else { values(me, len) }, "reduce to {root}");
        let mut data: Vec<_> = (0..len).map(|at| affine(me, at)).collect();
        group.reduce(&mut data, root, compose)?;
        assert!(me != root || data == folded(all(), len, affine, compose), "ordered to {root}");
        let gathered = group.gather(&values(me, len), root)?;
        let whole: Vec<u64> = all().flat_map(|member| values(member, len)).collect();
        assert_eq!(gathered, if me == root { &whole[..] } else { &[] }, "gather to {root}");
        let mut part = vec![0; len];
        group.scatter(if me == root { &whole } else { &[] }, &mut part, root)?;
        assert_eq!(part, values(me, len), "scatter from {root}");
        let counts: Vec<usize> = all().map(|member| (member as usize * 7 + len) % 5).collect();
        let mine = counts[me as usize];
        let whole: Vec<u64> =
            all().flat_map(|member| values(member, counts[member as usize])).collect();
        let gathered = group.gather_v(&values(me, mine), &counts, root)?;
        assert_eq!(gathered, if me == root { &whole[..] } else { &[] }, "gather_v to {root}");
        let mut part = vec![0; mine];
        group.scatter_v(&gathered, &counts, &mut part, root)?;
        assert_eq!(part, values(me, mine), "scatter_v from {root}");
        assert_eq!(group.allgather_v(&values(me, mine), &counts)?, whole, "allgather_v");
    }
    group.barrier()?;
    let mut data = values(me, len);
    group.allreduce(&mut data, Sum)?;
    assert_eq!(data, folded(all(), len, value, u64::wrapping_add), "allreduce of {len}");
    let mut data: Vec<_> = (0..len).map(|at| affine(me, at)).collect();
    group.allreduce(&mut data, compose)?;
    assert_eq!(data, folded(all(), len, affine, compose), "ordered allreduce of {len}");
    let mut data = values(me, len);
    group.allreduce(&mut data, Commuting(|a: u64, b: u64| a ^ b))?;
    assert_eq!(data, folded(all(), len, value, |a, b| a ^ b));
    macro_rules! each {
        ($($op:ident => $f:expr),*) => {$(
            let mut one = [value(me, 0)];
            group.allreduce(&mut one, $op)?;
            assert_eq!(one[..], folded(all(), 1, value, $f), stringify!($op));
        )*};
    }
    each!(Min => u64::min, Max => u64::max, And => |a, b| a & b, Or => |a, b| a | b,
        Xor => |a, b| a ^ b, Prod => u64::wrapping_mul);
    let mut float = [f64::from(me) / 3.0];
    group.allreduce(&mut float, Sum)?;
    assert!(group.allgather(&float)?.iter().all(|other| other.to_bits() == float[0].to_bits()));

    let mut data: Vec<_> = (0..len).map(|at| affine(me, at)).collect();
    group.scan(&mut data, compose)?;
    assert_eq!(data, folded(0..me + 1, len, affine, compose), "scan of {len}");
    let mut data: Vec<_> = (0..len).map(|at| affine(me, at)).collect();
    group.exscan(&mut data, compose)?;
    let lower = folded(0..me.max(1), len, affine, compose);
    assert_eq!(data, lower, "exscan of {len}");

    let whole: Vec<u64> = all().flat_map(|member| values(member, len)).collect();
    assert_eq!(group.allgather(&values(me, len))?, whole, "allgather of {len}");
    let block = |from: u32, to: u32, len| values(from * 1000 + to, len);
    let sent: Vec<u64> = all().flat_map(|to| block(me, to, len)).collect();
    let come: Vec<u64> = all().flat_map(|from| block(from, me, len)).collect();
    assert_eq!(group.alltoall(&sent)?, come, "alltoall of {len}");
    let count = |from: u32, to: u32| ((from * 3 + to * 5) as usize + len) % 4;
    let sent: Vec<u64> = all().flat_map(|to| block(me, to, count(me, to))).collect();
    let come: Vec<u64> = all().flat_map(|from| block(from, me, count(from, me))).collect();
    let (to, from): (Vec<_>, Vec<_>) = all().map(|peer| (count(me, peer), count(peer, me))).unzip();
    assert_eq!(group.alltoall_v(&sent, &to, &from)?, come, "alltoall_v of {len}");

    let total = len * size as usize;
    let sums = folded(all(), total, value, u64::wrapping_add);
    let own = me as usize * len..(me as usize + 1) * len;
    assert_eq!(group.reduce_scatter(&values(me, total), Sum)?, sums[own.clone()]);
    let mine: Vec<_> = (0..total).map(|at| affine(me, at)).collect();
    let ordered = folded(all(), total, affine, compose);
    assert_eq!(group.reduce_scatter(&mine, compose)?, ordered[own]);
    let counts: Vec<usize> = all().map(|member| (member as usize + len) % 3).collect();
    let total = counts.iter().sum();
    let before: usize = counts[..me as usize].iter().sum();
    let own = before..before + counts[me as usize];
    let sums = folded(all(), total, value, u64::wrapping_add);
    assert_eq!(group.reduce_scatter_v(&values(me, total), &counts, Sum)?, sums[own]);
    Ok(())
}

/// Several collectives at once, which end in any order.
fn begun(group: &Group, len: usize) -> Result<(), Error> {
    let (me, size, ops) = (group.rank(), group.size(), group.ops());
    let all = || 0..size;
    let (root, total) = (size / 2, len * size as usize);
    let at_root = |len: usize| vec![0; if me == root { len } else { 0 }];
    let barrier = start(ops.barrier());
    let broadcast = start(ops.broadcast(values(me, len), root));
    let sum = start(ops.allreduce(values(me, len), Sum));
    let reduced = start(ops.reduce(values(me, len), root, Sum));
    let affine_values = || (0..len).map(|at| affine(me, at)).collect::<Vec<_>>();
    let scanned = start(ops.scan(affine_values(), compose));
    let lower = start(ops.exscan(affine_values(), compose));
    let gathered = start(ops.gather(values(me, len), at_root(total), root));
    let whole: Vec<u64> = all().flat_map(|member| values(member, len)).collect();
    let given = if me == root { whole.clone() } else { Vec::new() };
    let scattered = start(ops.scatter(given, vec![0; len], root));
    let everything = start(ops.allgather(values(me, len), vec![0; total]));
    let block = |from: u32, to: u32, len| values(from * 1000 + to, len);
    let sent: Vec<u64> = all().flat_map(|to| block(me, to, len)).collect();
    let exchanged = start(ops.alltoall(sent, vec![0; total]));
    let parts = start(ops.reduce_scatter(values(me, total), vec![0; len], Sum));
    // Blocks of any lengths.
    let counts: Vec<usize> = all().map(|member| (member as usize * 7 + len) % 5).collect();
    let (mine, sum_of) = (counts[me as usize], counts.iter().sum());
    let whole_v: Vec<u64> =
        all().flat_map(|member| values(member, counts[member as usize])).collect();
    let gathered_v = start(ops.gather_v(values(me, mine), at_root(sum_of), &counts, root));
    let given = if me == root { whole_v.clone() } else { Vec::new() };
    let scattered_v = start(ops.scatter_v(given, vec![0; mine], &counts, root));
    let everything_v = start(ops.allgather_v(values(me, mine), vec![0; sum_of], &counts));
    let parts_v = start(ops.reduce_scatter_v(values(me, sum_of), vec![0; mine], &counts, Sum));
    let before: usize = counts[..me as usize].iter().sum();
    let count = |from: u32, to: u32| ((from * 3 + to * 5) as usize + len) % 4;
    let (to, from): (Vec<_>, Vec<_>) = all().map(|peer| (count(me, peer), count(peer, me))).unzip();
    let sent: Vec<u64> = all().flat_map(|to| block(me, to, count(me, to))).collect();
    let exchanged_v = start(ops.alltoall_v(sent, vec![0; from.iter().sum()], &to, &from));
    // A dropped one goes on, too.
    drop(start(ops.allreduce(values(me, len), Max)));

    let come: Vec<u64> = all().flat_map(|from| block(from, me, count(from, me))).collect();
    assert_eq!(exchanged_v.wait()?.1, come, "alltoall_v");
    let sums = folded(all(), sum_of, value, u64::wrapping_add);
    assert_eq!(parts_v.wait()?.1, sums[before..before + mine], "reduce_scatter_v");
    assert_eq!(everything_v.wait()?.1, whole_v, "allgather_v");
    assert_eq!(scattered_v.wait()?.1, values(me, mine), "scatter_v");
    assert_eq!(gathered_v.wait()?.1, if me == root { &whole_v[..] } else { &[] }, "gather_v");
    let come: Vec<u64> = all().flat_map(|from| block(from, me, len)).collect();
    assert_eq!(exchanged.wait()?.1, come);
    let sums = folded(all(), total, value, u64::wrapping_add);
    assert_eq!(parts.wait()?.1, sums[me as usize * len..(me as usize + 1) * len]);
    assert_eq!(everything.wait()?, (values(me, len), whole.clone()));
    let sum = match sum {
        Status::Done(sum) => sum,
        Status::Pending(in_flight) => super::api::ult::block_on(in_flight),
    };
    assert_eq!(sum?, folded(all(), len, value, u64::wrapping_add));
    if let Status::Pending(lower) = &lower {
        while !lower.is_done() {
            super::api::ult::yield_now();
        }
    }
    assert_eq!(lower.wait()?, folded(0..me.max(1), len, affine, compose));
    assert_eq!(scanned.wait()?, folded(0..me + 1, len, affine, compose));
    assert_eq!(scattered.wait()?.1, values(me, len));
    assert_eq!(gathered.wait()?.1, if me == root { &whole[..] } else { &[] });
    let expected = folded(all(), len, value, u64::wrapping_add);
    assert_eq!(reduced.wait()?, if me == root { expected } else { values(me, len) });
    assert_eq!(broadcast.wait()?, values(root, len));
    barrier.wait()?;
    group.barrier()
}

/// Begins an operation, as soon as there is room.
fn start<C: Begin>(operation: Deferred<C>) -> Status<C> {
    let mut begun = operation.try_begin();
    loop {
        match begun {
            Ok(status) => return status,
            Err(busy) => {
                super::api::ult::yield_now();
                begun = busy.operation.try_begin();
            }
        }
    }
}
