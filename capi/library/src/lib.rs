//! libtsumugi.so and libtsumugi.a: the functions that `tsumugi-capi` and `tsumugi-acp` export.

pub use tsumugi_capi::*;
