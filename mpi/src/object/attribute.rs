//! Keys of attributes, and the attributes of an object.

use crate::abi;
use crate::fault::{Answer, Fault, fail};
use crate::object::table::lock;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::{Arc, Mutex, Weak};

/// A function that copies an attribute; the first argument is the old object.
type CopyFn = unsafe extern "C" fn(
    usize,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut *mut c_void,
    *mut c_int,
) -> c_int;
/// A function that deletes an attribute.
type DeleteFn = unsafe extern "C" fn(usize, c_int, *mut c_void, *mut c_void) -> c_int;

/// A key of the program. The functions' standard values are small numbers.
pub(crate) struct Keyval {
    pub(crate) of: KeyOf,
    pub(crate) copy: usize,
    pub(crate) delete: usize,
    pub(crate) extra: Word,
}

/// The keys of the program, by their numbers. The number of one that was freed is not used again.
#[derive(Default)]
pub(crate) struct Keyvals {
    all: BTreeMap<c_int, Arc<Keyval>>,
    /// Those that were freed; each is valid as long as there are attributes of it.
    freed: BTreeMap<c_int, Weak<Keyval>>,
    /// How many may be freed before those without attributes are searched.
    freed_max: usize,
    made: c_int,
}

/// What a key is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyOf {
    Comm,
    Datatype,
}

impl Keyvals {
    pub(crate) fn add(&mut self, keyval: Keyval) -> Answer<c_int> {
        let key = self.made.checked_add(KEYS_FROM);
        let Some(key) = key else { fail!(abi::ERR_NO_MEM, "there are too many attribute keys") };
        self.made += 1;
        self.all.insert(key, Arc::new(keyval));
        Ok(key)
    }

    pub(crate) fn get(&self, key: c_int, of: KeyOf) -> Answer<Arc<Keyval>> {
        let freed = || self.freed.get(&key).and_then(Weak::upgrade);
        match self.all.get(&key).cloned().or_else(freed) {
            Some(keyval) if keyval.of == of => Ok(keyval),
            Some(_) => fail!(abi::ERR_KEYVAL, "the key {key} is for objects of another kind"),
            None => fail!(abi::ERR_KEYVAL, "no attribute key has the number {key}"),
        }
    }

    /// Frees a key; as long as there are attributes of it, it can be used.
    pub(crate) fn free(&mut self, key: c_int, of: KeyOf) -> Answer {
        self.get(key, of)?;
        let Some(keyval) = self.all.remove(&key) else {
            fail!(abi::ERR_KEYVAL, "the key {key} was freed before")
        };
        if Arc::strong_count(&keyval) == 1 {
            return Ok(());
        }
        if self.freed.len() >= self.freed_max {
            self.freed.retain(|_, keyval| keyval.strong_count() > 0);
            self.freed_max = FREED_MAX.max(2 * self.freed.len());
        }
        self.freed.insert(key, Arc::downgrade(&keyval));
        Ok(())
    }
}

/// The first key of the program.
const KEYS_FROM: c_int = 1000;

/// So many freed keys without attributes take little memory.
const FREED_MAX: usize = 64;

/// A pointer of the program, which the library does not use itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word(pub(crate) *mut c_void);

// SAFETY: the library only keeps the pointer.
unsafe impl Send for Word {}
// SAFETY: the same.
unsafe impl Sync for Word {}

/// The attributes of an object, in the order in which they were set.
#[derive(Default)]
pub(crate) struct Attributes(Mutex<Vec<(c_int, Arc<Keyval>, Word)>>);

impl Attributes {
    pub(crate) fn get(&self, key: c_int) -> Option<*mut c_void> {
        let attributes = lock(&self.0);
        attributes.iter().find(|(of, ..)| *of == key).map(|(.., value)| value.0)
    }

    /// Sets a value; that of before is deleted.
    pub(crate) fn set(
        &self,
        object: usize,
        key: c_int,
        keyval: Arc<Keyval>,
        value: *mut c_void,
    ) -> Answer {
        if self.get(key).is_some() {
            self.delete(object, key)?;
        }
        lock(&self.0).push((key, keyval, Word(value)));
        Ok(())
    }

    pub(crate) fn delete(&self, object: usize, key: c_int) -> Answer {
        let found = lock(&self.0).iter().find(|(of, ..)| *of == key).cloned();
        let Some((_, keyval, value)) = found else {
            fail!(abi::ERR_KEYVAL, "the object has no attribute under the key {key}")
        };
        keyval.call_delete(object, key, value)?;
        lock(&self.0).retain(|(of, ..)| *of != key);
        Ok(())
    }

    /// Deletes all, the last first.
    pub(crate) fn delete_all(&self, object: usize) -> Answer {
        loop {
            let last = lock(&self.0).last().cloned();
            let Some((key, keyval, value)) = last else { return Ok(()) };
            keyval.call_delete(object, key, value)?;
            lock(&self.0).retain(|(of, ..)| *of != key);
        }
    }

    /// The attributes of a copy of the object.
    pub(crate) fn copies(&self, object: usize) -> Answer<Self> {
        let all = lock(&self.0).clone();
        let mut copies = Vec::new();
        for (key, keyval, value) in all {
            if let Some(copy) = keyval.call_copy(object, key, value)? {
                copies.push((key, keyval, copy));
            }
        }
        Ok(Self(Mutex::new(copies)))
    }
}

impl Keyval {
    fn call_copy(&self, object: usize, key: c_int, value: Word) -> Answer<Option<Word>> {
        match self.copy {
            0 => return Ok(None),
            1 => return Ok(Some(value)),
            _ => {}
        }
        let (mut copy, mut is_copied) = (std::ptr::null_mut(), 0);
        // SAFETY: a function of the program, for objects of this kind.
        let code = unsafe {
            let function = transmute::<usize, CopyFn>(self.copy);
            function(object, key, self.extra.0, value.0, &raw mut copy, &raw mut is_copied)
        };
        answered(code)?;
        Ok((is_copied != 0).then_some(Word(copy)))
    }

    fn call_delete(&self, object: usize, key: c_int, value: Word) -> Answer {
        if self.delete == 0 {
            return Ok(());
        }
        // SAFETY: as in `call_copy`.
        let code = unsafe {
            transmute::<usize, DeleteFn>(self.delete)(object, key, value.0, self.extra.0)
        };
        answered(code)
    }
}

fn answered(code: c_int) -> Answer {
    match code {
        abi::SUCCESS => Ok(()),
        _ => Err(Fault::new(code, "the program's function for an attribute has failed")),
    }
}
