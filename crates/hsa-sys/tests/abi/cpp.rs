//! A C++ program that prints what the headers say, and its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hsa_sys::function::{self, Home, Signature};
use hsa_sys::reflect;

/// Relative to the include folder. `amd_hsa_elf.h` needs others before it.
const HEADERS: &[&str] = &[
    "hsa.h",
    "hsa_ext_amd.h",
    "hsa_ext_image.h",
    "hsa_ext_finalize.h",
    "hsa_api_trace.h",
    "hsa_ven_amd_loader.h",
    "hsa_ven_amd_aqlprofile.h",
    "amd_hsa_kernel_code.h",
    "amd_hsa_queue.h",
    "amd_hsa_signal.h",
    "amd_hsa_elf.h",
];

/// Where distributions put the headers.
const FOLDERS: &[&str] = &["/usr/include", "/opt/rocm/include"];

const COMPILERS: &[&str] = &["c++", "g++", "clang++"];

/// Arguments that C has in another form than the crate: function, index, C++ type.
const OTHER_PARAMETERS: &[(&str, usize, &str)] = &[(
    "hsa_amd_signal_value_pointer",
    1,
    "volatile hsa_signal_value_t**",
)];

/// Why there are no facts.
pub(crate) enum NoFacts {
    /// Something is missing on this machine.
    Skip(String),
    /// Everything is there, and it did not work.
    Failure(String),
}

/// What the headers say.
pub(crate) struct Facts {
    /// All tokens of the headers, comments and macros resolved.
    pub(crate) tokens: Vec<String>,
    /// The distinct names among them.
    names: BTreeSet<String>,
    /// What the program printed: question to answer.
    answers: BTreeMap<String, i128>,
}

impl Facts {
    /// Asks the headers.
    pub(crate) fn gather() -> Result<Self, NoFacts> {
        let include = include_folder()?;
        let compiler = compiler().map_err(NoFacts::Skip)?;
        Self::gather_with(compiler, &include).map_err(NoFacts::Failure)
    }

    fn gather_with(compiler: &str, include: &Path) -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hsa-sys-abi");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let compile = |arguments: &[&str], source: &Path| {
            let mut command = Command::new(compiler);
            command.args(["-std=c++20", "-w", "-DAMD_INTERNAL_BUILD", "-I"]);
            command.arg(include.join("hsa")).args(arguments).arg(source);
            output(&mut command)
        };

        let source = folder.join("headers.cpp");
        fs::write(&source, includes()).map_err(|error| error.to_string())?;
        let tokens = tokens(&compile(&["-E", "-P"], &source)?);
        let names = tokens.iter().cloned().collect();
        let mut facts = Self {
            tokens,
            names,
            answers: BTreeMap::new(),
        };

        let (source, program) = (folder.join("facts.cpp"), folder.join("facts"));
        fs::write(&source, facts.program()).map_err(|error| error.to_string())?;
        compile(&["-o", &program.to_string_lossy()], &source)?;
        for line in output(&mut Command::new(&program))?.lines() {
            let (question, answer) = line
                .rsplit_once(' ')
                .ok_or("the program printed no answer")?;
            let answer = answer.parse().map_err(|error| format!("{line}: {error}"))?;
            facts.answers.insert(question.to_owned(), answer);
        }
        Ok(facts)
    }

    /// Whether the headers use a name at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether these are headers of ROCr 5.0 to 5.4, which everything marked as such must be in.
    pub(crate) fn are_base(&self) -> bool {
        !self.has("hsa_amd_memory_async_copy_on_engine")
    }

    /// The answer to a question, if the headers know what it is about.
    pub(crate) fn answer(&self, question: &str) -> Option<i128> {
        self.answers.get(question).copied()
    }

    /// The program that asks about everything that the crate declares and the headers have.
    fn program(&self) -> String {
        let mut text = includes();
        text +=
            "#include <cstdio>\n#include <type_traits>\n#include <utility>\nusing namespace ELF;\n";
        text += "template <class V> void say(const char* question, V value) {\n  \
                 printf(\"%s %lld\\n\", question, (long long)value);\n}\n";

        for layout in reflect::layouts().filter(|layout| self.has(layout.c_name)) {
            let name = layout.c_name;
            let _ = writeln!(text, "template <class T> void layout_{name}() {{");
            for field in layout.fields {
                let field = field.c_name.trim_start_matches("r#");
                let _ = writeln!(
                    text,
                    "  if constexpr (requires(T t) {{ t.{field}; }}) {{\n    \
                     say(\"offset {name}.{field}\", offsetof(T, {field}));\n    \
                     say(\"size {name}.{field}\", sizeof(std::declval<T&>().{field}));\n  }}"
                );
            }
            text += "}\n";
        }

        text += "namespace ours {\n";
        for callback in reflect::callbacks()
            .iter()
            .filter(|callback| self.knows(&callback.signature))
        {
            let pointer = pointer(callback.name, &callback.signature);
            let _ = writeln!(text, "using {} = {pointer};", callback.name);
        }
        text += "}\nint main() {\n";

        for layout in reflect::layouts().filter(|layout| self.has(layout.c_name)) {
            // Not inside the template, where the alignment of a `typedef` is lost.
            let name = layout.c_name;
            let _ = writeln!(text, "  say(\"size {name}\", sizeof({name}));");
            let _ = writeln!(text, "  say(\"align {name}\", alignof({name}));");
            let _ = writeln!(text, "  layout_{name}<{name}>();");
        }
        for constant in constants().filter(|constant| self.has(constant.0)) {
            let _ = writeln!(text, "  say(\"constant {0}\", {0});", constant.0);
        }
        for callback in reflect::callbacks() {
            if self.has(callback.name) && self.knows(&callback.signature) {
                let _ = writeln!(
                    text,
                    "  say(\"callback {0}\", std::is_same_v<{0}, ours::{0}>);",
                    callback.name
                );
            }
        }
        for info in function::all().filter(|info| self.has(info.name)) {
            let name = info.name;
            let pointer = pointer(name, &info.signature);
            let _ = writeln!(
                text,
                "  say(\"signature {name}\", std::is_same_v<decltype(&{name}), {pointer}>);"
            );
            if let Some(table) = table(info.home).filter(|_| self.has(&format!("{name}_fn"))) {
                let _ = writeln!(
                    text,
                    "  say(\"slot {name}\", (offsetof({table}, {name}_fn) - \
                     sizeof(ApiTableVersion)) / sizeof(void*) + 1);"
                );
            }
        }
        for table in TABLES {
            let _ = writeln!(text, "  say(\"size {table}\", sizeof({table}));");
        }
        text += "}\n";
        text
    }

    /// Whether the headers have all types of a signature.
    fn knows(&self, signature: &Signature) -> bool {
        let mut types = signature.parameters.iter().chain([&signature.result]);
        types.all(|rust| {
            let name = rust
                .split([' ', '*', '<', '>'])
                .rfind(|part| !part.is_empty());
            name.is_none_or(|name| base(name) != name || self.has(name) || is_callback(name))
        })
    }
}

/// Tables of functions, by their C names.
pub(crate) const TABLES: [&str; 4] = [
    "CoreApiTable",
    "AmdExtTable",
    "FinalizerExtTable",
    "ImageExtTable",
];

/// The table that a function is in.
pub(crate) fn table(home: Home) -> Option<&'static str> {
    match home {
        Home::Core { .. } => Some(TABLES[0]),
        Home::AmdExt { .. } => Some(TABLES[1]),
        Home::Finalizer { .. } => Some(TABLES[2]),
        Home::Image { .. } => Some(TABLES[3]),
        _ => None,
    }
}

/// Every constant with its value and whether headers of ROCr 5.2 have it; also those that are not
/// part of an enumeration.
pub(crate) fn constants() -> impl Iterator<Item = (&'static str, i128, bool)> {
    let alone = [
        ("EM_AMDGPU", i128::from(hsa_sys::EM_AMDGPU), true),
        (
            "ELFOSABI_AMDGPU_HSA",
            i128::from(hsa_sys::ELFOSABI_AMDGPU_HSA),
            true,
        ),
        (
            "HSA_VEN_AMD_AQLPROFILE_LEGACY_PM4_PACKET_SIZE",
            i128::from(hsa_sys::HSA_VEN_AMD_AQLPROFILE_LEGACY_PM4_PACKET_SIZE),
            true,
        ),
        (
            "AMD_AQL_FORMAT_INTERCEPT_MARKER",
            i128::from(hsa_sys::AMD_AQL_FORMAT_INTERCEPT_MARKER),
            false,
        ),
    ];
    let enumerated = reflect::enumerations().flat_map(|enumeration| enumeration.constants);
    let enumerated = enumerated.map(|constant| {
        let base = constant.generation == reflect::Generation::BASE;
        (constant.c_name, constant.value, base)
    });
    alone.into_iter().chain(enumerated)
}

/// A signature as a C++ pointer type.
pub(crate) fn pointer(name: &str, signature: &Signature) -> String {
    let parameter = |(index, rust): (usize, &&str)| {
        let other = OTHER_PARAMETERS
            .iter()
            .find(|other| (other.0, other.1) == (name, index));
        other.map_or_else(|| cpp(rust), |other| other.2.to_owned())
    };
    let parameters: Vec<_> = signature
        .parameters
        .iter()
        .enumerate()
        .map(parameter)
        .collect();
    let result = if signature.result.is_empty() {
        "void".to_owned()
    } else {
        cpp(signature.result)
    };
    format!("{result} (*)({})", parameters.join(", "))
}

/// A Rust type of a signature as a C++ type.
fn cpp(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(inner) = rust
        .strip_prefix("Option<")
        .and_then(|inner| inner.strip_suffix('>'))
    {
        return cpp(inner);
    }
    if let Some(pointee) = rust.strip_prefix("*mut ") {
        return format!("{}*", cpp(pointee));
    }
    if let Some(pointee) = rust.strip_prefix("*const ") {
        return format!("{} const*", cpp(pointee));
    }
    if is_callback(rust) {
        format!("ours::{rust}")
    } else {
        base(rust).to_owned()
    }
}

/// The C++ name of a type that is no pointer.
fn base(rust: &str) -> &str {
    match rust {
        "c_void" => "void",
        "c_char" => "char",
        "c_int" => "int",
        "u8" => "uint8_t",
        "u16" => "uint16_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i32" => "int32_t",
        "i64" => "int64_t",
        "usize" => "size_t",
        name => name,
    }
}

fn is_callback(name: &str) -> bool {
    reflect::callbacks()
        .iter()
        .any(|callback| callback.name == name)
}

fn includes() -> String {
    let mut text = String::from("#include <cstddef>\n#include <cstdint>\n");
    for header in HEADERS {
        let _ = writeln!(text, "#include \"{header}\"");
    }
    text
}

/// The folder that was asked for, which must do, or one of the usual ones.
fn include_folder() -> Result<PathBuf, NoFacts> {
    let has_headers = |folder: &Path| folder.join("hsa/hsa_api_trace.h").is_file();
    if let Some(folder) = env::var_os("HSA_INCLUDE_DIR").map(PathBuf::from) {
        if has_headers(&folder) {
            return Ok(folder);
        }
        let folder = folder.display();
        return Err(NoFacts::Failure(format!(
            "HSA_INCLUDE_DIR: no hsa/hsa_api_trace.h in {folder}"
        )));
    }
    let found = FOLDERS
        .iter()
        .map(PathBuf::from)
        .find(|folder| has_headers(folder));
    found.ok_or_else(|| {
        let folders = FOLDERS.join(", ");
        NoFacts::Skip(format!(
            "no hsa/hsa_api_trace.h in {folders}; install libhsa-runtime-dev"
        ))
    })
}

fn compiler() -> Result<&'static str, String> {
    let works = |compiler: &&&str| {
        let version = Command::new(compiler).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let found = COMPILERS.iter().find(works).copied();
    found.ok_or_else(|| format!("no C++ compiler ({}); install g++", COMPILERS.join(", ")))
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed:\n{errors}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Splits C++ text into names, numbers and single signs.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_word = false;
    for character in text.chars() {
        let is_word = character.is_ascii_alphanumeric() || character == '_';
        match tokens.last_mut() {
            Some(last) if is_word && in_word => last.push(character),
            _ if !character.is_whitespace() => tokens.push(character.to_string()),
            _ => {}
        }
        in_word = is_word;
    }
    tokens
}
