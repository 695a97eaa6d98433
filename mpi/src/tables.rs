//! The objects of the job by their handles.

use crate::abi::{self, MPI_Comm, MPI_Datatype, MPI_Errhandler, MPI_Group, MPI_Info, MPI_Op};
use crate::arguments::count;
use crate::fault::{Answer, Fault, fail, need};
use crate::job::Job;
use crate::object::buffered::Buffered;
use crate::object::communicator::{CommRef, Communicator};
use crate::object::datatype::{Datatype, DatatypeRef};
use crate::object::errhandler::ErrhandlerRef;
use crate::object::group::RankGroup;
use crate::object::info::Info;
use crate::object::operation::OpRef;
use crate::object::overlap::{Region, check_disjoint};
use crate::object::table::lock;
use std::ffi::c_void;
use std::sync::Arc;

impl Job {
    /// The communicator of a handle.
    #[inline]
    pub(crate) fn comm(&'static self, handle: MPI_Comm) -> Answer<CommRef> {
        match handle {
            MPI_Comm::WORLD => Ok(CommRef::Given(&self.world)),
            MPI_Comm::SELF => Ok(CommRef::Given(&self.own)),
            _ => match self.comms.get(handle.0) {
                Some(comm) => Ok(CommRef::Made(comm)),
                None => Err(no_comm(handle)),
            },
        }
    }

    /// Adds a communicator, and returns its handle.
    pub(crate) fn add_comm(&self, comm: Communicator) -> Answer<MPI_Comm> {
        let comm = Arc::new(comm);
        let handle = MPI_Comm(added(self.comms.add(comm.clone()), "communicators")?);
        comm.set_handle(handle);
        Ok(handle)
    }

    pub(crate) fn group(&self, handle: MPI_Group) -> Answer<Arc<RankGroup>> {
        match handle {
            MPI_Group::EMPTY => Ok(Arc::default()),
            MPI_Group::NULL => fail!(abi::ERR_GROUP, "the group is MPI_GROUP_NULL"),
            _ => self.groups.get(handle.0).ok_or_else(|| {
                Fault::new(abi::ERR_GROUP, format_args!("no group has the handle {:#x}", handle.0))
            }),
        }
    }

    /// Adds a group, and returns its handle.
    pub(crate) fn add_group(&self, group: RankGroup) -> Answer<MPI_Group> {
        if group.ranks.is_empty() {
            return Ok(MPI_Group::EMPTY);
        }
        Ok(MPI_Group(added(self.groups.add(Arc::new(group)), "groups")?))
    }

    /// The datatype of a handle.
    #[inline]
    pub(crate) fn datatype(&self, handle: MPI_Datatype) -> Answer<DatatypeRef> {
        match DatatypeRef::given(handle) {
            Some(given) => Ok(given),
            None => match self.datatypes.get(handle.0) {
                Some(made) => Ok(DatatypeRef::Made(made)),
                None => Err(no_datatype(handle)),
            },
        }
    }

    pub(crate) fn add_datatype(&self, datatype: Datatype) -> Answer<MPI_Datatype> {
        let datatype = Arc::new(datatype);
        let handle = MPI_Datatype(added(self.datatypes.add(datatype.clone()), "datatypes")?);
        datatype.set_handle(handle);
        Ok(handle)
    }

    pub(crate) fn operation(&self, handle: MPI_Op) -> Answer<OpRef> {
        OpRef::given(handle).map_or_else(
            || {
                need!(handle != MPI_Op::NULL, abi::ERR_OP, "the operation is MPI_OP_NULL");
                self.operations.get(handle.0).map(OpRef::Made).ok_or_else(|| {
                    let text = format_args!("no operation has the handle {:#x}", handle.0);
                    Fault::new(abi::ERR_OP, text)
                })
            },
            Ok,
        )
    }

    pub(crate) fn info(&self, handle: MPI_Info) -> Answer<Arc<Info>> {
        self.infos.get(handle.0).ok_or_else(|| {
            let text = format_args!("no info object has the handle {:#x}", handle.0);
            Fault::new(abi::ERR_INFO, text)
        })
    }

    /// The error handler of a handle.
    pub(crate) fn errhandler(&self, handle: MPI_Errhandler) -> Answer<ErrhandlerRef> {
        match handle {
            MPI_Errhandler::RETURN | MPI_Errhandler::FATAL | MPI_Errhandler::ABORT => {
                Ok(ErrhandlerRef::Given(handle))
            }
            _ => match self.errhandlers.get(handle.0) {
                Some(handler) => Ok(ErrhandlerRef::Made(handler)),
                None => {
                    fail!(abi::ERR_ERRHANDLER, "no error handler has the handle {:#x}", handle.0)
                }
            },
        }
    }

    /// Gives the program a handle of an error handler, which it frees.
    pub(crate) fn give_errhandler(&self, handler: &ErrhandlerRef) -> Answer<MPI_Errhandler> {
        let made = match handler {
            ErrhandlerRef::Given(handle) => return Ok(*handle),
            ErrhandlerRef::Made(made) => made,
        };
        let mut given = made.given();
        if given.count == 0 {
            let handle = self.errhandlers.add(made.clone());
            given.handle = MPI_Errhandler(added(handle, "error handlers")?);
        }
        given.count += 1;
        Ok(given.handle)
    }

    /// Frees a handle of an error handler.
    pub(crate) fn free_errhandler(&self, handle: MPI_Errhandler) -> Answer {
        let ErrhandlerRef::Made(made) = self.errhandler(handle)? else { return Ok(()) };
        let mut given = made.given();
        given.count = given.count.saturating_sub(1);
        let removed = (given.count == 0).then(|| self.errhandlers.remove(handle.0));
        drop(given);
        drop(removed);
        Ok(())
    }

    /// In the checking mode checks that elements that are sent and others that are received are
    /// disjoint.
    pub(crate) fn check_apart(
        &self,
        sent: Elements<*const c_void>,
        received: Elements<*mut c_void>,
    ) -> Answer {
        if !self.checks {
            return Ok(());
        }
        let (into, count, datatype) = received;
        check_disjoint(&self.region(sent)?, &self.region((into.cast_const(), count, datatype))?)
    }

    /// The memory of elements.
    pub(crate) fn region(&self, (at, number, datatype): Elements<*const c_void>) -> Answer<Region> {
        let mut region = Region::default();
        region.add(at.cast(), count(number, "elements")?, self.datatype(datatype)?);
        Ok(region)
    }

    /// Calls a function with the buffer of a communicator's buffered sends: its own one, or that
    /// of the program, or that of a session.
    pub(crate) fn with_buffer_of<R>(
        &self,
        comm: &Communicator,
        then: impl FnOnce(&Buffered) -> R,
    ) -> R {
        if comm.buffered.is_attached() {
            return then(&comm.buffered);
        }
        let session = || {
            let open = lock(&self.open_sessions);
            open.iter().find(|session| session.buffered.is_attached()).cloned()
        };
        match session().filter(|_| !self.buffered.is_attached()) {
            Some(session) => then(&session.buffered),
            None => then(&self.buffered),
        }
    }
}

/// Elements of a call: where the first lies, their number, and their datatype.
pub(crate) type Elements<P> = (P, i64, MPI_Datatype);

/// The handle of an object that was added to a table.
pub(crate) fn added(handle: Option<usize>, what: &str) -> Answer<usize> {
    handle.ok_or_else(|| Fault::new(abi::ERR_NO_MEM, format_args!("there are too many {what}")))
}

#[cold]
fn no_comm(handle: MPI_Comm) -> Fault {
    let text = match handle {
        MPI_Comm::NULL => "the communicator is MPI_COMM_NULL".to_owned(),
        MPI_Comm(bits) if bits >= abi::OWN_FROM => {
            format!("no communicator has the handle {bits:#x}: it was freed, or never made")
        }
        MPI_Comm(bits) => format!("{bits:#x} is no communicator"),
    };
    Fault::new(abi::ERR_COMM, text)
}

#[cold]
fn no_datatype(handle: MPI_Datatype) -> Fault {
    let text = match handle {
        MPI_Datatype::NULL => "the datatype is MPI_DATATYPE_NULL".to_owned(),
        MPI_Datatype(bits) => {
            format!("no datatype has the handle {bits:#x}: it was freed, or never made")
        }
    };
    Fault::new(abi::ERR_TYPE, text)
}
