//! The checked-in objects are what the pinned compiler makes of the checked-in sources.
//!
//! After a change of a source, `cargo test -p amdgpu-emu --test objects -- --bless` builds them again.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};
use support::{KERNELS, VERSIONS};

const COMPILE: &str = "-x hip --offload-arch=gfx90a --offload-device-only -nogpuinc -nogpulib -O3 -fvisibility=protected -fno-ident -fuse-cuid=none -S";
const ASSEMBLE: &str = "--target=amdgcn-amd-amdhsa -mcpu=gfx90a -c";
// Not stripped: ROCr 5.2 finds kernels in `.symtab` alone.
const LINK: &str = "-shared --build-id=none";

fn main() -> ExitCode {
    let bless = std::env::args().any(|argument| argument == "--bless");
    if bless {
        let zig = support::zig().expect("objects can't be built without their compiler");
        build(&zig, &support::objects());
        fs::write(support::objects().join("MANIFEST"), manifest())
            .expect("the objects' folder can be written");
        return ExitCode::SUCCESS;
    }
    let trials = vec![
        Trial::test("the_manifest_names_the_sources", || {
            let path = support::objects().join("MANIFEST");
            assert_eq!(
                fs::read_to_string(path)?,
                manifest(),
                "sources changed: build the objects again with --bless"
            );
            Ok(())
        }),
        support::trial_with(
            "the_compiler_makes_the_same_objects",
            support::zig(),
            rebuild,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// What the objects were made of, and how.
fn manifest() -> String {
    let mut text = format!(
        "compiler: ziglang 0.17.1 (clang 22.1.8)\ncompile: {COMPILE} -mcode-object-version=N\n"
    );
    text += &format!("assemble: {ASSEMBLE} -mcode-object-version=N\nlink: {LINK}\n");
    let sources = ["gpu.h".to_owned()]
        .into_iter()
        .chain(KERNELS.map(|kernel| format!("{kernel}.hip")));
    for name in sources {
        let source = fs::read(support::sources().join(&name))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        text += &format!("{name}: fnv1a64 {:016x}\n", fnv1a64(&source));
    }
    for (kernel, version) in KERNELS
        .iter()
        .flat_map(|kernel| VERSIONS.map(|version| (kernel, version)))
    {
        let object = support::object(kernel, version);
        text += &format!(
            "{kernel}.v{version}.co: fnv1a64 {:016x}\n",
            fnv1a64(&object)
        );
    }
    text
}

/// Enough to see that a file changed; nobody forges a test kernel.
fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn build(zig: &[String], folder: &Path) {
    fs::create_dir_all(folder).expect("the folder can be made");
    let step = |tool: &str, flags: &str, version: Option<u8>, from: &Path, to: &Path| {
        let mut command = Command::new(&zig[0]);
        command
            .args(&zig[1..])
            .arg(tool)
            .args(flags.split(' '))
            .current_dir(support::sources());
        if let Some(version) = version {
            command.arg(format!("-mcode-object-version={version}"));
        }
        support::output(command.arg(from).arg("-o").arg(to));
    };
    for (kernel, version) in KERNELS
        .iter()
        .flat_map(|kernel| VERSIONS.map(|version| (kernel, version)))
    {
        let name = format!("{kernel}.v{version}");
        let [assembly, relocatable, object] =
            ["s", "o", "co"].map(|kind| folder.join(format!("{name}.{kind}")));
        step(
            "clang",
            COMPILE,
            Some(version),
            Path::new(&format!("{kernel}.hip")),
            &assembly,
        );
        step("clang", ASSEMBLE, Some(version), &assembly, &relocatable);
        step("ld.lld", LINK, None, &relocatable, &object);
        fs::remove_file(assembly).expect("it was just made");
        fs::remove_file(relocatable).expect("it was just made");
    }
}

fn rebuild(zig: &[String]) {
    let folder = std::env::temp_dir().join(format!("amdgpu-emu-objects-{}", std::process::id()));
    build(zig, &folder);
    let mut different = Vec::new();
    for (kernel, version) in KERNELS
        .iter()
        .flat_map(|kernel| VERSIONS.map(|version| (kernel, version)))
    {
        let name = format!("{kernel}.v{version}.co");
        let made = fs::read(folder.join(&name)).expect("it was just made");
        if made != support::object(kernel, version) {
            different.push(name);
        }
    }
    fs::remove_dir_all(&folder).expect("it was just made");
    assert!(
        different.is_empty(),
        "not what the compiler makes: {different:?}"
    );
}
