//! A port: what all connections of one listener share.

use crate::channel::Channel;
use crate::config::Listen;
use crate::limits::Limits;
use crate::metrics::Metrics;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// The state that all connections of one listener share.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub listen: Arc<Listen>,
    pub channel: Arc<Channel>,
    pub limits: Arc<Limits>,
    pub metrics: Arc<Metrics>,
    /// A request that reads a log over HTTP holds one: readers have buffers of their own (W8).
    pub readers: Arc<Semaphore>,
    /// Becomes true when the server drains.
    pub draining: watch::Receiver<bool>,
}
