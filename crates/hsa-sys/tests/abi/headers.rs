//! The declarations against the headers, both ways: what the crate has must be as in C, and what
//! C has must be in the crate.
//!
//! Of headers that are newer than ROCr 5.2 only what they share with the crate is compared.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use hsa_sys::function::{self, Home};
use hsa_sys::reflect::{self, Generation, Layout};
use libtest_mimic::Trial;

use crate::cpp::{self, Facts, NoFacts};
use crate::{Check, Outcome, compared, trial};

/// Structures that grew; the crate has the form that all versions know.
const GROWN: &[&str] = &[
    "hsa_amd_pointer_info_t",
    "hsa_ven_amd_aqlprofile_1_00_pfn_t",
];

/// Constants of the headers that the crate leaves out.
const UNBOUND_CONSTANTS: &[&str] = &[
    // Counts and limits of a version.
    "HSA_EXTENSION_STD_LAST",
    "HSA_AMD_FIRST_EXTENSION",
    "HSA_AMD_LAST_EXTENSION",
    "HSA_VEN_AMD_AQLPROFILE_BLOCKS_NUMBER",
    "EF_AMDGPU_MACH_AMDGCN_FIRST",
    "EF_AMDGPU_MACH_AMDGCN_LAST",
    // Numbers that were not given to a processor when the header was made.
    "EF_AMDGPU_MACH_AMDGCN_RESERVED_0X27",
    "EF_AMDGPU_MACH_AMDGCN_RESERVED_0X40",
    "EF_AMDGPU_MACH_AMDGCN_RESERVED_0X41",
    // Features of code object versions 2 and 3.
    "EF_AMDGPU_FEATURE_XNACK_V2",
    "EF_AMDGPU_FEATURE_TRAP_HANDLER_V2",
    "EF_AMDGPU_FEATURE_XNACK_V3",
    "EF_AMDGPU_FEATURE_SRAMECC_V3",
];

/// Types of the headers that the crate leaves out.
const UNBOUND_TYPES: &[&str] = &[
    // Values of another enumeration, whose type the functions take.
    "hsa_amd_agent_info_t",
    "hsa_amd_region_info_t",
    // Prefilled tables of functions that are exported too.
    "hsa_ext_images_1_00_pfn_t",
    "hsa_ext_images_1_pfn_t",
    "hsa_ext_finalizer_1_00_pfn_t",
];

static FACTS: LazyLock<Result<Arc<Facts>, NoFacts>> =
    LazyLock::new(|| Facts::gather().map(Arc::new));

pub(crate) fn trials() -> Vec<Trial> {
    type Named = (&'static str, fn(&Facts) -> Check);
    let checks: [Named; 9] = [
        ("headers::layouts_agree", layouts_agree),
        (
            "headers::a_wrong_layout_is_noticed",
            a_wrong_layout_is_noticed,
        ),
        ("headers::constants_agree", constants_agree),
        ("headers::signatures_agree", signatures_agree),
        ("headers::callbacks_agree", callbacks_agree),
        ("headers::slots_agree", slots_agree),
        ("headers::every_function_is_bound", every_function_is_bound),
        ("headers::every_constant_is_bound", every_constant_is_bound),
        ("headers::every_type_is_bound", every_type_is_bound),
    ];
    let with_facts = |(name, check): Named| {
        trial(name, move || match &*FACTS {
            Ok(facts) => check(facts),
            Err(NoFacts::Skip(reason)) => Ok(Outcome::Skipped(reason.clone())),
            Err(NoFacts::Failure(error)) => Err(error.clone()),
        })
    };
    checks.into_iter().map(with_facts).collect()
}

/// The differences between answers and expectations, and how many there were to compare.
#[derive(Default)]
struct Comparison {
    count: usize,
    differences: Vec<String>,
}

impl Comparison {
    /// Compares one answer. Headers that do not know the question are wrong if they `must`.
    fn expect(&mut self, facts: &Facts, question: &str, ours: i128, must: bool) {
        match facts.answer(question) {
            Some(theirs) if theirs == ours || is_sign_bit(ours, theirs) => self.count += 1,
            Some(theirs) => {
                self.differences
                    .push(format!("{question}: {ours} here, {theirs} in C"));
            }
            None if must => self
                .differences
                .push(format!("{question}: not in the headers")),
            None => {}
        }
    }

    fn finish(self) -> Check {
        compared(self.count, self.differences)
    }
}

/// Where ROCr 5.2 writes `1 << 31`, it is negative.
fn is_sign_bit(ours: i128, theirs: i128) -> bool {
    ours == 1 << 31 && theirs == -(1 << 31)
}

fn compare_layout(comparison: &mut Comparison, facts: &Facts, layout: &Layout) {
    let name = layout.c_name;
    let must = facts.are_base() && layout.generation == Generation::BASE;
    if facts.are_base() || !GROWN.contains(&name) {
        comparison.expect(facts, &format!("size {name}"), layout.size as i128, must);
    }
    comparison.expect(facts, &format!("align {name}"), layout.align as i128, must);
    for field in layout.fields {
        let field_name = field.c_name.trim_start_matches("r#");
        if !facts.are_base() && field_name.starts_with("reserved") {
            // Newer versions make other fields of these.
            continue;
        }
        let mut expect = |what, ours: usize| {
            comparison.expect(
                facts,
                &format!("{what} {name}.{field_name}"),
                ours as i128,
                must,
            );
        };
        expect("offset", field.offset);
        expect("size", field.size);
    }
}

fn layouts_agree(facts: &Facts) -> Check {
    let mut comparison = Comparison::default();
    for layout in reflect::layouts() {
        compare_layout(&mut comparison, facts, layout);
    }
    comparison.finish()
}

/// The comparison itself can fail: one offset, one size and one name off by a little.
fn a_wrong_layout_is_noticed(facts: &Facts) -> Check {
    let layout = reflect::layouts().find(|layout| layout.c_name == "hsa_queue_t");
    let layout = layout.ok_or("hsa_queue_t is gone")?;
    let mut fields = layout.fields.to_vec();
    fields[3].offset += 8;
    fields[4].size = 8;
    fields[5].c_name = "reserved2";
    let wrong = Layout {
        size: 48,
        fields: fields.leak(),
        ..*layout
    };

    let mut comparison = Comparison::default();
    compare_layout(&mut comparison, facts, &wrong);
    let expected = [
        "size hsa_queue_t: 48 here, 40 in C",
        "offset hsa_queue_t.doorbell_signal: 24 here, 16 in C",
        "size hsa_queue_t.size: 8 here, 4 in C",
        "offset hsa_queue_t.reserved2: not in the headers",
        "size hsa_queue_t.reserved2: not in the headers",
    ];
    let expected = if facts.are_base() {
        &expected[..]
    } else {
        &expected[..3]
    };
    if comparison.differences == expected {
        Ok(Outcome::Compared(expected.len()))
    } else {
        Err(format!("noticed {:#?}", comparison.differences))
    }
}

fn constants_agree(facts: &Facts) -> Check {
    let mut comparison = Comparison::default();
    for (name, value, is_base) in cpp::constants() {
        if !facts.are_base() && name.contains("_RESERVED") {
            // Newer versions make other fields of these.
            continue;
        }
        let must = facts.are_base() && is_base;
        comparison.expect(facts, &format!("constant {name}"), value, must);
    }
    comparison.finish()
}

fn signatures_agree(facts: &Facts) -> Check {
    let mut comparison = Comparison::default();
    for info in function::all() {
        let question = format!("signature {}", info.name);
        let must = facts.are_base() && info.since == function::Release::V5_2;
        let before = comparison.differences.len();
        comparison.expect(facts, &question, 1, must);
        if let Some(difference) = comparison.differences.get_mut(before) {
            *difference = format!("{question}: {}", cpp::pointer(info.name, &info.signature));
        }
    }
    comparison.finish()
}

/// Named callback types directly; those that C gives no name are part of the signatures.
fn callbacks_agree(facts: &Facts) -> Check {
    let mut comparison = Comparison::default();
    for callback in reflect::callbacks() {
        comparison.expect(facts, &format!("callback {}", callback.name), 1, false);
    }
    comparison.finish()
}

fn slots_agree(facts: &Facts) -> Check {
    let mut comparison = Comparison::default();
    let is_base = facts.are_base();
    let mut slots = [0_i128; 4];
    for info in function::all() {
        let slot = match info.home {
            Home::Core { slot } | Home::Finalizer { slot } | Home::Image { slot } => Some(slot),
            Home::AmdExt { layout_a, .. } if is_base => layout_a,
            Home::AmdExt { layout_b, .. } => Some(layout_b),
            _ => None,
        };
        let (Some(slot), Some(table)) = (slot, cpp::table(info.home)) else {
            continue;
        };
        comparison.expect(facts, &format!("slot {}", info.name), slot.into(), is_base);
        let index = cpp::TABLES
            .iter()
            .position(|name| *name == table)
            .ok_or("unknown table")?;
        slots[index] = slots[index].max(slot.into());
    }
    if is_base {
        for (table, slots) in cpp::TABLES.iter().zip(slots) {
            comparison.expect(facts, &format!("size {table}"), 16 + 8 * slots, true);
        }
    }
    comparison.finish()
}

/// Compares what the headers have with what the crate has, if they are of its version.
fn all_bound(
    facts: &Facts,
    what: &str,
    theirs: BTreeSet<&str>,
    is_ours: impl Fn(&str) -> bool,
) -> Check {
    if !facts.are_base() {
        let reason = "the headers are newer than ROCr 5.2, and the crate is complete for that only";
        return Ok(Outcome::Skipped(reason.to_owned()));
    }
    let missing = theirs.iter().filter(|name| !is_ours(name));
    let missing = missing
        .map(|name| format!("{what} {name} is not in the crate"))
        .collect();
    compared(theirs.len(), missing)
}

/// A function's declaration is its name before a parenthesis; a pointer's type has a star there.
fn every_function_is_bound(facts: &Facts) -> Check {
    let declared = facts
        .tokens
        .windows(3)
        .filter(|three| three[1] == "(" && three[2] != "*");
    let declared = declared.map(|three| three[0].as_str());
    let declared = declared.filter(|name| name.starts_with("hsa_"));
    let ours: BTreeSet<_> = function::all().map(|info| info.name).collect();
    all_bound(facts, "function", declared.collect(), |name| {
        ours.contains(name)
    })
}

fn every_constant_is_bound(facts: &Facts) -> Check {
    let ours: BTreeSet<_> = cpp::constants().map(|constant| constant.0).collect();
    let is_ours = |name: &str| {
        // A bit field has three names in C: mask, shift and width.
        ours.contains(name)
            || ours.contains(format!("{name}_SHIFT").as_str())
            || UNBOUND_CONSTANTS.contains(&name)
    };
    all_bound(facts, "constant", enumerators(&facts.tokens), is_ours)
}

/// The names in the bodies of enumerations whose names are HSA's or AMD's.
fn enumerators(tokens: &[String]) -> BTreeSet<&str> {
    const PREFIXES: &[&str] = &["HSA_", "AMD_", "EF_AMDGPU", "ELFABIVERSION", "hsa"];
    let mut names = BTreeSet::new();
    let mut rest = tokens;
    while let Some(start) = rest.iter().position(|token| token == "enum") {
        rest = &rest[start + 1..];
        let end = rest
            .iter()
            .position(|token| token == "}" || token == ";")
            .unwrap_or(rest.len());
        for pair in rest[..end].windows(2) {
            let starts_entry = pair[0] == "{" || pair[0] == ",";
            if starts_entry && PREFIXES.iter().any(|prefix| pair[1].starts_with(prefix)) {
                names.insert(pair[1].as_str());
            }
        }
    }
    names
}

/// A structure or enumeration gets its name behind its body.
fn every_type_is_bound(facts: &Facts) -> Check {
    let named = facts
        .tokens
        .windows(3)
        .filter(|three| three[0] == "}" && three[2] == ";");
    let named = named.map(|three| three[1].as_str());
    let named = named.filter(|name| name.starts_with("hsa_") || name.starts_with("amd_"));
    let layouts = reflect::layouts().map(|layout| layout.c_name);
    let enumerations = reflect::enumerations().map(|enumeration| enumeration.name);
    let ours: BTreeSet<_> = layouts.chain(enumerations).collect();
    let is_ours = |name: &str| ours.contains(name) || UNBOUND_TYPES.contains(&name);
    all_bound(facts, "type", named.collect(), is_ours)
}
