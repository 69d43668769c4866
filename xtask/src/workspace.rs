//! The workspace as `cargo metadata` describes it.
//!
//! Only what the steps ask about is kept. Nothing is resolved, so neither network nor lock file is
//! needed.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cargo::cargo;

/// A crate of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) license: String,
    pub(crate) keywords: Vec<String>,
    /// False if the manifest says `publish = false`.
    pub(crate) published: bool,
    pub(crate) folder: PathBuf,
    /// Names of its features, `default` left out, sorted.
    pub(crate) features: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line under a `[…dependencies]` of a member.
#[derive(Debug, Default)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Under `[dev-dependencies]`, also of a target.
    pub(crate) dev: bool,
    pub(crate) optional: bool,
    /// Found by a path, that is, in this workspace.
    pub(crate) local: bool,
    /// Carries a version, so it stays in the manifest of the package.
    pub(crate) versioned: bool,
}

impl Member {
    /// True if it depends on `name` in any way.
    pub(crate) fn uses(&self, name: &str) -> bool {
        self.dependencies
            .iter()
            .any(|dependency| dependency.name == name)
    }
}

/// Asks cargo for the members of this workspace, sorted by name.
///
/// # Errors
///
/// Cargo refuses a manifest, or says something that cannot be read.
pub(crate) fn members() -> Result<Vec<Member>, String> {
    let output = cargo(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|error| format!("cannot start cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    parse(&output.stdout)
}

/// Reads the JSON of `cargo metadata`, format version 1.
pub(crate) fn parse(json: &[u8]) -> Result<Vec<Member>, String> {
    let metadata: Value = serde_json::from_slice(json)
        .map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
    let mut members: Vec<Member> = items(&metadata["packages"]).map(member).collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    if members.is_empty() {
        return Err("cargo metadata lists no package".into());
    }
    Ok(members)
}

fn member(package: &Value) -> Member {
    let features = package["features"].as_object();
    Member {
        name: text(&package["name"]),
        version: text(&package["version"]),
        description: text(&package["description"]),
        license: text(&package["license"]),
        keywords: items(&package["keywords"]).map(text).collect(),
        // `null` means any registry, an empty list none.
        published: package["publish"].is_null() || items(&package["publish"]).next().is_some(),
        folder: Path::new(&text(&package["manifest_path"]))
            .parent()
            .map(Path::to_owned)
            .unwrap_or_default(),
        features: features
            .into_iter()
            .flat_map(|features| features.keys().cloned())
            .filter(|feature| feature != "default")
            .collect(),
        dependencies: items(&package["dependencies"]).map(dependency).collect(),
    }
}

fn dependency(dependency: &Value) -> Dependency {
    Dependency {
        name: text(&dependency["name"]),
        dev: dependency["kind"] == "dev",
        optional: dependency["optional"] == true,
        local: dependency["path"].is_string(),
        versioned: dependency["req"] != "*",
    }
}

/// The elements of a list; none if it is missing.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A string; empty if it is missing.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read() {
        let json = br#"{"packages": [
            {"name": "b", "version": "1.2.3", "description": null, "license": "MIT", "keywords": ["gpu"],
             "publish": [], "manifest_path": "/w/b/Cargo.toml", "features": {"default": ["x"], "x": [], "w": []},
             "dependencies": [
                {"name": "a", "kind": null, "optional": true, "path": "/w/a", "req": "^1"},
                {"name": "c", "kind": "dev", "optional": false, "path": "/w/c", "req": "*"},
                {"name": "loom", "kind": "dev", "optional": false, "req": "^0.7", "target": "cfg(loom)"}]},
            {"name": "a", "publish": null}
        ]}"#;
        let members = parse(json).unwrap();
        let [a, b] = &members[..] else {
            panic!("two members, not {members:?}");
        };
        assert!(a.published && !b.published);
        assert_eq!(
            (&*b.version, &*b.description, &*b.license),
            ("1.2.3", "", "MIT")
        );
        assert_eq!(b.folder, Path::new("/w/b"));
        assert_eq!(b.features, ["w", "x"]);
        assert_eq!(b.keywords, ["gpu"]);
        let [on_a, on_c, on_loom] = &b.dependencies[..] else {
            panic!("three dependencies, not {:?}", b.dependencies);
        };
        assert!(on_a.local && on_a.optional && on_a.versioned && !on_a.dev);
        assert!(on_c.local && on_c.dev && !on_c.versioned);
        assert!(!on_loom.local && on_loom.dev);
        assert!(b.uses("loom") && !a.uses("loom"));
    }

    #[test]
    fn metadata_that_says_nothing_is_an_error() {
        assert!(parse(b"{\"packages\": []}").is_err());
        assert!(parse(b"warning").is_err());
    }

    #[test]
    fn this_workspace_has_this_crate() {
        let members = members().unwrap();
        assert!(members.iter().any(|member| member.name == "xtask"));
    }
}
