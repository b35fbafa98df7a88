//! The OCI image: one layer with the program, in the layout of the image specification, packed.

use super::archive::{copy, tar};
use super::{VERSION, hashed};
use lab::tools::failure::{Failure, Tried};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The folder in which the program runs: a volume is mounted there.
const DATA: &str = "data";

/// Makes the image of `program` in `folder`. Every file gets the time `date_s`.
pub fn make(program: &Path, folder: &Path, date_s: &str) -> Result<PathBuf, Failure> {
    let tree = tempfile::tempdir_in(folder).tried(folder.display())?;
    let (root, layout) = (tree.path().join("root"), Layout(tree.path().join("layout")));
    copy(program, &root.join("usr/bin/wrote"), 0o755)?;
    std::fs::create_dir(root.join(DATA)).tried(DATA)?;
    let layer = tree.path().join("layer.tar");
    tar(&root, &[DATA, "usr"], &layer, date_s)?;
    let layer = layout.blob("layer.v1.tar", &layer)?;
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": { "Entrypoint": ["/usr/bin/wrote"], "WorkingDir": format!("/{DATA}") },
        // The layer is not compressed: its digest is its files' digest.
        "rootfs": { "type": "layers", "diff_ids": [layer["digest"]] },
    });
    let config = layout.json("config.v1+json", &config)?;
    let manifest = json!({ "schemaVersion": 2, "config": config, "layers": [layer] });
    let mut manifest = layout.json("manifest.v1+json", &manifest)?;
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": VERSION });
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    layout.write("index.json", &index)?;
    layout.write("oci-layout", &json!({ "imageLayoutVersion": "1.0.0" }))?;
    let image = folder.join(format!("wrote-{VERSION}-{}-oci.tar.gz", std::env::consts::ARCH));
    tar(&layout.0, &["blobs", "index.json", "oci-layout"], &image, date_s)?;
    Ok(image)
}

/// Returns this machine's architecture by the names of Go, which the specification prescribes.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The folder of a layout.
struct Layout(PathBuf);

impl Layout {
    /// Copies a file to the place of its digest, and returns its descriptor.
    fn blob(&self, kind: &str, file: &Path) -> Result<Value, Failure> {
        let digest = hashed(file)?;
        copy(file, &self.0.join("blobs/sha256").join(&digest), 0o644)?;
        let bytes = file.metadata().tried(file.display())?.len();
        Ok(json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{digest}"),
            "size": bytes,
        }))
    }

    /// Writes a document as a blob.
    fn json(&self, kind: &str, value: &Value) -> Result<Value, Failure> {
        let draft = tempfile::NamedTempFile::new().tried("a temporary file")?;
        std::fs::write(draft.path(), value.to_string()).tried(kind)?;
        self.blob(kind, draft.path())
    }

    fn write(&self, name: &str, value: &Value) -> Result<(), Failure> {
        let path = self.0.join(name);
        std::fs::write(&path, value.to_string()).tried(path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_blob_is_at_its_digest_and_the_image_holds_the_program() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = folder.path().join("program");
        std::fs::write(&program, "a program").expect("room");
        let image = make(&program, folder.path(), "0").expect("tar and sha256sum");
        let unpacked = folder.path().join("unpacked");
        std::fs::create_dir(&unpacked).expect("room");
        let unpack = |archive: &Path| {
            let mut tar = std::process::Command::new("tar");
            tar.arg("-xf").arg(archive).arg("-C").arg(&unpacked);
            assert!(tar.status().expect("tar").success());
        };
        unpack(&image);
        let read = |path: &Path| -> Value {
            serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
        };
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().and_then(|of| of.strip_prefix("sha256:"));
            let path = unpacked.join("blobs/sha256").join(digest.expect("a digest"));
            assert_eq!(hashed(&path).expect("a blob"), digest.expect("a digest"));
            assert_eq!(descriptor["size"], path.metadata().expect("a blob").len());
            path
        };
        let manifest = read(&blob(&read(&unpacked.join("index.json"))["manifests"][0]));
        let (config, layer) = (read(&blob(&manifest["config"])), &manifest["layers"][0]);
        assert_eq!(config["rootfs"]["diff_ids"][0], layer["digest"]);
        unpack(&blob(layer));
        assert_eq!(std::fs::read(unpacked.join("usr/bin/wrote")).expect("it"), b"a program");
    }
}
