//! Logs and databases that people append to: each message durable before its producer goes on.

pub mod fjall;
pub mod okaywal;
pub mod redis;
pub mod sqlite;
