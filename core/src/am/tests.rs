mod harness;
mod hostile;
mod traces;
