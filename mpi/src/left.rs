//! The checking mode of the end: what the program has left.

use crate::job::{Job, rank};
use crate::object::request::Request;
use crate::object::task::Work;
use std::fmt::Display;
use tsumugi_ult::UltState;

/// Names requests that the program has not ended, and objects that it has not freed.
pub(crate) fn report(job: &Job) {
    let requests = job.requests.all(|held| match held.shared() {
        Some(request) => request_of(&request),
        None => "a generalized request that was freed".to_owned(),
    });
    say("requests that were not completed", requests.iter());
    say(
        "communicators that were not freed",
        job.comms.all(|comm| comm.clone()).iter().map(ToString::to_string),
    );
    say(
        "datatypes that were not freed",
        job.datatypes
            .all(|datatype| datatype.clone())
            .iter()
            .map(|datatype| datatype.description()),
    );
    let matched = job.matched.all(|message| message.clone());
    say(
        "messages of MPI_Mprobe that were not received",
        matched
            .iter()
            .map(|message| format!("from rank {} on {}", message.status.source, &*message.comm)),
    );
}

fn request_of(request: &Request) -> String {
    let of_task = request.look(|task| {
        let what = match task.work {
            Work::Send(..) => "a send",
            Work::Receive(..) => "a receive",
            Work::Collective(_) | Work::Exchange(..) => "a collective",
            Work::Generalized(_) => "a generalized request",
            Work::Partitioned(_) => "a partitioned message",
            Work::Both(_) => "a send with a receive",
            Work::Ended(_) | Work::Failed(..) => "an operation that has ended",
        };
        format!("{what} on {}", &*task.comm)
    });
    of_task.unwrap_or_else(|| "a persistent request".to_owned())
}

/// Names the ULTs that the end of the rank cuts off, if `call` is that end.
pub(crate) fn report_ults(job: &Job, call: &str) {
    if !job.is_last_use() {
        return;
    }
    let (own, mut left) = (tsumugi_ult::id(), Vec::new());
    job.runtime.ults().dump(&mut |ult| {
        if Some(ult.id) != own && ult.state != UltState::Done {
            left.push(match ult.name {
                Some(name) => format!("{} {name:?}", ult.id),
                None => ult.id.to_string(),
            });
        }
    });
    say_of(call, "ULTs that have not ended and are cut off", left.iter());
}

/// Prints the number of objects that MPI_Finalize finds, and names some.
fn say<T: Display>(what: &str, names: impl ExactSizeIterator<Item = T>) {
    say_of("MPI_Finalize", what, names);
}

fn say_of<T: Display>(call: &str, what: &str, names: impl ExactSizeIterator<Item = T>) {
    let count = names.len();
    if count == 0 {
        return;
    }
    let mut text: Vec<String> = names.take(NAMES_MAX).map(|name| name.to_string()).collect();
    if count > NAMES_MAX {
        text.push("...".to_owned());
    }
    let rank = rank().map_or(0, |rank| rank.0);
    eprintln!("rank {rank}: {call}: {what} ({count}): {}", text.join(", "));
}

/// The most objects that are named.
const NAMES_MAX: usize = 8;
