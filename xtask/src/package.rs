//! Step `package`: each crate to be published is complete, that is, it builds from its package.
//!
//! Cargo's own verification unpacks our crates into its home folder once and does not look again when
//! they change under the same version. So packages are unpacked here, into a workspace of their own
//! in `target/package/check`, where they find each other through a patch of the registry.

use std::fs;
use std::process::Command;

use crate::cargo::{cargo, root, succeed};
use crate::steps::Outcome;
use crate::workspace::{self, Member};

/// Packages, unpacks, and builds what came out.
pub(crate) fn run() -> Result<Outcome, String> {
    let (published, kept): (Vec<_>, Vec<_>) = workspace::members()?
        .into_iter()
        .partition(|member| member.published);
    if published.is_empty() {
        return Err("no crate is to be published".into());
    }
    // A change is checked before it is committed, so the tree may be dirty.
    let mut package = cargo([
        "package",
        "--workspace",
        "--no-verify",
        "--allow-dirty",
        "--quiet",
    ]);
    for member in &kept {
        package.args(["--exclude", &member.name]);
    }
    succeed(&mut package)?;
    unpack(&published).map_err(|error| format!("cannot unpack the packages: {error}"))?;
    succeed(&mut cargo([
        "check",
        "--workspace",
        "--quiet",
        "--manifest-path",
        "target/package/check/Cargo.toml",
        "--target-dir",
        "target",
    ]))?;
    Ok(Outcome::Held(format!("{} crates", published.len())))
}

/// Fills `target/package/check` anew.
fn unpack(members: &[Member]) -> std::io::Result<()> {
    let packages = root().join("target/package");
    let check = packages.join("check");
    if check.exists() {
        fs::remove_dir_all(&check)?;
    }
    fs::create_dir_all(&check)?;
    for member in members {
        let file = packages.join(format!("{}-{}.crate", member.name, member.version));
        let status = Command::new("tar")
            // Packages carry one fixed old date, which cargo would take for "not changed since".
            .arg("-xzmf")
            .arg(&file)
            .arg("-C")
            .arg(&check)
            .status()?;
        if !status.success() {
            let message = format!("tar of {} ended with {status}", file.display());
            return Err(std::io::Error::other(message));
        }
    }
    fs::write(check.join("Cargo.toml"), manifest(members))?;
    // The same versions of everything else as in the workspace.
    fs::copy(root().join("Cargo.lock"), check.join("Cargo.lock"))?;
    Ok(())
}

/// The manifest of a workspace in which the packages find each other.
fn manifest(members: &[Member]) -> String {
    let mut text = String::from(
        "[workspace]\nresolver = \"3\"\nmembers = [\"*-*.*.*\"]\n\n[patch.crates-io]\n",
    );
    for Member { name, version, .. } in members {
        text += &format!("{name} = {{ path = \"{name}-{version}\" }}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_find_each_other() {
        let member = |name: &str| Member {
            name: name.into(),
            version: "0.1.0".into(),
            ..Member::default()
        };
        assert_eq!(
            manifest(&[member("kr-a"), member("kr-b")]),
            "[workspace]\n\
             resolver = \"3\"\n\
             members = [\"*-*.*.*\"]\n\
             \n\
             [patch.crates-io]\n\
             kr-a = { path = \"kr-a-0.1.0\" }\n\
             kr-b = { path = \"kr-b-0.1.0\" }\n"
        );
    }
}
