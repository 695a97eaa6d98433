//! Info objects: keys with values, in the order in which they were set.

use crate::object::table::lock;
use std::sync::Mutex;

/// Keys with values.
#[derive(Default)]
pub(crate) struct Info(pub(crate) Mutex<Vec<(String, String)>>);

impl Info {
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        lock(&self.0).iter().find(|(of, _)| of == key).map(|(_, value)| value.clone())
    }
}

/// What MPI_INFO_ENV says of the process.
pub(crate) fn environment() -> Vec<(String, String)> {
    let command = std::env::args().next();
    let host = host_name();
    let mut keys = vec![("host".to_owned(), host)];
    keys.extend(command.map(|command| ("command".to_owned(), command)));
    let folder = std::env::current_dir().ok().map(|folder| folder.display().to_string());
    keys.extend(folder.map(|folder| ("wdir".to_owned(), folder)));
    keys
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: so many bytes may be written.
    let answer = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    if answer == 0 { String::from_utf8_lossy(&name[..len]).into_owned() } else { "host".into() }
}
