//! Builds again when a language's folder changes: what is embedded from there is not watched by itself.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../langs");
}
