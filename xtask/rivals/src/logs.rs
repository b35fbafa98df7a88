//! Logs and databases, with each message durable before its producer continues.

pub mod fjall;
pub mod okaywal;
pub mod redis;
pub mod sqlite;
