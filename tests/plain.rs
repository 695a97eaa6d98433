//! Structs that cross between ranks, in a program without unsafe code.

#![forbid(unsafe_code)]

use std::marker::PhantomData;
use std::num::NonZeroU32;
use tsumugi::{Error, Plain, Pod, Rank, Source, Tags};

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

#[test]
fn types_that_are_pod_go_by_put_and_by_message() {
    // In the place of a type of another crate: `Plain` is not implemented for it.
    type Foreign = Option<NonZeroU32>;
    let value = |number: u32| -> Foreign { NonZeroU32::new(number) };

    #[derive(Clone, Copy, Debug, PartialEq, Plain)]
    #[repr(C)]
    struct Cell {
        of: Pod<Foreign>,
        at: [Pod<Foreign>; 2],
    }

    assert_eq!(size_of::<Pod<Foreign>>(), size_of::<Foreign>());
    assert_eq!(Pod::wrap(&[] as &[Foreign]), []);
    assert_eq!(Pod::wrap(&[(), ()]).len(), 2, "values without bytes are counted, too");

    tsumugi::run_ranks(2, |rt| {
        let own = rt.rank();
        let other = Rank(1 - own.0);
        let values = rt.share::<Pod<Foreign>>(4)?;
        let mut sent = rt.buffer::<Pod<Foreign>>(2)?;
        Pod::peel_mut(&mut sent).copy_from_slice(&[value(own.0), value(own.0 + 7)]);
        rt.put_slice(values.at(other, 1), &sent)?;
        rt.barrier()?;
        let mut read = [None; 2];
        rt.get_slice(values.at(own, 1), Pod::wrap_mut(&mut read))?;
        assert_eq!(read, [value(other.0), value(other.0 + 7)]);
        assert_eq!(rt.get(values.at(own, 2))?, Pod::from(read[1]));

        let of = Pod(value(9));
        let cell = Cell { of, at: [of; 2] };
        let mut cells = [Cell { of: Pod(None), at: [Pod(None); 2] }];
        let comm = rt.comm();
        if own == Rank(0) {
            comm.send(other, 1, &[cell])?;
        } else {
            comm.recv(Source::Is(other), Tags::Is(1), &mut cells)?;
            assert_eq!(cells, [cell]);
            assert_eq!(Pod::peel(&cells[0].at), [*of; 2]);
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}
