//! Step `graph`: crates use only what is drawn below them, and their manifests are complete.
//!
//! [`GRAPH`] is the picture of `ARCHITECTURE.md` as a table. A new entry is a design change with a
//! commit of its own, which changes the picture too.
//!
//! What is checked of each crate
//! - it has a row, and each of our crates that it depends on is in that row;
//! - it names no version of a crate that is not published, so that `cargo package` leaves that
//!   line out;
//! - `kr-testkit` is named in `tests/` directories only: in a unit test of a crate that it depends
//!   on, every type of that crate would exist twice;
//! - it inherits the workspace's lints and has a description and a license;
//! - `hsa-sys` carries no word of replay.
//!
//! Not here: what crates from elsewhere a crate may use.

use std::fs;
use std::path::{Path, PathBuf};

use crate::output::say;
use crate::steps::Outcome;
use crate::workspace::{self, Member};

/// A crate, what it may depend on, and what its tests may use besides.
///
/// `?` after a name: only as an optional dependency, behind a feature.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// Nothing that is not here is allowed.
#[rustfmt::skip]
const GRAPH: &[Row] = &[
    // Vocabulary, then the seam to a device and what holds one concern each.
    ("kr-types",       &[],                                        &[]),
    ("kr-device",      &["kr-types"],                              &["kr-testkit"]),
    ("kr-storage",     &["kr-types"],                              &["kr-testkit"]),
    ("kr-plan",        &["kr-types", "kr-storage"],                &["kr-testkit"]),
    ("kr-policy",      &["kr-types"],                              &["kr-testkit"]),
    ("kr-tracker",     &["kr-types"],                              &["kr-testkit"]),
    ("kr-blit",        &["kr-types", "kr-device"],                 &["kr-testkit"]),

    // The window.
    ("kr-replay",      &["kr-types", "kr-device", "kr-storage", "kr-plan", "kr-policy",
                         "kr-tracker", "kr-blit"],                 &["kr-testkit"]),

    // Backends, over bindings that are useful to others.
    ("hsa-sys",        &[],                                        &[]),
    ("kr-hsa",         &["hsa-sys", "kr-types", "kr-device", "kr-tracker",
                         "kr-replay"],                             &["kr-testkit"]),
    ("kr-cuda",        &["kr-types", "kr-device", "kr-tracker",
                         "kr-replay"],                             &["kr-testkit"]),

    // Around the engine.
    ("kr-counters",    &["kr-types", "kr-hsa?"],                   &["kr-testkit"]),
    ("kr-records",     &["kr-types"],                              &["kr-testkit"]),
    ("kr-tool",        &["kr-types", "kr-replay", "kr-hsa", "kr-cuda", "kr-counters",
                         "kr-records"],                            &["kr-testkit"]),
    ("krprof",         &["kr-types", "kr-replay", "kr-counters",
                         "kr-records"],                            &["kr-testkit"]),
    ("krbench",        &["kr-types", "kr-replay", "kr-counters",
                         "kr-records"],                            &["kr-testkit"]),

    // An emulated GPU. It shares no definitions with the code that it tests; clients in its tests do.
    ("amdgpu-emu",     &[],                                        &[]),
    ("hsakmt-emu",     &["amdgpu-emu"],                            &["kr-testkit", "hsa-sys"]),
    ("aqlprofile-emu", &["amdgpu-emu"],                            &["kr-testkit"]),

    // For tests and chores; never published.
    ("kr-testkit",     &["kr-types", "kr-device", "kr-storage", "kr-policy", "kr-tracker", "kr-blit",
                         "kr-replay", "kr-counters"],              &[]),
    ("xtask",          &[],                                        &[]),
];

/// Where to mend a wrong or missing row.
const HERE: &str = "`GRAPH` in xtask/src/graph.rs and the picture in ARCHITECTURE.md";

/// Checks the workspace and says everything that is wrong.
pub(crate) fn run() -> Result<Outcome, String> {
    let members = workspace::members()?;
    let wrong = violations(&members)?;
    for sentence in &wrong {
        say(sentence);
    }
    if wrong.is_empty() {
        Ok(Outcome::Held(format!("{} crates", members.len())))
    } else {
        Err(format!("{} violations", wrong.len()))
    }
}

/// One sentence for each thing that is wrong.
///
/// # Errors
///
/// A file of a crate cannot be read.
fn violations(members: &[Member]) -> Result<Vec<String>, String> {
    let unpublished: Vec<&str> = members
        .iter()
        .filter(|member| !member.published)
        .map(|member| &*member.name)
        .collect();
    let mut wrong = Vec::new();
    for member in members {
        edges(member, &unpublished, &mut wrong);
        described(member, &mut wrong);

        let manifest = member.folder.join("Cargo.toml");
        if !inherits_lints(&read(&manifest)?) {
            wrong.push(format!(
                "{} does not inherit the workspace's lints: add `[lints]` and `workspace = true`",
                member.name
            ));
        }
        words(member, &mut wrong)?;
    }
    Ok(wrong)
}

/// Holds the dependencies of one crate against its row.
fn edges(member: &Member, unpublished: &[&str], wrong: &mut Vec<String>) {
    let name = &member.name;
    let Some((_, uses, tests_use)) = GRAPH.iter().find(|(row, ..)| row == name) else {
        wrong.push(format!(
            "{name} is not in the graph: give it a row in {HERE}"
        ));
        return;
    };
    for dependency in member.dependencies.iter().filter(|one| one.local) {
        let on = &*dependency.name;
        let listed = |list: &[&str]| list.contains(&on);
        let behind_feature = uses.iter().any(|one| one.strip_suffix('?') == Some(on));
        if dependency.dev {
            if !(listed(uses) || behind_feature || listed(tests_use)) {
                wrong.push(format!("tests of {name} may not use {on}: see {HERE}"));
            }
        } else if behind_feature {
            if !dependency.optional {
                wrong.push(format!(
                    "{name} may depend on {on} behind a feature only: make it optional, or see {HERE}"
                ));
            }
        } else if !listed(uses) {
            wrong.push(format!("{name} may not depend on {on}: see {HERE}"));
        }
        if dependency.versioned && unpublished.contains(&on) {
            wrong.push(format!(
                "{name} names a version of {on}, which is not published: depend on it by path alone"
            ));
        }
    }
}

/// Checks what a registry and its readers want to know.
fn described(member: &Member, wrong: &mut Vec<String>) {
    let name = &member.name;
    for (field, value) in [
        ("description", &member.description),
        ("license", &member.license),
    ] {
        if value.trim().is_empty() {
            wrong.push(format!("{name} has no {field}: add it to its Cargo.toml"));
        }
    }
    if name == "hsa-sys" && member.keywords.iter().any(|keyword| keyword == "replay") {
        wrong.push("hsa-sys has the keyword `replay`: give it keywords of its own".into());
    }
}

/// Looks for words that a crate may not say, and where.
fn words(member: &Member, wrong: &mut Vec<String>) -> Result<(), String> {
    let (word, free, why) = match &*member.name {
        // They speak of the test kit because that is what they are about.
        "kr-testkit" | "xtask" => return Ok(()),
        "hsa-sys" => ("replay", None, "it is for everyone who uses HSA"),
        _ => (
            "kr_testkit",
            Some("tests"),
            "only files below tests/ may use it",
        ),
    };
    for file in files(&member.folder)? {
        let inside = file.strip_prefix(&member.folder).unwrap_or(&file);
        if free.is_some_and(|folder| inside.starts_with(folder)) {
            continue;
        }
        if let Some(line) = line_with(&read(&file)?, word) {
            wrong.push(format!(
                "{}/{} line {line} says `{word}`: {why}",
                member.name,
                inside.display()
            ));
        }
    }
    Ok(())
}

/// True if a manifest has `workspace = true` under `[lints]`.
fn inherits_lints(manifest: &str) -> bool {
    manifest
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().replace(' ', ""))
        .skip_while(|line| line != "[lints]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .any(|line| line == "workspace=true")
}

/// The number of the first line that contains `word`, whatever its case.
fn line_with(text: &str, word: &str) -> Option<usize> {
    text.lines()
        .position(|line| line.to_lowercase().contains(word))
        .map(|at| at + 1)
}

/// Every file below `folder` that people read or compile, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| {
            ["rs", "md", "c", "h", "txt"]
                .iter()
                .any(|kind| extension == *kind)
        }) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::workspace::Dependency;

    /// A complete crate of this name in a folder of its own, with these files.
    struct Sample(Member);

    impl Sample {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
            let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let folder =
                std::env::temp_dir().join(format!("xtask-graph-{}-{number}", std::process::id()));
            let lints = ("Cargo.toml", "[lints]\nworkspace = true\n");
            for (file, text) in std::iter::once(&lints).chain(files) {
                let file = folder.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Self(Member {
                name: name.into(),
                description: "Sample".into(),
                license: "MIT".into(),
                published: true,
                folder,
                ..Member::default()
            })
        }

        fn using(mut self, name: &str, change: impl Fn(&mut Dependency)) -> Self {
            let mut dependency = Dependency {
                name: name.into(),
                local: true,
                ..Dependency::default()
            };
            change(&mut dependency);
            self.0.dependencies.push(dependency);
            self
        }

        /// What is wrong with it, in a workspace whose test kit is not published.
        #[track_caller]
        fn check(self, expected: &[&str]) {
            let testkit = Sample::new("kr-testkit", &[]);
            let folders = [self.0.folder.clone(), testkit.0.folder.clone()];
            let kit = Member {
                published: false,
                ..testkit.0
            };
            let wrong = violations(&[self.0, kit]).unwrap();
            for folder in folders {
                fs::remove_dir_all(folder).unwrap();
            }
            assert_eq!(wrong.len(), expected.len(), "{wrong:#?}");
            for (sentence, part) in wrong.iter().zip(expected) {
                assert!(sentence.contains(part), "{sentence} lacks {part}");
            }
        }
    }

    #[test]
    fn the_workspace_keeps_to_the_graph() {
        let wrong = violations(&workspace::members().unwrap()).unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Each row names rows above it only, so the graph has no cycle; `kr-testkit` sees all of them.
    #[test]
    fn the_graph_is_drawn_from_the_bottom_up() {
        let all: BTreeSet<_> = GRAPH.iter().map(|(name, ..)| *name).collect();
        assert_eq!(all.len(), GRAPH.len(), "a crate has two rows");
        let mut below = BTreeSet::new();
        for (name, uses, tests_use) in GRAPH {
            for on in *uses {
                assert!(below.contains(on.trim_end_matches('?')), "{name} -> {on}");
            }
            for on in *tests_use {
                assert!(all.contains(on), "tests of {name} -> {on}");
            }
            below.insert(*name);
        }
    }

    #[test]
    fn allowed_edges_are_allowed() {
        Sample::new("kr-blit", &[("tests/a.rs", "use kr_testkit::Fake;\n")])
            .using("kr-device", |_| ())
            .using("kr-types", |on| on.dev = true)
            .using("kr-testkit", |on| on.dev = true)
            .using("loom", |on| on.local = false)
            .check(&[]);
        Sample::new("kr-counters", &[])
            .using("kr-hsa", |on| on.optional = true)
            .check(&[]);
    }

    #[test]
    fn a_crate_without_a_row_is_told_where_to_add_it() {
        Sample::new("kr-new", &[])
            .check(&["kr-new is not in the graph: give it a row in `GRAPH` in xtask/src/graph.rs"]);
    }

    #[test]
    fn an_edge_that_is_not_drawn_is_refused() {
        Sample::new("kr-blit", &[])
            .using("kr-tracker", |_| ())
            .using("kr-testkit", |_| ())
            .using("kr-policy", |on| on.dev = true)
            .check(&[
                "kr-blit may not depend on kr-tracker",
                "kr-blit may not depend on kr-testkit",
                "tests of kr-blit may not use kr-policy",
            ]);
        Sample::new("kr-counters", &[])
            .using("kr-hsa", |_| ())
            .check(&["kr-counters may depend on kr-hsa behind a feature only"]);
    }

    #[test]
    fn a_version_of_the_test_kit_is_refused() {
        Sample::new("kr-device", &[])
            .using("kr-testkit", |on| (on.dev, on.versioned) = (true, true))
            .check(&["kr-device names a version of kr-testkit"]);
    }

    #[test]
    fn the_test_kit_outside_tests_is_refused() {
        Sample::new(
            "kr-device",
            &[
                ("src/lib.rs", "mod host;\n"),
                ("src/host/mod.rs", "#[cfg(test)]\nuse kr_testkit::Clock;\n"),
            ],
        )
        .check(&["kr-device/src/host/mod.rs line 2 says `kr_testkit`"]);
    }

    #[test]
    fn bindings_that_speak_of_replay_are_refused() {
        let mut sample = Sample::new(
            "hsa-sys",
            &[("src/lib.rs", "//! HSA.\n"), ("README.md", "For Replay.\n")],
        );
        sample.0.keywords.push("replay".into());
        sample.check(&[
            "hsa-sys has the keyword `replay`",
            "hsa-sys/README.md line 1 says `replay`",
        ]);
    }

    #[test]
    fn a_manifest_must_be_complete() {
        let mut sample = Sample::new("kr-types", &[("Cargo.toml", "[lints.rust]\n")]);
        sample.0.description.clear();
        sample.0.license = " ".into();
        sample.check(&[
            "kr-types has no description",
            "kr-types has no license",
            "kr-types does not inherit the workspace's lints",
        ]);
    }

    #[test]
    fn lints_are_inherited_under_their_own_heading_only() {
        assert!(inherits_lints(
            "[package]\n[lints]\nworkspace = true # all of them\n"
        ));
        assert!(inherits_lints(
            "[lints]\n\nworkspace=true\n[dependencies]\n"
        ));
        for manifest in [
            "",
            "workspace = true\n",
            "[lints]\n[dependencies]\nworkspace = true\n",
            "[lints]\n# workspace = true\n",
            "[lints]\nworkspace = false\n",
        ] {
            assert!(!inherits_lints(manifest), "{manifest}");
        }
    }
}
