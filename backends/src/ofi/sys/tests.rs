//! Compares the declared structures with those of the installed headers, if there
//! are any.

use super::*;
use std::collections::HashMap;
use tsumugi_conformance::left_out;

fn of_the_headers() -> Option<HashMap<String, usize>> {
    crate::foreign::of_the_headers("ofi_layout.c", "/usr/include/rdma/fabric.h", "ci/ofi.sh")
}

#[test]
fn layouts_equal_those_of_the_headers() {
    let Some(theirs) = of_the_headers() else { return };
    let mut fields_seen = 0;
    for (name, size, fields) in LAYOUT {
        let of = |what: &str| *theirs.get(what).unwrap_or_else(|| panic!("{what} was not printed"));
        assert!(*size <= of(name), "{name} is larger than the header's");
        for (field, offset) in *fields {
            let what = format!("{name}.{}", field.trim_end_matches('_'));
            assert_eq!(*offset, of(&what), "{what}");
            fields_seen += 1;
        }
    }
    println!("{} structures, {fields_seen} fields", LAYOUT.len());
}

#[test]
fn constants_equal_those_of_the_headers() {
    let Some(theirs) = of_the_headers() else { return };
    macro_rules! same {
        ($($name:ident),* $(,)?) => {
            $(assert_eq!($name as u64 as usize, theirs[stringify!($name)], stringify!($name));)*
        };
    }
    same!(
        FI_MSG,
        FI_RMA,
        FI_ATOMIC,
        FI_READ,
        FI_WRITE,
        FI_RECV,
        FI_TRANSMIT,
        FI_REMOTE_READ,
        FI_REMOTE_WRITE,
        FI_MORE,
        FI_COMPLETION,
        FI_INJECT,
        FI_DELIVERY_COMPLETE,
        FI_REMOTE_COMM,
        FI_SOURCE,
        FI_CONTEXT,
        FI_CONTEXT2,
        FI_ADDR_UNSPEC,
        FI_MR_LOCAL,
        FI_MR_RAW,
        FI_MR_VIRT_ADDR,
        FI_MR_ALLOCATED,
        FI_MR_PROV_KEY,
        FI_MR_ENDPOINT,
        FI_EP_RDM,
        FI_THREAD_DOMAIN,
        FI_RM_ENABLED,
        FI_PROGRESS_AUTO,
        FI_PROGRESS_MANUAL,
        FI_AV_TABLE,
        FI_CQ_FORMAT_MSG,
        FI_WAIT_NONE,
        FI_WAIT_FD,
        FI_GETWAIT,
        FI_ENABLE,
        FI_GET_RAW_MR,
        FI_MAP_RAW_MR,
        FI_UNMAP_KEY,
        FI_UINT32,
        FI_UINT64,
        FI_SUM,
        FI_BOR,
        FI_BAND,
        FI_BXOR,
        FI_ATOMIC_READ,
        FI_ATOMIC_WRITE,
        FI_CSWAP,
        FI_EAVAIL,
    );
}

#[test]
fn loading_the_library_keeps_the_signal_handlers() {
    let caught = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        status.lines().find(|line| line.starts_with("SigCgt")).unwrap().to_owned()
    };
    let before = caught();
    match Library::load() {
        Ok(library) => println!("libfabric {:#x}", library.version()),
        Err(error) => left_out("libfabric's signals", &error.to_string(), "ci/ofi.sh"),
    }
    assert_eq!(caught(), before, "loading the library changed signal handlers");
}
