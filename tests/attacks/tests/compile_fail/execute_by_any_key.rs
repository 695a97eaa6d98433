//! An operation cannot name local memory by a forged key.

use tsumugi::{Error, Rank, RemoteAddr};
use tsumugi_core::backend::execute;
use tsumugi_core::mem::{LocalAddr, RegionKey};
use tsumugi_core::op::Op;

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let buf = rt.buffer::<u64>(1)?;
        let values = &buf[..];
        let (from, key) = (rt.starter(Rank(0)).addr(), RegionKey::new(7, 1));
        let get = Op::get(from, LocalAddr { offset: 0, key }, 8);
        let _ = execute(rt.load_store(), &get);
        println!("{values:?}");
        let _: RemoteAddr = from;
        Ok(())
    })
}
