//! The exchange of the memory files: the leader sends, the others receive.

use super::digest::digest;
use super::error::{JoinVerdict, MeetError};
use super::hello::{Hello, LeaderReply};
use super::meeting::Meeting;
use crate::config::SpaceConfig;
use crate::space::Files;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};
use tsumugi_core::mem::LocalRank;

impl Files {
    /// Returns the memory files of all ranks of a node, made with the leader's
    /// `config`. Every rank of the node must call this, once.
    ///
    /// # Errors
    ///
    /// - [`MeetError::Size`]: the rank is not below the number of ranks.
    /// - [`MeetError::Stranger`]: a process of another user has taken the name of the socket.
    /// - [`MeetError::System`]: the system refused a call, the other end closed the
    ///   connection, or it sent an invalid message.
    ///
    /// At the leader, which is the first rank:
    ///
    /// - [`MeetError::Space`]: the files cannot be made; the errors of
    ///   [`Files::create`].
    /// - [`MeetError::NameTaken`]: another process of this user has had the name of the
    ///   socket until the limit.
    /// - [`MeetError::Missing`]: a rank did not join within the limit.
    ///
    /// At the other ranks:
    ///
    /// - [`MeetError::NoLeader`]: the leader accepted no connection within the limit.
    /// - [`MeetError::Refused`]: the leader refuses this rank, for the reason in the
    ///   [`JoinVerdict`].
    /// - [`MeetError::Descriptors`]: not all memory files arrived.
    pub fn meet(meeting: &Meeting<'_>, config: &SpaceConfig) -> Result<Self, MeetError> {
        let (rank, size) = (meeting.local, meeting.size);
        if rank.0 >= size {
            return Err(MeetError::Size { rank: rank.0, size });
        }
        let deadline = Instant::now() + meeting.limit;
        match rank {
            LocalRank(0) => lead(meeting, config, deadline),
            _ => join(meeting, deadline),
        }
    }
}

fn lead(
    meeting: &Meeting<'_>,
    config: &SpaceConfig,
    deadline: Instant,
) -> Result<Files, MeetError> {
    // The headers are written before a rank can connect.
    let (files, _) = Files::create(meeting.size, config).map_err(MeetError::Space)?;
    if meeting.size == 1 {
        return Ok(files);
    }
    let name = name(meeting)?;
    let listener = until(deadline, || match UnixListener::bind_addr(&name) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            stranger_at(&name).map(|user| Err(MeetError::Stranger { user }))
        }
        other => Some(other.map_err(system("binding the socket"))),
    });
    let listener = listener.unwrap_or(Err(MeetError::NameTaken { limit: meeting.limit }))?;
    listener.set_nonblocking(true).map_err(system("preparing the socket"))?;
    let mut served = vec![false; meeting.size as usize];
    served[0] = true;
    while let Some(missing) = served.iter().position(|served| !served) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(MeetError::Missing {
                rank: LocalRank(missing as u32),
                limit: meeting.limit,
            });
        }
        sys::poll(&[listener.as_fd()], left).map_err(system("waiting for ranks"))?;
        if let Ok((stream, _)) = listener.accept() {
            // A caller that breaks off, or is not of this job, may connect again.
            if let Some(rank) = serve(&stream, meeting, &files, &served) {
                served[rank.0 as usize] = true;
            }
        }
    }
    Ok(files)
}

/// The user of the process that listens at the name, if it is another user. A job
/// of this user gives the name up as soon as it has started, but another user's
/// process may not.
fn stranger_at(name: &SocketAddr) -> Option<u32> {
    let stream = sys::connect(name).ok()?;
    let user = sys::peer_user(stream.as_fd()).ok()?;
    (user != sys::own_user()).then_some(user)
}

/// Answers one caller; returns its rank if it has received everything.
fn serve(
    stream: &UnixStream,
    meeting: &Meeting<'_>,
    files: &Files,
    served: &[bool],
) -> Option<LocalRank> {
    if sys::peer_user(stream.as_fd()).ok()? != sys::own_user() {
        return None;
    }
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
    stream.set_write_timeout(Some(ANSWER_WITHIN)).ok()?;
    let hello = Hello::receive(stream).ok()?;
    let verdict = match hello.compare(&Hello::of(meeting)) {
        JoinVerdict::Welcome if served[hello.rank.0 as usize] => JoinVerdict::Taken,
        verdict => verdict,
    };
    LeaderReply { verdict, shape: files.shape, policy: files.policy }.send(stream).ok()?;
    if verdict != JoinVerdict::Welcome {
        return None;
    }
    let fds: Vec<RawFd> = files.files.iter().chain(&files.huge).map(AsRawFd::as_raw_fd).collect();
    for some in fds.chunks(sys::FDS_MAX) {
        sys::send_fds(stream.as_fd(), &[0], some).ok()?;
    }
    Some(hello.rank)
}

fn join(meeting: &Meeting<'_>, deadline: Instant) -> Result<Files, MeetError> {
    let name = name(meeting)?;
    let connect = || match sys::connect(&name) {
        Err(error) if is_not_there_yet(&error) => None,
        other => Some(other.map_err(system("connecting to the leader"))),
    };
    let none = MeetError::NoLeader { limit: meeting.limit };
    let stream = until(deadline, connect).unwrap_or(Err(none))?;
    let user = sys::peer_user(stream.as_fd()).map_err(system("asking for the leader's user"))?;
    if user != sys::own_user() {
        return Err(MeetError::Stranger { user });
    }
    let left = deadline.saturating_duration_since(Instant::now()).max(ANSWER_WITHIN);
    stream.set_read_timeout(Some(left)).map_err(system("setting a time limit"))?;
    Hello::of(meeting).send(&stream).map_err(system("sending to the leader"))?;
    let answer = LeaderReply::receive(&stream).map_err(system("reading the leader's answer"))?;
    if answer.verdict != JoinVerdict::Welcome {
        return Err(MeetError::Refused { rank: meeting.local, why: answer.verdict });
    }
    let kinds = if answer.has_huge() { 2 } else { 1 };
    let (wanted, mut fds) = (kinds * meeting.size as usize, Vec::new());
    while fds.len() < wanted {
        let before = fds.len();
        let got = sys::receive_fds(stream.as_fd(), &mut [0], &mut fds);
        if got.map_err(system("receiving memory files"))? == 0 || fds.len() == before {
            // The leader is gone, or this process may not open this many
            // descriptors.
            return Err(MeetError::Descriptors { found: fds.len(), wanted });
        }
    }
    let huge = fds.split_off(meeting.size as usize);
    Ok(Files { shape: answer.shape, policy: answer.policy, files: fds, huge })
}

/// Whether no process listens there yet, or so many connect that the queue is full.
fn is_not_there_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock)
}

/// Calls `attempt` until it returns a value, with longer and longer pauses.
fn until<T>(deadline: Instant, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(done) = attempt() {
            return Some(done);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// The abstract name: it needs no file, and ends with its socket.
fn name(meeting: &Meeting<'_>) -> Result<SocketAddr, MeetError> {
    let (user, job) = (sys::own_user(), digest(meeting.job));
    let name = format!("tsumugi-{user}-{}-{job:016x}", meeting.node);
    SocketAddr::from_abstract_name(name).map_err(system("naming the socket"))
}

fn system(what: &'static str) -> impl Fn(io::Error) -> MeetError {
    move |error| MeetError::System { what, errno: error.raw_os_error().unwrap_or(0) }
}

/// A caller that sends nothing for this long is dropped.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
