//! Rebuilds when a language's folder or a program of `wrote fit` changes, because cargo does not
//! watch embedded files.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=langs");
    println!("cargo::rerun-if-changed=programs");
}
