//! Keeps the library loaded when a worker thread of Node.js ends: others may still use it.

fn main() {
    napi_build::setup();
}
