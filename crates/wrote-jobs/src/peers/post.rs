//! Messages between ranks: all that an implementation of ranks provides.

use std::fmt::Debug;
use std::time::Duration;

/// Carries messages from rank to rank. Messages from one rank to another arrive in order.
pub trait Post: Debug {
    /// The number of this rank, from 0.
    fn rank(&self) -> u32;

    /// The number of ranks.
    fn ranks(&self) -> u32;

    /// The name of the node that this rank is on.
    fn node(&self) -> String;

    /// The time by this rank's clock, in seconds since 1970.
    fn clock_s(&self) -> f64 {
        jiff::Timestamp::now().as_nanosecond() as f64 / 1e9
    }

    /// Sends a message without waiting for its receiver.
    fn send(&self, to: u32, message: Vec<u8>);

    /// Returns the next message with its sender, if there is one.
    fn receive(&self) -> Option<(u32, Vec<u8>)>;

    /// Waits a little for a message, at most `time`.
    fn rest(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
