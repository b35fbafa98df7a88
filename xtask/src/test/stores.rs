//! Logs in object stores: the command and the server with the feature `store`, which no other step
//! builds.

use super::{STRICT, step};
use crate::clients;
use crate::failure::Failure;
use crate::programs::cargo_tests;
use crate::report::Report;
use crate::repository::cargo;

/// The packages with the feature.
const WITH_STORE: [&str; 4] = ["-p", "wrote-serve", "-p", "wrote-cli"];
const FEATURES: [&str; 2] = ["--features", "wrote-serve/store,wrote-cli/store"];
/// The module of the tests that need an S3 server.
const S3: &str = "s3::";

/// Checks both with the feature, and runs their tests of stores against folders.
pub fn check(report: &mut Report) -> Result<(), Failure> {
    let clippy = [&["clippy"], &WITH_STORE[..], &FEATURES, &["--all-targets"], &STRICT].concat();
    step(report, "clippy of the feature store", &clippy)?;
    report.step("tests of the feature store", || {
        let words = ["--test", "it", "--no-fail-fast", "--", "shipping::", "store::", "--skip", S3];
        cargo_tests(&mut cargo(&[&["test"], &WITH_STORE[..], &FEATURES, &words].concat()))
    })
}

/// Runs the tests of the command against an S3 server, which it installs.
pub fn s3(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("S3 server moto", || clients::moto(install))?;
    report.step("tests on S3", || {
        let words = ["test", "-p", "wrote-cli", "--features", "store", "--test", "it", "--", S3];
        cargo_tests(&mut cargo(&words))
    })
}
