//! The drive's own rate, to measure the languages against.
