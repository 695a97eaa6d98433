//! The operations of reductions and scans.

use tsumugi_core::coll::schedule::CombineOrder;
use tsumugi_core::mem::Plain;

/// An associative operation on two values.
///
/// Closures `Fn(T, T) -> T` are operations that need not commute: they get the values
/// of lower members as their left side. [`Commuting`] marks a closure that commutes, for
/// which there are faster algorithms.
///
/// An operation computes, and must not wait: any thread of the rank may call the operation of
/// a collective that has begun, and an operation that would wait panics there. If an operation
/// panics, a blocking collective unwinds at this rank, and a begun one ends with an error;
/// some of the other members may wait for this rank until it ends.
pub trait Operation<T>: Send + Sync {
    /// The value of the lower members, `left`, with that of the higher ones.
    fn combine(&self, left: T, right: T) -> T;

    /// Whether the sides may be exchanged.
    fn commutes(&self) -> bool {
        true
    }
}

/// A closure that commutes.
#[derive(Clone, Copy, Debug)]
pub struct Commuting<F>(pub F);

impl<T, F: Fn(T, T) -> T + Send + Sync> Operation<T> for F {
    fn combine(&self, left: T, right: T) -> T {
        self(left, right)
    }

    fn commutes(&self) -> bool {
        false
    }
}

impl<T, F: Fn(T, T) -> T + Send + Sync> Operation<T> for Commuting<F> {
    fn combine(&self, left: T, right: T) -> T {
        (self.0)(left, right)
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident: $($type:ty),* => |$left:ident, $right:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        operations!(@each $name, ($($type),*), |$left, $right| $body);
    )*};
    (@each $name:ident, ($($type:ty),*), |$left:ident, $right:ident| $body:expr) => {$(
        impl Operation<$type> for $name {
            #[inline]
            fn combine(&self, $left: $type, $right: $type) -> $type {
                $body
            }
        }
    )*};
}

operations! {
    /// The smaller value. For floats, a NaN loses.
    Min: u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64
        => |left, right| left.min(right);
    /// The greater value. For floats, a NaN loses.
    Max: u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64
        => |left, right| left.max(right);
    /// The bits that both have.
    And: u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
        => |left, right| left & right;
    /// The bits that one of them has.
    Or: u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
        => |left, right| left | right;
    /// The bits that exactly one of them has.
    Xor: u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
        => |left, right| left ^ right;
}

/// The sum. Integers wrap. A sum of floats is the same at all members, and in every run
/// with the same numbers of members and values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum;

/// The product. Integers wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prod;

operations!(@each Sum, (u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize),
    |left, right| left.wrapping_add(right));
operations!(@each Sum, (f32, f64), |left, right| left + right);
operations!(@each Prod, (u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize),
    |left, right| left.wrapping_mul(right));
operations!(@each Prod, (f32, f64), |left, right| left * right);

/// The function that a collective calls for `operation` on values of `T`.
pub(super) fn combine_of<T: Plain>(
    operation: impl Operation<T>,
) -> impl Fn(*const u8, *mut u8, usize, CombineOrder) + Send + Sync {
    move |from: *const u8, into: *mut u8, bytes: usize, order: CombineOrder| {
        combine(&operation, from, into, bytes, order);
    }
}

/// Combines `bytes` bytes of values of `T`.
pub(super) fn combine<T: Plain>(
    operation: &impl Operation<T>,
    from: *const u8,
    into: *mut u8,
    bytes: usize,
    order: CombineOrder,
) {
    let (from, into) = (from.cast::<T>(), into.cast::<T>());
    let count = bytes.checked_div(size_of::<T>()).unwrap_or(0);
    for at in 0..count {
        // SAFETY: `bytes` bytes of values of a `Plain` type, as the caller of a
        // combine function promises. Unaligned: scratch memory has no type.
        unsafe {
            let (from, into) = (from.add(at), into.add(at));
            let (other, own) = (from.read_unaligned(), into.read_unaligned());
            into.write_unaligned(match order {
                CombineOrder::FromFirst => operation.combine(other, own),
                CombineOrder::IntoFirst => operation.combine(own, other),
            });
        }
    }
}
