//! URLs of stores: what they refer to, and the settings that the environment adds.

use crate::error::StoreError;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::ClientConfigKey;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The time limit of a request if `AWS_TIMEOUT` is not set. It is enough for a segment of 128 MiB
/// at 2 Mbit/s.
const TIMEOUT: &str = "600s";

/// The time for which the client repeats a failed request, before the error is reported and the
/// request is tried later.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
const RETRIES_MAX: usize = 4;

/// A store, the prefix of its objects, and whether it keeps attributes with an object.
pub(crate) struct Place {
    pub store: Arc<dyn ObjectStore>,
    pub prefix: Path,
    pub keeps_attributes: bool,
}

/// Opens the store to which a URL refers, without contacting a server. With `make`, creates the
/// folder of a `file://` URL.
pub(crate) fn open(text: &str, make: bool) -> Result<Place, StoreError> {
    open_as(text, |path| folder(path, make))
}

/// Checks a URL as [`open`] does, except that the folder itself is not examined.
pub(crate) fn check(text: &str) -> Result<(), StoreError> {
    open_as(text, |_| Ok(())).map(drop)
}

fn open_as<T: From<Place>>(
    text: &str,
    folder: impl FnOnce(&std::path::Path) -> Result<T, String>,
) -> Result<T, StoreError> {
    let wrong = |because: String| StoreError::Url { url: shown(text), because };
    let url = Url::parse(text).map_err(|error| {
        wrong(format!("{error}; a store is s3://bucket/prefix or file:///path/of/a/folder"))
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        let because = "credentials belong in the environment, not in a URL: set AWS_ACCESS_KEY_ID \
                       and AWS_SECRET_ACCESS_KEY";
        return Err(wrong(because.into()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("a store's URL can't have a ? or #".into()));
    }
    match url.scheme() {
        "s3" | "s3a" => s3(&url).map(T::from).map_err(wrong),
        "file" => {
            let path = url.to_file_path().map_err(|()| {
                wrong("names no folder of this machine: file:///path has three slashes".into())
            })?;
            folder(&path).map_err(wrong)
        }
        scheme => Err(wrong(format!(
            "{scheme}:// is not a store that this program knows; a store is s3://bucket/prefix or \
             file:///path/of/a/folder"
        ))),
    }
}

/// Returns a URL in a form that may be printed, without any credentials.
fn shown(text: &str) -> String {
    let (place, rest) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    let hidden = if rest.is_empty() { "" } else { "?..." };
    let (scheme, path) = place.split_at(place.find("://").map_or(0, |at| at + 3));
    // The last `@` is used, because a secret may contain a slash.
    match path.rfind('@') {
        Some(at) => format!("{scheme}...{}{hidden}", &path[at..]),
        None => format!("{place}{hidden}"),
    }
}

fn s3(url: &Url) -> Result<Place, String> {
    let Some(bucket) = url.host_str() else {
        return Err("names no bucket: a store is s3://bucket/prefix".into());
    };
    let mut builder = AmazonS3Builder::new()
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), TIMEOUT)
        .with_retry(RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: RETRIES_MAX,
            retry_timeout: RETRY_TIMEOUT,
        });
    for (key, value) in std::env::vars_os() {
        let (Some(key), Some(value)) = (key.to_str(), value.to_str()) else { continue };
        let config = key.starts_with("AWS_").then(|| key.to_ascii_lowercase().parse().ok());
        if let Some(config) = config.flatten() {
            // A user who specifies an endpoint without TLS accepts that.
            if config == AmazonS3ConfigKey::Endpoint && value.starts_with("http://") {
                let allow = AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp);
                builder = builder.with_config(allow, "true");
            }
            builder = builder.with_config(config, value);
        }
    }
    // A bucket name in the environment is meant for another program.
    let store = builder.with_bucket_name(bucket).build().map_err(|error| error.to_string())?;
    let prefix = Path::from_url_path(url.path()).map_err(|error| error.to_string())?;
    Ok(Place { store: Arc::new(store), prefix, keeps_attributes: true })
}

fn folder(path: &std::path::Path, make: bool) -> Result<Place, String> {
    if make {
        std::fs::create_dir_all(path).map_err(|error| error.to_string())?;
    }
    let store = LocalFileSystem::new_with_prefix(path)
        .map_err(|error| error.to_string())?
        // With fsync, a stored object survives a power loss.
        .with_fsync(true);
    Ok(Place { store: Arc::new(store), prefix: Path::default(), keeps_attributes: false })
}

impl From<Place> for () {
    fn from(_: Place) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_names_no_store_is_refused_in_one_line_with_the_right_form() {
        for (url, part) in [
            ("events", "s3://bucket/prefix"),
            ("memory:///x", "memory:// is not a store"),
            ("ftp://host/x", "ftp:// is not a store"),
            ("file://host/x", "three slashes"),
            ("file:///no/such/folder/here", "folder"),
            ("s3://bucket/x?y=1", "have a ?"),
            ("s3:///x", "bucket"),
        ] {
            let Err(error) = open(url, false) else { panic!("{url} is a store") };
            let error = error.to_string();
            let begin = url.split('?').next().unwrap();
            assert!(error.starts_with(begin) && error.contains(part), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn credentials_in_a_url_are_refused_and_never_printed() {
        for url in [
            "s3://AKIA:sec%2Fret@bucket/x",
            "s3://AKIA:sec/ret@bucket/x",
            "s3://sec:ret@",
            "s3://bucket/x?secret=ret",
            "file://sec:ret@/x",
            "s3://AKIA@bucket/x#secret",
        ] {
            let Err(error) = check(url) else { panic!("{url} is a store") };
            let error = error.to_string();
            assert!(!error.contains("ret") && error.contains("..."), "{error}");
        }
    }
}
