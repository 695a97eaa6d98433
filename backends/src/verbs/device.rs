//! An opened device: its context and a protection domain.

use super::address::{Address, READS_MAX};
use super::config::{OpenError, VerbsConfig};
use super::dct::support::DctSupport;
use super::dct::sys::Driver;
use super::libraries::VerbsLibraries;
use super::sys::*;
use crate::foreign::owned;
use crate::net::{Mr, WireKey};
use core::ffi::c_int;
use core::ptr::{null_mut, without_provenance_mut};
use tsumugi_core::mem::Access;

/// An opened device; see the module.
pub(super) struct VerbsDevice {
    pub library: &'static Library,
    pub context: *mut ibv_context,
    pub pd: *mut ibv_pd,
    /// The driver's own library, for functions that libibverbs does not have.
    pub driver: Option<&'static Driver>,
    pub facts: Facts,
}

/// The properties that a device reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The name of the device.
    pub device: String,
    /// The port that is used.
    pub port: u8,
    /// Whether it is Soft-RoCE: the kernel's processor moves the bytes, and a
    /// word may arrive in parts.
    pub software: bool,
    /// Whether the port is on Ethernet (RoCE), and not on InfiniBand.
    pub ethernet: bool,
    /// The port's address.
    pub gid: [u8; 16],
    /// The index of this address among the port's addresses.
    pub gid_index: u8,
    /// The port's number in its subnet.
    pub lid: u16,
    /// The bytes of a packet on the wire.
    pub mtu_bytes: usize,
    /// The longest single transfer.
    pub message_bytes_max: u64,
    /// The number of requests that a pair holds.
    pub depth: usize,
    /// The number of completions that a queue holds.
    pub completions_max: usize,
    /// The number of queue pairs of the device.
    pub pairs_max: usize,
    /// The number of gets and atomics that a pair can have under way as their
    /// target.
    pub reads_max: u8,
    /// The same, as their initiator.
    pub reads_asked_max: u8,
    /// The atomics on words of 8 bytes.
    pub atomics: Atomics,
    /// The state of the dynamically connected transport.
    pub dct: DctSupport,
}

/// With respect to which other accesses a device's atomics are atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomics {
    /// The device has no atomics.
    None,
    /// To those of the same device, and not to the processor's.
    VerbsDevice,
    /// To the processor's too.
    Everybody,
}

// SAFETY: libibverbs' objects are not bound to a thread.
unsafe impl Send for VerbsDevice {}

impl VerbsDevice {
    pub(super) fn open(config: &VerbsConfig) -> Result<Self, OpenError> {
        let VerbsLibraries { verbs: library, driver } = match config.libraries {
            Some(given) => given,
            None => VerbsLibraries::installed()?,
        };
        let mut count: c_int = 0;
        // SAFETY: the count is a local; the list is freed below.
        let list = unsafe { (library.ibv_get_device_list)(&mut count) };
        if list.is_null() {
            return Err(OpenError::NoDevice { devices: 0 });
        }
        let devices = usize::try_from(count).unwrap_or(0);
        let mut found = Err(OpenError::NoDevice { devices });
        for at in 0..devices {
            // SAFETY: `at` is in the list, which is still allocated; the device's
            // name is a C string.
            let (raw, name) = unsafe {
                let raw = *list.add(at);
                (raw, owned((library.ibv_get_device_name)(raw)))
            };
            if config.device.as_ref().is_some_and(|wanted| *wanted != name) {
                continue;
            }
            found = Self::open_one((library, driver), raw, &name, config, devices);
            if found.is_ok() {
                break;
            }
        }
        // SAFETY: the library made the list; an opened device stays.
        unsafe { (library.ibv_free_device_list)(list) };
        found
    }

    fn open_one(
        (library, driver): (&'static Library, Option<&'static Driver>),
        raw: *mut Opaque,
        name: &str,
        config: &VerbsConfig,
        devices: usize,
    ) -> Result<Self, OpenError> {
        let failed = |name| OpenError::Call { name, code: errno() };
        // SAFETY: the device is in the list.
        let context = unsafe { (library.ibv_open_device)(raw) };
        if context.is_null() {
            return Err(failed("ibv_open_device"));
        }
        let facts = Facts {
            device: name.to_owned(),
            port: config.port,
            software: false,
            ethernet: false,
            gid: [0; 16],
            gid_index: 0,
            lid: 0,
            mtu_bytes: 0,
            message_bytes_max: 0,
            depth: 0,
            completions_max: 0,
            pairs_max: 0,
            reads_max: 0,
            reads_asked_max: 0,
            atomics: Atomics::None,
            dct: DctSupport::NoLibrary,
        };
        let mut device = Self { library, context, pd: null_mut(), driver, facts };
        device.ask(config, devices)?;
        // SAFETY: the device is in the list.
        device.facts.dct = unsafe { DctSupport::of(raw, driver) };
        // SAFETY: the context is open.
        device.pd = unsafe { (library.ibv_alloc_pd)(context) };
        if device.pd.is_null() {
            return Err(failed("ibv_alloc_pd"));
        }
        Ok(device)
    }

    /// Fills the facts.
    fn ask(&mut self, config: &VerbsConfig, devices: usize) -> Result<(), OpenError> {
        // SAFETY: structures of numbers, for which zeroes are valid.
        let (mut attr, mut port): (ibv_device_attr, ibv_port_attr) =
            unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
        // SAFETY: the context is open, and the results go to locals.
        let answers = unsafe {
            [
                ("ibv_query_device", (self.library.ibv_query_device)(self.context, &mut attr)),
                (
                    "ibv_query_port",
                    (self.library.ibv_query_port)(self.context, config.port, &mut port),
                ),
            ]
        };
        if let Some(&(name, code)) = answers.iter().find(|(_, code)| *code != 0) {
            return Err(OpenError::Call { name, code });
        }
        if port.state != IBV_PORT_ACTIVE {
            return Err(OpenError::NoDevice { devices });
        }
        let number = |value: c_int| usize::try_from(value).unwrap_or(0);
        let reads = |value: c_int| value.clamp(1, READS_MAX) as u8;
        let facts = &mut self.facts;
        facts.software = attr.vendor_id == NO_VENDOR;
        facts.ethernet = u32::from(port.link_layer) == IBV_LINK_LAYER_ETHERNET;
        facts.lid = port.lid;
        facts.mtu_bytes = 128 << port.active_mtu.clamp(IBV_MTU_256, IBV_MTU_4096);
        facts.message_bytes_max = port.max_msg_sz.into();
        facts.depth = number(attr.max_qp_wr);
        facts.completions_max = number(attr.max_cqe);
        facts.pairs_max = number(attr.max_qp);
        facts.reads_max = reads(attr.max_qp_rd_atom);
        facts.reads_asked_max = reads(attr.max_qp_init_rd_atom);
        facts.atomics = match attr.atomic_cap {
            IBV_ATOMIC_NONE => Atomics::None,
            IBV_ATOMIC_GLOB => Atomics::Everybody,
            _ => Atomics::VerbsDevice,
        };
        let count = number(port.gid_tbl_len).min(255) as u8;
        let (index, gid) = self.choose_gid(config.gid_index, count).ok_or(OpenError::NoAddress)?;
        (self.facts.gid_index, self.facts.gid) = (index, gid.raw);
        Ok(())
    }

    fn choose_gid(&self, wanted: Option<u8>, count: u8) -> Option<(u8, ibv_gid)> {
        if let Some(index) = wanted {
            return Some((index, self.gid(index)?));
        }
        let mut all = (0..count).filter_map(|index| Some((index, self.gid(index)?)));
        if !self.facts.ethernet {
            return all.next();
        }
        let all: Vec<_> = all.filter(|&(index, _)| self.is_routable(index)).collect();
        let is_v4 = |gid: &ibv_gid| gid.raw[..12] == V4_MAPPED;
        all.iter().find(|(_, gid)| is_v4(gid)).or(all.first()).copied()
    }

    fn gid(&self, index: u8) -> Option<ibv_gid> {
        let mut gid = ibv_gid::default();
        // SAFETY: the context is open, and the result goes to a local.
        let answer = unsafe {
            (self.library.ibv_query_gid)(self.context, self.facts.port, index.into(), &mut gid)
        };
        (answer == 0 && gid != ibv_gid::default()).then_some(gid)
    }

    /// Whether an address is one of RoCE v2; true if the system does not report it.
    fn is_routable(&self, index: u8) -> bool {
        let Facts { device, port, .. } = &self.facts;
        let path = format!("/sys/class/infiniband/{device}/ports/{port}/gid_attrs/types/{index}");
        std::fs::read_to_string(path).map_or(true, |kind| kind.trim() == "RoCE v2")
    }

    /// The address of a CM endpoint of this device, and of a target, if `target` is not
    /// 0.
    pub(super) fn address(&self, cm_qp: u32, target: u32) -> Address {
        let mtu = (self.facts.mtu_bytes / 128).ilog2() as u8;
        Address {
            gid: ibv_gid { raw: self.facts.gid },
            cm_qp,
            lid: self.facts.lid,
            mtu,
            reads_max: self.facts.reads_max,
            target,
        }
    }

    /// The path to a peer.
    pub(super) fn ah_attr(&self, to: &Address) -> ibv_ah_attr {
        ibv_ah_attr {
            grh: ibv_global_route {
                dgid: to.gid,
                flow_label: 0,
                sgid_index: self.facts.gid_index,
                hop_limit: 64,
                traffic_class: 0,
            },
            dlid: to.lid,
            sl: 0,
            src_path_bits: 0,
            static_rate: 0,
            // Ethernet always needs the global header; InfiniBand needs it for
            // other subnets.
            is_global: (self.facts.ethernet || to.gid.raw[..8] != self.facts.gid[..8]).into(),
            port_num: self.facts.port,
        }
    }

    /// Makes an address handle, which is a path for datagrams.
    pub(super) fn create_ah(&self, to: &Address) -> Result<*mut ibv_ah, c_int> {
        // SAFETY: the protection domain is open.
        let ah = unsafe { (self.library.ibv_create_ah)(self.pd, &mut self.ah_attr(to)) };
        if ah.is_null() { Err(errno()) } else { Ok(ah) }
    }

    pub(super) fn destroy_ah(&self, ah: *mut ibv_ah) {
        if !ah.is_null() {
            // SAFETY: this crate made the handle, and the caller does not use it
            // any more.
            unsafe { (self.library.ibv_destroy_ah)(ah) };
        }
    }

    /// Registers memory.
    ///
    /// # Safety
    ///
    /// The memory must stay mapped until [`close_mr`](Self::close_mr), and must be
    /// nothing but bytes that peers may change as far as `access` says.
    pub(super) unsafe fn register(
        &self,
        base: *mut u8,
        bytes: u64,
        access: Access,
    ) -> Result<Mr, c_int> {
        let mut remote = match access {
            Access::Local => 0,
            Access::Read => IBV_ACCESS_REMOTE_READ,
            Access::ReadWrite => IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
        };
        if access == Access::ReadWrite && self.facts.atomics != Atomics::None {
            remote |= IBV_ACCESS_REMOTE_ATOMIC;
        }
        let access = (remote | IBV_ACCESS_LOCAL_WRITE) as c_int;
        // SAFETY: the protection domain is open; the caller guarantees the memory.
        let raw =
            unsafe { (self.library.ibv_reg_mr)(self.pd, base.cast(), bytes as usize, access) };
        if raw.is_null() {
            return Err(errno());
        }
        // SAFETY: the library made the object.
        let (lkey, rkey) = unsafe { ((*raw).lkey, (*raw).rkey) };
        Ok(Mr {
            raw: raw.cast(),
            // The calls take a number (the local key) in this place.
            desc: without_provenance_mut(lkey as usize),
            key: WireKey::of(rkey.into()),
            origin: base as u64,
        })
    }

    /// Ends a registration.
    pub(super) fn close_mr(&self, mr: &Mr) {
        // SAFETY: it was registered here, and is closed once, because its holder
        // gives it up.
        unsafe { (self.library.ibv_dereg_mr)(mr.raw.cast()) };
    }
}

impl Drop for VerbsDevice {
    fn drop(&mut self) {
        // SAFETY: both are owned or null; all objects that use them have ended.
        unsafe {
            if !self.pd.is_null() {
                (self.library.ibv_dealloc_pd)(self.pd);
            }
            (self.library.ibv_close_device)(self.context);
        }
    }
}

/// The `errno` of the last call that returned null.
pub(super) fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().filter(|&code| code != 0).unwrap_or(libc::EIO)
}

/// The vendor number of a device that is no hardware.
const NO_VENDOR: u32 = 0xff_ffff;

const V4_MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
