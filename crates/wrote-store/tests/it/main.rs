//! Tests of shipping and reading: against stores in memory and in folders, whole and faulty.

mod faults;
mod faulty;
mod reading;
mod shipping;
mod support;
