//! Each rank puts a line of text to its right neighbour and signals it; the
//! neighbour sleeps until the line has arrived.
//!
//! `cargo run --release -- run -n 4 target/release/examples/put_get`

use tsumugi::{Error, Rank, Signal, Until};

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let text = rt.share::<u8>(64)?;
        let arrived = rt.share::<u64>(1)?;
        let right = Rank((rt.rank().0 + 1) % rt.size());

        let line = format!("greetings from {}", rt.rank());
        let signal = Signal::Set(line.len() as u64);
        rt.put_signal(text.at(right, 0), line.as_bytes(), arrived.at(right, 0), signal)?;

        let len = rt.wait_until(arrived.own().at(0), Until::NotEqual(0))?;
        let mut line = vec![0; len as usize];
        rt.get_slice(text.own().at(0), &mut line)?;
        println!("{} has {}", rt.rank(), String::from_utf8_lossy(&line));
        Ok(())
    })
}
