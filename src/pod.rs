//! Types of other crates that may cross between ranks: a wrapper for those that are
//! `bytemuck::Pod`.

use std::ops::{Deref, DerefMut};
use tsumugi_core::mem::Plain;

/// A value of a type that is `bytemuck::Pod`, which makes it [`Plain`]; it needs the feature
/// `bytemuck`.
///
/// A program can implement [`Plain`] neither for a vector of `glam`, nor for a complex number of
/// `num-complex`, nor for an `f16` of `half`, because trait and type belong to other crates. These
/// crates implement `bytemuck::Pod`, and `Pod<T>` has the layout of its `T`. A struct of such
/// fields wraps each, and has `#[derive(Plain)]`.
///
/// [`wrap`](Self::wrap) and [`peel`](Self::peel) cast slices in place, at no cost:
///
/// ```
/// # mod geometry {
/// #     #[derive(Clone, Copy, Debug, Default, PartialEq)]
/// #     #[repr(C)]
/// #     pub struct Point { pub x: f32, pub y: f32 }
/// #     unsafe impl bytemuck::Zeroable for Point {}
/// #     unsafe impl bytemuck::Pod for Point {}
/// # }
/// use geometry::Point; // of another crate
/// use tsumugi::{Error, Pod, Runtime};
///
/// # fn main() -> Result<(), Error> {
/// tsumugi::run(|rt: &Runtime| {
///     let points = rt.share::<Pod<Point>>(100)?;
///     let own = [Point { x: 0.5, y: 1.5 }, Point { x: 2.0, y: -1.0 }];
///     rt.put_slice(points.at(rt.rank(), 7), Pod::wrap(&own))?;
///     assert_eq!(rt.get(points.at(rt.rank(), 8))?.x, 2.0);
///
///     let mut read = [Point::default(); 2];
///     rt.get_slice(points.at(rt.rank(), 7), Pod::wrap_mut(&mut read))?;
///     assert_eq!(read, own);
///     Ok(())
/// })
/// # }
/// ```
///
/// Other types are refused:
///
/// ```compile_fail
/// fn plain<T: tsumugi::Plain>() {}
/// plain::<tsumugi::Pod<bool>>();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Pod<T>(pub T);

// SAFETY: `Pod<T>` has the layout and the values of `T` (`repr(transparent)`). `bytemuck::Pod`
// promises that every bit pattern is a value of `T`, and that `T` has neither padding, nor
// pointers, nor interior mutability. A file descriptor is a number to `bytemuck`; but so it is in
// an `i32`, which is `Plain` too.
unsafe impl<T: bytemuck::Pod + Send + Sync> Plain for Pod<T> {}

// SAFETY: `Pod<T>` has the layout and the values of `T` (`repr(transparent)`).
unsafe impl<T: bytemuck::Zeroable> bytemuck::Zeroable for Pod<T> {}
// SAFETY: as above; its one field is `bytemuck::Pod`.
unsafe impl<T: bytemuck::Pod> bytemuck::Pod for Pod<T> {}

impl<T: bytemuck::Pod> Pod<T> {
    /// The same memory as wrapped values.
    #[inline]
    pub fn wrap(values: &[T]) -> &[Self] {
        bytemuck::cast_slice(values)
    }

    /// The same memory as wrapped values, to be changed.
    #[inline]
    pub fn wrap_mut(values: &mut [T]) -> &mut [Self] {
        bytemuck::cast_slice_mut(values)
    }

    /// The same memory as values without the wrapper.
    #[inline]
    pub fn peel(wrapped: &[Self]) -> &[T] {
        bytemuck::cast_slice(wrapped)
    }

    /// The same memory as values without the wrapper, to be changed.
    #[inline]
    pub fn peel_mut(wrapped: &mut [Self]) -> &mut [T] {
        bytemuck::cast_slice_mut(wrapped)
    }
}

impl<T> From<T> for Pod<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Pod<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Pod<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
