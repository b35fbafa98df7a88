//! Sets the name under which programs load the shared library (its soname). It is a separate file
//! because cargo runs it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwrote.so.0");
}
