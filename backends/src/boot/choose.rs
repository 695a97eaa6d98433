//! Chooses the way in which this process finds its peers.

use super::env::{self, BootEnv, BootMethod, EnvError, Lookup};
use super::pmi::Pmi;
use super::pmix::Pmix;
use super::sys;
use super::tcp::{Client, Secret, Server};
use std::fmt;
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;
use tsumugi_core::boot::{BootError, OpenBootstrap};
use tsumugi_core::mem::Rank;

/// The way that was chosen.
pub struct Boot {
    /// The name of the way.
    pub method: BootMethod,
    /// The bootstrap itself.
    pub bootstrap: Box<dyn OpenBootstrap>,
    /// How long ranks wait for each other.
    pub limit: Duration,
}

/// Why no way can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChooseError {
    /// The variables of the environment are wrong.
    Env(EnvError),
    /// Ranks that meet over TCP need a secret, and there is none, or a short one.
    Secret,
    /// Rank 0 cannot listen at the address that the other ranks use.
    Listen {
        /// The system's error number; 0 if the name is not known here.
        errno: i32,
    },
    /// The bootstrap cannot be opened.
    Boot {
        /// The way.
        method: BootMethod,
        /// The error.
        error: BootError,
    },
}

/// Opens the bootstrap that the environment selects; `None` if this program is
/// alone.
///
/// # Errors
///
/// - [`ChooseError::Env`]: a variable of the launcher, `TSUMUGI_BOOT` or
///   `TSUMUGI_BOOT_TIMEOUT` is missing or has a wrong value.
/// - [`ChooseError::Secret`]: the ranks meet over TCP, and `TSUMUGI_SECRET` is not set,
///   or is too short.
/// - [`ChooseError::Listen`]: this is rank 0, and it cannot listen at its address.
/// - [`ChooseError::Boot`]: the bootstrap cannot be opened: the PMI or PMIx server, its
///   library or the system returns an error.
pub fn choose() -> Result<Option<Boot>, ChooseError> {
    choose_by(&|name| std::env::var(name).ok())
}

/// Whether the environment marks this process as a rank, by any launcher, and
/// whether or not the bootstrap then works.
pub fn is_rank() -> bool {
    !matches!(env::find(&|name| std::env::var(name).ok()), Ok(BootEnv::NotARank))
}

/// As [`choose`], with an environment that is given.
///
/// # Errors
///
/// - [`ChooseError::Env`]: a variable of the launcher, `TSUMUGI_BOOT` or
///   `TSUMUGI_BOOT_TIMEOUT` is missing or has a wrong value.
/// - [`ChooseError::Secret`]: the ranks meet over TCP, and `TSUMUGI_SECRET` is not set,
///   or is too short.
/// - [`ChooseError::Listen`]: this is rank 0, and it cannot listen at its address.
/// - [`ChooseError::Boot`]: the bootstrap cannot be opened: the PMI or PMIx server, its
///   library or the system returns an error.
pub fn choose_by(lookup: Lookup<'_>) -> Result<Option<Boot>, ChooseError> {
    let limit = env::limit(lookup).map_err(ChooseError::Env)?;
    let closed = |method| move |error| ChooseError::Boot { method, error };
    let (method, bootstrap): (BootMethod, Box<dyn OpenBootstrap>) = match env::find(lookup)? {
        BootEnv::NotARank | BootEnv::Tcp { size: 1, .. } => return Ok(None),
        BootEnv::Pmi { fd, rank, size } => {
            let fd = inherited(fd).map_err(closed(BootMethod::Pmi))?;
            let pmi = Pmi::new(fd, Rank(rank), size, limit).map_err(closed(BootMethod::Pmi))?;
            (BootMethod::Pmi, Box::new(pmi))
        }
        BootEnv::Pmix => {
            (BootMethod::Pmix, Box::new(Pmix::new(lookup).map_err(closed(BootMethod::Pmix))?))
        }
        BootEnv::Tcp { method, rank, size, addresses } => {
            let word = lookup(env::SECRET).unwrap_or_default();
            let secret = Secret::new(&word).ok_or(ChooseError::Secret)?;
            let server = match (method, rank) {
                (BootMethod::Server, _) | (_, 1..) => None,
                _ => Some(serve(&addresses, size, &secret, limit)?),
            };
            let client = Client::new(Rank(rank), size, addresses, secret, limit);
            let client = client.map_err(closed(method))?;
            let client =
                if method == BootMethod::Server { client } else { client.served_by(Rank(0)) };
            let client = match server {
                Some(server) => client.with_server(server),
                None => client,
            };
            (method, Box::new(client))
        }
    };
    Ok(Some(Boot { method, bootstrap, limit }))
}

/// Starts the server of rank 0, at the first of its addresses that this machine
/// has.
fn serve(
    addresses: &[String],
    size: u32,
    secret: &Secret,
    limit: Duration,
) -> Result<Server, ChooseError> {
    let refused =
        |error: io::Error| ChooseError::Listen { errno: error.raw_os_error().unwrap_or(0) };
    let mut last = ChooseError::Listen { errno: 0 };
    for address in addresses {
        let all = address.to_socket_addrs().map_err(refused)?;
        for address in all {
            match TcpListener::bind(address) {
                Ok(listener) => {
                    return Server::start(listener, size, secret.clone(), limit).map_err(refused);
                }
                Err(error) => last = refused(error),
            }
        }
    }
    Err(last)
}

/// Takes the descriptor that the launcher left; must be called once.
fn inherited(fd: i32) -> Result<OwnedFd, BootError> {
    let gone = |error: io::Error| BootError::System {
        what: "the descriptor of PMI_FD",
        errno: error.raw_os_error().unwrap_or(0),
    };
    sys::close_on_exec(fd).map_err(gone)?;
    // SAFETY: the descriptor is open, and the launcher left it for the code that
    // starts the rank, which runs once in a process.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl From<EnvError> for ChooseError {
    fn from(error: EnvError) -> Self {
        Self::Env(error)
    }
}

impl fmt::Debug for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Boot({}, {} of {})", self.method, self.bootstrap.rank(), self.bootstrap.size())
    }
}

impl fmt::Display for ChooseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(error) => error.fmt(f),
            Self::Secret => write!(
                f,
                "{} is not set, or shorter than {} bytes: ranks that meet over TCP need a secret \
                 word, the same on all ranks",
                env::SECRET,
                Secret::BYTES_MIN
            ),
            Self::Listen { errno: 0 } => {
                let master = env::MASTER;
                write!(f, "rank 0 cannot listen at its address: no such host ({master} sets it)")
            }
            Self::Listen { errno } => {
                let error = io::Error::from_raw_os_error(*errno);
                write!(f, "rank 0 cannot listen at its address: {error} ({} sets it)", env::MASTER)
            }
            Self::Boot { method, error } => {
                write!(f, "this rank cannot find the other ranks by {method}: {error}")
            }
        }
    }
}

impl std::error::Error for ChooseError {}
