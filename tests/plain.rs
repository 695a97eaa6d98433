//! Structs that cross between ranks, in a program without unsafe code.

#![forbid(unsafe_code)]

use std::marker::PhantomData;
use tsumugi::{Error, Plain, Rank, Source, Tags};

#[derive(Clone, Copy, Debug, Default, PartialEq, Plain)]
#[repr(C)]
struct Particle {
    /// A field may have attributes and any visibility.
    pub place: [f64; 3],
    pub(crate) cell: u32,
    kind: u32,
    of: Inner,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Plain)]
#[repr(C)]
struct Inner(pub u16, pub(self) i16, i32);

#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[repr(C, packed)]
struct Packed<A, B: Into<u64> = u8>
where
    A: PartialEq,
{
    first: A,
    second: B,
}

#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[repr(C)]
struct Matrix<T, const N: usize> {
    scale: T,
    rows: [[T; N]; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[repr(transparent)]
struct Id<T: 'static + Send + Sync>(u64, PhantomData<T>);

/// A type that is not plain, of which no value is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Named(&'static str);

#[derive(Clone, Copy, Debug, PartialEq, tsumugi_macros::Plain)]
#[plain(crate = tsumugi_core::mem)]
#[repr(C)]
struct OfTheCore {
    word: u64,
}

#[test]
fn structs_go_by_put_and_by_message() {
    tsumugi::run_ranks(2, |rt| {
        let own = rt.rank();
        let other = Rank(1 - own.0);
        let one = Particle { place: [0.5, 1.5, -2.0], cell: own.0, kind: 7, of: Inner(1, -2, 3) };
        let particles = rt.share::<Particle>(2)?;
        rt.put(particles.at(other, 1), one)?;
        rt.barrier()?;
        assert_eq!(rt.get(particles.at(own, 1))?, Particle { cell: other.0, ..one });

        let matrix = Matrix { scale: 2_u32, rows: [[own.0; 3]; 2] };
        let packed = Packed { first: own.0, second: 9_u8 };
        let comm = rt.comm();
        let mut matrices = [Matrix { scale: 0, rows: [[0; 3]; 2] }];
        let mut packs = [Packed { first: 0_u32, second: 0_u8 }];
        if own == Rank(0) {
            comm.send(other, 1, &[matrix])?;
            comm.send(other, 2, &[packed])?;
        } else {
            comm.recv(Source::Is(other), Tags::Is(1), &mut matrices)?;
            comm.recv(Source::Is(other), Tags::Is(2), &mut packs)?;
            assert_eq!(matrices[0].rows, [[0; 3]; 2]);
            assert_eq!(packs[0], Packed { first: 0, second: 9 });
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn the_derive_knows_all_forms_of_structs() {
    fn plain<T: Plain>() -> usize {
        size_of::<T>()
    }
    assert_eq!(plain::<Particle>(), 40);
    assert_eq!(plain::<Packed<u32>>(), 5);
    assert_eq!(plain::<Matrix<f32, 5>>(), 44);
    assert_eq!(plain::<Id<Named>>(), 8);
    assert_eq!(plain::<OfTheCore>(), 8);
}
