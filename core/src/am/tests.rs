mod harness;
mod hostile;
mod random;
mod traces;
