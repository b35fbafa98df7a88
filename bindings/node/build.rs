//! Keeps the library loaded when a worker thread of Node.js exits, because other threads may still
//! use it. It is a separate file because cargo runs it.

fn main() {
    napi_build::setup();
}
