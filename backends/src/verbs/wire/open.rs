//! A wire is opened: its device, its queues, and the CM endpoint.

use super::super::cm::{self, CmEndpoint};
use super::super::config::{OpenError, VerbsConfig};
use super::super::description::QpCounters;
use super::super::device::VerbsDevice;
use super::super::pair::QpParams;
use super::request::SendRequest;
use super::{VerbsWire, nothing};
use crate::net::ZeroedPages;
use core::ptr::null_mut;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tsumugi_core::mem::Rank;

impl VerbsWire {
    /// Opens a wire for `contexts` contexts, of which `receives` are for packets
    /// that come.
    ///
    /// # Errors
    ///
    /// As [`VerbsDomain::open`](crate::verbs::VerbsDomain::open).
    pub fn open(
        config: &VerbsConfig,
        own: Rank,
        contexts: usize,
        receives: usize,
    ) -> Result<Self, OpenError> {
        let device = VerbsDevice::open(config)?;
        let qp_params = QpParams {
            cq: null_mut(),
            srq: null_mut(),
            depth: contexts as u32,
            inline_bytes: config.inline_bytes_max as u32,
            timeout: config.timeout,
        };
        let mut wire = Self {
            device,
            qp_params,
            channel: null_mut(),
            cm: None,
            target: None,
            spare_dcis: Vec::new(),
            own,
            job: config.job,
            pairs_max: config.pairs_max,
            connect_timeout: Duration::from_millis(config.connect_timeout_ms.into()),
            connections: Vec::new(),
            passive_qps: VecDeque::new(),
            requests: ZeroedPages::new(contexts * size_of::<SendRequest>()),
            contexts,
            owners: vec![0; contexts].into(),
            generations: vec![0; contexts + cm::COUNT].into(),
            touched: Vec::with_capacity(config.pairs_max),
            unsent: VecDeque::with_capacity(contexts),
            completions: Box::new(core::array::from_fn(|_| nothing())),
            attempt: 0,
            clock: 0,
            qps: 0,
            connecting: 0,
            full_since: None,
            retried: Instant::now(),
            counters: QpCounters::default(),
        };
        wire.open_queues(config.event, contexts, receives)?;
        wire.try_inline()?;
        if config.dct {
            wire.open_dct();
        }
        let failed = |code| OpenError::Call { name: "ibv_create_qp", code };
        let mut cm = CmEndpoint::open(&wire.device, &wire.qp_params, contexts).map_err(failed)?;
        for slot in 0..cm::RECEIVES {
            cm.post_receive(slot, wire.wr_id(contexts + slot));
        }
        wire.cm = Some(cm);
        Ok(wire)
    }
}
