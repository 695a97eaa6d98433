//! The conventions of error messages, for every variant.

use super::{ArrayError, Error, MessageError, NoNetwork, WindowError};
use std::error::Error as _;
use std::fmt;
use tsumugi_backends::boot::BootMethod;
use tsumugi_backends::boot::{CardError, ChooseError};
use tsumugi_core::am::{CallError, SendError};
use tsumugi_core::boot::BootError;
use tsumugi_core::coll::CollError;
use tsumugi_core::completion::Why;
use tsumugi_core::mem::{AddrError, LocalRank, Rank, RegisterError};
use tsumugi_core::wait::Interrupted;
use tsumugi_gas::container::ContainerError;
use tsumugi_gas::heap::HeapError;
use tsumugi_gas::order::Full;
use tsumugi_gas::table::NameError;
use tsumugi_pvas::config::ConfigError;
use tsumugi_pvas::{AttachError, LaunchError, SpaceError};
use tsumugi_ult::sync::channel::{RecvError, SendError as ChannelSendError, SendWithinError};
use tsumugi_ult::{Scheduler, SpawnError, StackArea, StartError, spawn};

const LOST: AddrError = AddrError::PeerLost { rank: Rank(3) };

/// A cause of a cause.
#[derive(Debug)]
struct Outer(std::io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file cannot be read")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// A panic, as `join` returns it.
fn joined() -> tsumugi_ult::JoinError {
    let area = StackArea::map(4 << 20).unwrap();
    let config = tsumugi_ult::Config::new(area).main_stack_bytes(256 << 10);
    let silent = || std::panic::resume_unwind(Box::new("no paper"));
    Scheduler::new(config).unwrap().run(|| spawn(move || -> () { silent() }).join().unwrap_err())
}

/// One error of each variant, with its name.
fn all() -> Vec<(&'static str, Error)> {
    let wrong = ConfigError::OutOfBounds {
        name: "TSUMUGI_X",
        kind: tsumugi_pvas::config::ValueKind::Number,
        value: 0,
        min: 1,
        max: 9,
    };
    vec![
        ("Addr", LOST.into()),
        ("Coll", CollError::Addr(LOST).into()),
        ("Call", CallError::PeerLost { rank: Rank(3) }.into()),
        ("Send", SendError::Busy(Why::NoTag).into()),
        ("Message", MessageError::PeerLost { rank: Rank(3) }.into()),
        ("Register", RegisterError::TableFull { slots: 9 }.into()),
        ("OutOfMemory", Error::OutOfMemory { bytes: 8, variable: "TSUMUGI_HEAP_BYTES" }),
        ("LengthsDiffer", Error::LengthsDiffer { own: 4, rank: Rank(0), other: 5 }),
        ("HomesDiffer", Error::HomesDiffer { own: Rank(4), rank: Rank(0), other: Rank(5) }),
        ("Access", Error::Access(AddrError::PeerLost { rank: Rank(3) })),
        ("Name", NameError::Full { color: 1 }.into()),
        ("Full", Full::Operations.into()),
        ("Container", ContainerError::Heap(HeapError::NoMemory { bytes: 8 }).into()),
        ("Array", ArrayError::NotAlone.into()),
        ("Window", WindowError::Held { target: Rank(3) }.into()),
        ("Busy", Error::Busy(Why::NoTag)),
        ("Join", joined().into()),
        ("Spawn", SpawnError::NoScheduler.into()),
        ("Interrupted", Interrupted::TimedOut.into()),
        ("Config", wrong.into()),
        ("Launch", LaunchError::NoProgram.into()),
        ("Attach", AttachError::Missing { name: "TSUMUGI_SIZE" }.into()),
        ("Space", SpaceError::Protect { rank: LocalRank(1), errno: 1 }.into()),
        ("Boot", BootError::PeerLost { rank: Rank(3) }.into()),
        (
            "Choose",
            ChooseError::Boot { method: BootMethod::Pmi, error: BootError::Disconnected }.into(),
        ),
        ("Card", Error::Card { rank: Rank(3), error: CardError::NotACard }),
        (
            "SeveralNodes",
            Error::SeveralNodes { ranks: 4, nodes: 2, hosts: "a, b".into(), why: NoNetwork::Off },
        ),
        ("Network", NoNetwork::Off.into()),
        ("Start", StartError::Workers(0).into()),
        ("Program", Error::program("no paper")),
        ("Other", Error::other(Outer(std::io::ErrorKind::NotFound.into()))),
    ]
}

#[test]
fn each_error_is_a_sentence_and_a_structure() {
    for (name, error) in all() {
        let sentence = error.to_string();
        assert!(sentence.len() > 5 && !sentence.contains('\n'), "{name}: {sentence}");
        // What `fn main() -> Result<(), Error>` prints.
        assert_eq!(format!("{error:?}"), sentence, "{name}");
        let structure = format!("{error:#?}");
        assert!(structure.starts_with(name), "{name}: {structure}");
    }
}

#[test]
fn a_chain_of_sources_says_each_thing_once() {
    for (name, error) in all() {
        let (mut messages, mut next) = (vec![error.to_string()], error.source());
        while let Some(source) = next {
            messages.push(source.to_string());
            next = source.source();
        }
        for (index, message) in messages.iter().enumerate() {
            let others = messages.iter().enumerate().filter(|(other, _)| *other != index);
            for (_, other) in others {
                assert!(!other.contains(message), "{name}: {message:?} is in {other:?}");
            }
        }
        assert_eq!(messages.len(), if name == "Other" { 2 } else { 1 }, "{name}: {messages:?}");
    }
}

#[test]
fn a_cause_with_a_variant_of_its_own_becomes_it() {
    let access = AddrError::PeerLost { rank: Rank(3) };
    assert!(matches!(Error::from(ContainerError::Access(access)), Error::Access(_)));
    assert!(matches!(Error::from(HeapError::Access(access)), Error::Access(_)));
    assert!(matches!(Error::from(ArrayError::Addr(LOST)), Error::Addr(_)));
    assert!(matches!(Error::from(WindowError::Addr(LOST)), Error::Addr(_)));
    let late = SendWithinError::Interrupted(Interrupted::TimedOut, ());
    assert!(matches!(Error::from(late), Error::Interrupted(_)));
}

#[test]
fn another_error_can_be_had_back() {
    let Error::Other(error) = Error::from(RecvError) else { panic!("no variant of its own") };
    assert!(error.is::<RecvError>());
    // A value that borrows, and that no other thread may see, does not prevent it.
    let text = "text".to_owned();
    let Error::Other(error) = ChannelSendError(std::rc::Rc::new(&text)).into() else {
        panic!("no variant of its own")
    };
    assert!(error.is::<ChannelSendError<()>>());
}

#[test]
fn each_error_that_a_program_may_get_becomes_one_of_all() {
    use tsumugi_core::completion::{Busy, Overdue};
    use tsumugi_gas::address::{GlobalAddr, LeavesRegion, SplitError};
    use tsumugi_gas::lock::{AccessRefused, TreeError};
    use tsumugi_pvas::{MeetError, cma, heap, partition, system};
    use tsumugi_ult::sync::channel::{RecvWithinError, TryRecvError, TrySendError};
    use tsumugi_ult::{Cancelled, Crowded, JoinError, StackError};

    fn becomes<E: std::error::Error + Into<Error>>() {}
    // Those of `all` are checked there.
    becomes::<Busy<u8>>();
    becomes::<Overdue<u8>>();
    becomes::<AddrError<GlobalAddr>>();
    becomes::<LeavesRegion>();
    becomes::<SplitError>();
    becomes::<AccessRefused>();
    becomes::<TreeError>();
    becomes::<HeapError>();
    becomes::<tsumugi_gas::page::ShapeError>();
    becomes::<MeetError>();
    becomes::<cma::CmaError>();
    becomes::<heap::HeapError>();
    becomes::<partition::HeaderError>();
    becomes::<partition::ShapeError>();
    becomes::<system::OldSystem>();
    becomes::<CardError>();
    becomes::<tsumugi_backends::boot::EnvError>();
    becomes::<ChannelSendError<u8>>();
    becomes::<TrySendError<u8>>();
    becomes::<SendWithinError<u8>>();
    becomes::<RecvError>();
    becomes::<TryRecvError>();
    becomes::<RecvWithinError>();
    becomes::<Cancelled>();
    becomes::<Crowded>();
    becomes::<JoinError>();
    becomes::<StackError>();
}

#[test]
fn errors_go_to_other_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Error>();
}
