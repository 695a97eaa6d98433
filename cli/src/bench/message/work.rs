use super::serve::Command;
use super::team::Answer;
use crate::failure::Failure;
use std::hint::black_box;
use tsumugi::{Rank, Runtime};
#[derive(Debug)]
pub struct Desk;
impl Desk {
    pub fn new(_rt: &Runtime) -> Self {
        Self
    }
    pub fn work(&mut self, _rt: &Runtime, command: Command<'_>) -> Result<Answer, Failure> {
        let _ = command.number("bytes");
        Ok(Answer::default())
    }
}
pub fn compute(steps: usize, rank: Rank) -> f64 {
    let mut x = 1.0 + f64::from(black_box(rank.0));
    for _ in 0..steps {
        x = x * 0.999_999 + 1e-6;
    }
    black_box(x)
}
