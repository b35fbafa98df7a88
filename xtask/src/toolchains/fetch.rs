//! Fetches toolchains with the registries' ordinary clients and this machine's settings.

use lab::tools::failure::{Failure, Tried};
use lab::tools::run::{Finished, HANG, Show, run};
use std::path::Path;
use std::process::Command;

/// Maven's plugin, in a fixed version.
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// The source of a toolchain.
#[derive(Clone, Copy, Debug)]
pub enum Registry {
    /// Maven Central: one artifact and its dependencies.
    Maven {
        group: &'static str,
        /// The artifact's name.
        artifact: &'static str,
    },
    /// The Python Package Index: one package without its dependencies.
    PyPi {
        /// The package's name.
        package: &'static str,
    },
}

impl Registry {
    /// Returns the program that fetches.
    pub fn client(self) -> &'static str {
        match self {
            Registry::Maven { .. } => "mvn",
            Registry::PyPi { .. } => "pip3",
        }
    }

    /// Fetches `version` into the new `folder`; a failure leaves no folder.
    pub fn fetch(self, version: &str, folder: &Path) -> Result<(), Failure> {
        let parent = folder.parent().unwrap_or_else(|| Path::new("."));
        std::fs::create_dir_all(parent).tried(parent.display())?;
        let work = tempfile::Builder::new().prefix(".fetching-").tempdir_in(parent);
        let work = work.tried(parent.display())?;
        let whole = work.path().join("whole");
        match self {
            Registry::Maven { group, artifact } => {
                let project = work.path().join("pom.xml");
                std::fs::write(&project, pom(group, artifact, version)).tried(project.display())?;
                let what = format!("mvn, {group}:{artifact}:{version}");
                succeed(&mut maven(&project, &whole.join("lib")), &what)?;
            }
            Registry::PyPi { package } => {
                let wanted = format!("{package}=={version}");
                succeed(&mut pip(&wanted, &whole), &format!("pip3, {wanted}"))?;
            }
        }
        std::fs::rename(&whole, folder).tried(folder.display())
    }
}

/// Copies the dependencies of `project` into `folder`. The jars lose their versions: kotlinc
/// searches its own parts as `lib/kotlin-stdlib.jar`.
fn maven(project: &Path, folder: &Path) -> Command {
    let mut command = Command::new("mvn");
    command.args(["-B", "-q", "-Dstyle.color=never", "-f"]).arg(project).arg(MAVEN_COPY);
    command.args(["-DincludeScope=runtime", "-Dmdep.stripVersion=true"]);
    command.arg(format!("-DoutputDirectory={}", folder.display()));
    command
}

/// Installs a package into its own folder, without a virtual environment.
fn pip(wanted: &str, folder: &Path) -> Command {
    let mut command = Command::new("pip3");
    command.args(["install", "-q", "--no-deps", "--no-compile", "--disable-pip-version-check"]);
    command.arg("--target").arg(folder).arg(wanted);
    // The folder is the user's, so pip's warning to root does not apply.
    command.env("PIP_ROOT_USER_ACTION", "ignore");
    command
}

/// Returns a project that depends on one artifact.
fn pom(group: &str, artifact: &str, version: &str) -> String {
    format!(
        r#"<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>wrote</groupId>
  <artifactId>toolchain</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"#
    )
}

fn succeed(command: &mut Command, what: &str) -> Result<(), Failure> {
    let mut finished = run(command, HANG, Show::Live)?;
    first_error(&finished).inspect(|error| finished.stderr.clone_from(error));
    finished.success(what).map(|_| ())
}

/// Returns the first error. The last lines of Maven and pip only name their documentation.
fn first_error(finished: &Finished) -> Option<String> {
    let lines = finished.stdout.lines().chain(finished.stderr.lines());
    let mut errors = lines.filter(|line| line.starts_with("[ERROR]") || line.starts_with("ERROR:"));
    errors.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(stdout: &str, stderr: &str) -> Finished {
        Finished {
            trouble: Some("exit code 1".to_owned()),
            exit_code: Some(1),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        }
    }

    #[test]
    fn what_went_wrong_is_the_first_error_that_is_told() {
        let maven = failed("[WARNING] x\n[ERROR] no such artifact\n[ERROR] [Help 1] read\n", "");
        assert_eq!(first_error(&maven).as_deref(), Some("[ERROR] no such artifact"));
        let pip = failed("", "ERROR: no such version\nERROR: nothing found\n");
        assert_eq!(first_error(&pip).as_deref(), Some("ERROR: no such version"));
        assert_eq!(first_error(&failed("", "killed")), None);
    }

    #[test]
    fn a_client_that_fails_leaves_no_folder() {
        let here = tempfile::tempdir().expect("a folder");
        let folder = here.path().join("nothing-1");
        // pip3 refuses this version before it asks a registry; a missing pip3 is a failure too.
        let registry = Registry::PyPi { package: "ziglang" };
        assert!(registry.fetch("not a version", &folder).is_err());
        assert_eq!(std::fs::read_dir(here.path()).expect("the folder").count(), 0);
    }
}
