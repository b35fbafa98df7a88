//! Tests of shipping and reading: against stores in memory and in folders, whole and faulty.

mod faults;
mod faulty;
mod reading;
mod requests;
mod shipping;
mod support;
