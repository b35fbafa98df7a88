//! Builds again when a language's folder changes: cargo does not watch embedded files by itself.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=langs");
}
