mod alone;
mod harness;
mod hostile;
mod long;
mod peers;
mod room;
mod steps;
mod traces;
