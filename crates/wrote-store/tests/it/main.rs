//! Tests of shipping and reading with stores in memory and in folders, with and without faults.

mod faults;
mod faulty;
mod reading;
mod requests;
mod shipping;
mod support;
