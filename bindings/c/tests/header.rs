//! Tests that `wrote.h` is the header generated from these sources.

use std::path::Path;

#[test]
fn the_header_in_the_repository_is_the_one_of_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("a config");
    let mut builder = cbindgen::Builder::new().with_config(config);
    // The order in which a person would read them.
    let rooms = "border error writer reader log lines";
    for room in rooms.split(' ') {
        builder = builder.with_src(folder.join("src").join(format!("{room}.rs")));
    }
    let mut header = Vec::new();
    builder.generate().expect("a header").write(&mut header);
    let header = String::from_utf8(header).expect("a text");
    let file = folder.join("include/wrote.h");
    if std::env::var_os("WROTE_UPDATE_HEADER").is_some() {
        std::fs::write(&file, &header).expect("the header is written");
    }
    let found = std::fs::read_to_string(&file).expect("a header");
    assert!(found == header, "wrote.h is old: WROTE_UPDATE_HEADER=1 cargo test --test header");
}

#[test]
fn pkg_config_has_the_version_of_the_library() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("wrote.pc");
    let text = std::fs::read_to_string(file).expect("wrote.pc");
    assert!(text.contains(concat!("\nVersion: ", env!("CARGO_PKG_VERSION"), "\n")));
}
