//! The codes of errors: their classes and sentences, and those that the program adds.

use crate::abi;
use crate::arguments::{text, write_text};
use crate::call::{call, failed, sentence};
use crate::fault::{Answer, fail, is_class, need};
use crate::job::Job;
use crate::object::table::lock;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::sync::Mutex;
use tsumugi_core::sync::Ordering;

/// An error code of the program.
struct ProgramCode {
    /// Its own number, if it is a class.
    class: c_int,
    text: String,
    /// How many other codes are of this class.
    codes: usize,
}

/// The error codes of the program. The number of one that was removed is not used again.
struct ProgramCodes {
    all: BTreeMap<c_int, ProgramCode>,
    next: c_int,
}

impl ProgramCodes {
    /// Adds a code. Without a class it is one.
    fn add(&mut self, class: Option<c_int>) -> Answer<c_int> {
        let code = self.next;
        let Some(next) = code.checked_add(1) else {
            fail!(abi::ERR_NO_MEM, "there are too many error codes")
        };
        self.next = next;
        if let Some(class) = class.and_then(|class| self.all.get_mut(&class)) {
            class.codes += 1;
        }
        let class = class.unwrap_or(code);
        self.all.insert(code, ProgramCode { class, text: String::new(), codes: 0 });
        Ok(code)
    }

    /// A code that the program has added.
    fn own(&mut self, code: c_int) -> Answer<&mut ProgramCode> {
        need!(!is_class(code), abi::ERR_ARG, "{code} is the standard's");
        match self.all.get_mut(&code) {
            Some(own) => Ok(own),
            None => fail!(abi::ERR_ARG, "{code} is no error code"),
        }
    }

    /// Removes a code, which has no string.
    fn remove(&mut self, code: c_int) -> Answer {
        let own = self.own(code)?;
        need!(own.text.is_empty(), abi::ERR_ARG, "{code} has a string");
        let class = own.class;
        self.all.remove(&code);
        if let Some(class) = self.all.get_mut(&class) {
            class.codes -= 1;
        }
        Ok(())
    }
}

static CODES: Mutex<ProgramCodes> =
    Mutex::new(ProgramCodes { all: BTreeMap::new(), next: abi::ERR_LASTCODE + 1 });

/// Adds a code. Without a class it is one.
fn add_code(job: &Job, class: Option<c_int>) -> Answer<c_int> {
    let code = lock(&CODES).add(class)?;
    // Relaxed: the program synchronizes what it adds.
    job.last_code.store(code.cast_unsigned(), Ordering::Relaxed);
    Ok(code)
}

/// The class and the sentence of a code.
fn describe(code: c_int) -> Answer<(c_int, String)> {
    if let Some(sentence) = sentence(code) {
        return Ok((code, sentence));
    }
    match lock(&CODES).all.get(&code) {
        Some(own) => Ok((own.class, own.text.clone())),
        None => fail!(abi::ERR_ARG, "{code} is no error code"),
    }
}

/// MPI_Error_class.
///
/// # Safety
///
/// `errorclass` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Error_class(errorcode: c_int, errorclass: *mut c_int) -> c_int {
    match describe(errorcode) {
        Ok((class, _)) => {
            // SAFETY: the caller's.
            unsafe { errorclass.write(class) };
            abi::SUCCESS
        }
        Err(fault) => failed("MPI_Error_class", None, &fault),
    }
}

/// MPI_Error_string.
///
/// # Safety
///
/// `string` is valid for a write of `MPI_MAX_ERROR_STRING` bytes, `resultlen` for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Error_string(
    errorcode: c_int,
    string: *mut c_char,
    resultlen: *mut c_int,
) -> c_int {
    match describe(errorcode) {
        Ok((_, text)) => {
            // SAFETY: the caller's.
            unsafe { resultlen.write(write_text(&text, string, abi::MAX_ERROR_STRING as usize)) };
            abi::SUCCESS
        }
        Err(fault) => failed("MPI_Error_string", None, &fault),
    }
}

/// MPI_Add_error_class.
///
/// # Safety
///
/// `errorclass` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Add_error_class(errorclass: *mut c_int) -> c_int {
    call("MPI_Add_error_class", |job| {
        // SAFETY: the caller's.
        unsafe { errorclass.write(add_code(job, None)?) };
        Ok(())
    })
}

/// MPI_Add_error_code.
///
/// # Safety
///
/// `errorcode` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Add_error_code(errorclass: c_int, errorcode: *mut c_int) -> c_int {
    call("MPI_Add_error_code", |job| {
        let (class, _) = describe(errorclass)?;
        need!(class == errorclass, abi::ERR_ARG, "{errorclass} is no error class");
        // SAFETY: the caller's.
        unsafe { errorcode.write(add_code(job, Some(class))?) };
        Ok(())
    })
}

/// MPI_Add_error_string.
///
/// # Safety
///
/// `string` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Add_error_string(errorcode: c_int, string: *const c_char) -> c_int {
    call("MPI_Add_error_string", |_| {
        // SAFETY: the caller's.
        let text = unsafe { text(string, "string") }?;
        lock(&CODES).own(errorcode)?.text = text;
        Ok(())
    })
}

/// Defines a function that removes something of a code.
macro_rules! removes {
    ($($function:ident, $name:literal, |$codes:ident, $code:ident| $body:block)*) => { $(
        #[doc = concat!($name, ".")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $function($code: c_int) -> c_int {
            call($name, |_| {
                let mut $codes = lock(&CODES);
                $body
                Ok(())
            })
        }
    )* };
}

removes! {
    PMPI_Remove_error_class, "MPI_Remove_error_class", |codes, code| {
        let own = codes.own(code)?;
        need!(own.class == code, abi::ERR_ARG, "{code} is no error class");
        need!(own.codes == 0, abi::ERR_ARG, "{code} has {} codes", own.codes);
        codes.remove(code)?;
    }
    PMPI_Remove_error_code, "MPI_Remove_error_code", |codes, code| {
        need!(codes.own(code)?.class != code, abi::ERR_ARG, "{code} is an error class");
        codes.remove(code)?;
    }
    PMPI_Remove_error_string, "MPI_Remove_error_string", |codes, code| {
        codes.own(code)?.text = String::new();
    }
}
