//! The choice among the providers.

use super::config::{OfiConfig, OpenError, ProgressMode};
use super::sys::*;
use crate::foreign::owned;
use core::ffi::CStr;
use std::ffi::CString;

/// The provider that was chosen from the offers of `fi_getinfo`.
pub(super) struct Choice {
    pub library: &'static Library,
    pub info: FiInfo<'static>,
    pub facts: Facts,
}

/// The properties that the chosen provider reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The provider, with its layers.
    pub provider: String,
    /// The device.
    pub device: String,
    /// The network.
    pub fabric: String,
    /// libfabric's number for the form of addresses.
    pub address_format: u32,
    /// libfabric's memory registration mode bits.
    pub mr_mode: i32,
    /// The bytes of a key that a caller chooses.
    pub key_bytes: usize,
    /// The longest message that may be injected.
    pub inject_bytes: usize,
    /// The longest single transfer.
    pub message_bytes_max: u64,
    /// The number of operations that its transmit queue holds.
    pub depth: usize,
    /// libfabric's order bits.
    pub msg_order: u64,
    /// Whether the provider promises that a completion means delivery.
    pub delivery: bool,
    /// Whether the provider reports atomics.
    pub atomics: bool,
    /// Whether the provider reports automatic progress: peers are served without a
    /// poll.
    pub auto_progress: bool,
}

impl Choice {
    pub(super) fn new(config: &OfiConfig) -> Result<Self, OpenError> {
        let text = |text: &Option<String>| {
            text.as_deref().map(CString::new).transpose().map_err(|_| OpenError::ZeroByte)
        };
        let (provider, source, device) =
            (text(&config.provider)?, text(&config.source)?, text(&config.device)?);
        let library: &'static Library = Box::leak(Box::new(Library::load()?));
        let mut code = ENODATA;
        for (atomics, delivery) in [(true, true), (true, false), (false, true), (false, false)] {
            let hints = hints(library, config, provider.as_deref(), device.as_deref())?;
            // SAFETY: the library made the hints, with all their parts.
            unsafe {
                if atomics {
                    (*hints.raw()).caps |= FI_ATOMIC;
                }
                if delivery {
                    (*(*hints.raw()).tx_attr).op_flags = FI_DELIVERY_COMPLETE;
                }
            }
            match library.getinfo(source.as_deref(), &hints) {
                Ok(list) => {
                    let info = list.first().ok_or(no_memory("fi_dupinfo"))?;
                    // SAFETY: the library made the info.
                    let facts = unsafe { Facts::of(info.raw(), atomics, delivery) };
                    return Ok(Self { library, info, facts });
                }
                Err(error) => code = error,
            }
        }
        Err(OpenError::NoProvider { code })
    }
}

fn hints(
    library: &'static Library,
    config: &OfiConfig,
    provider: Option<&CStr>,
    device: Option<&CStr>,
) -> Result<FiInfo<'static>, OpenError> {
    let hints = library.hints().ok_or(no_memory("fi_allocinfo"))?;
    // SAFETY: the library made the hints, with all their parts; strings are
    // duplicated, because the library frees them.
    unsafe {
        let info = &mut *hints.raw();
        info.caps = FI_RMA | FI_MSG;
        info.mode = FI_CONTEXT | FI_CONTEXT2;
        (*info.ep_attr).type_ = FI_EP_RDM;
        let domain = &mut *info.domain_attr;
        domain.threading = FI_THREAD_DOMAIN;
        domain.resource_mgmt = FI_RM_ENABLED;
        domain.mr_mode = FI_MR_LOCAL
            | FI_MR_RAW
            | FI_MR_VIRT_ADDR
            | FI_MR_ALLOCATED
            | FI_MR_PROV_KEY
            | FI_MR_ENDPOINT;
        domain.data_progress = match config.progress {
            ProgressMode::Manual => FI_PROGRESS_MANUAL,
            ProgressMode::Auto => FI_PROGRESS_AUTO,
        };
        match provider {
            Some(name) => (*info.fabric_attr).prov_name = duplicated(name),
            // Not a provider that reaches only this node.
            None => info.caps |= FI_REMOTE_COMM,
        }
        if let Some(name) = device {
            domain.name = duplicated(name);
        }
    }
    Ok(hints)
}

impl Facts {
    /// Whether a packet arrives after the puts that were posted before it on the
    /// same endpoint, when their bytes have landed.
    pub const fn sends_after_writes(&self) -> bool {
        self.msg_order & FI_ORDER_SAW != 0
    }

    /// # Safety
    ///
    /// The library must have made `info`, with all its parts.
    unsafe fn of(info: *const fi_info, atomics: bool, delivery: bool) -> Self {
        // SAFETY: the caller guarantees that all parts are there.
        unsafe {
            let info = &*info;
            let (tx, domain) = (&*info.tx_attr, &*info.domain_attr);
            Self {
                provider: owned((*info.fabric_attr).prov_name),
                device: owned(domain.name),
                fabric: owned((*info.fabric_attr).name),
                address_format: info.addr_format,
                mr_mode: domain.mr_mode,
                key_bytes: domain.mr_key_size,
                inject_bytes: tx.inject_size,
                message_bytes_max: (*info.ep_attr).max_msg_size as u64,
                depth: tx.size,
                msg_order: tx.msg_order,
                delivery,
                atomics,
                auto_progress: domain.data_progress == FI_PROGRESS_AUTO,
            }
        }
    }
}

const fn no_memory(name: &'static str) -> OpenError {
    OpenError::Call { name, code: ENOMEM }
}
