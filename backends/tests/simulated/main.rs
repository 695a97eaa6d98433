//! The backend for libibverbs over simulated devices, which need no library.

mod dct;
mod pairs;
