//! How dispatches end and how memory is put back: one table for API, logs, files and docs.
//!
//! Every word is kebab-case and stable; `Display` writes it and `FromStr` reads it back.

use core::fmt;
use core::str::FromStr;

/// A string that is none of the words of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a known {what}")]
pub struct UnknownWord {
    /// What the word should have been, such as `reason`.
    what: &'static str,
}

macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident, $what:literal {
            $( $(#[$vdoc:meta])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vdoc])* $variant, )+
        }

        impl $name {
            /// Every value, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable kebab-case word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord { what: $what }),
                }
            }
        }
    };
}

words! {
    /// How one logical dispatch ended.
    Outcome, "outcome" {
        /// Every pass ran on the captured bytes; records were released.
        Replayed = "replayed",
        /// As `replayed`, after a deviation was detected and the suspect passes ran again.
        Repaired = "repaired",
        /// Replay was wanted but the dispatch ran once, for the application only. No records.
        Declined = "declined",
        /// The profiler asked for a single pass.
        OptedOut = "opted-out",
        /// The profiler's filter left the kernel out, or replay was off.
        Untargeted = "untargeted",
        /// Records were discarded and the application's memory may deviate. Always with an error
        /// message.
        Failed = "failed",
    }
}

words! {
    /// Why a dispatch was declined or failed.
    Reason, "reason" {
        /// The dispatch is part of a graph launch.
        GraphLaunch = "graph-launch",
        /// Several dispatches in one submission that cannot be split.
        MultiDispatch = "multi-dispatch",
        /// The agent has a live queue that cannot be intercepted.
        Cooperative = "cooperative",
        /// The kernel enqueues work itself.
        DeviceEnqueue = "device-enqueue",
        /// The kernel calls the host, prints, or uses the device heap.
        SideEffects = "side-effects",
        /// The backend does not know the kernel.
        UnknownKernel = "unknown-kernel",
        /// Launched from inside a window on the same agent, by the thread that runs it.
        Reentrant = "reentrant",
        /// Memory that the kernel may write is not tracked.
        UntrackedMemory = "untracked-memory",
        /// The kernel was seen to write host memory.
        WritesHostMemory = "writes-host-memory",
        /// The kernel can reach memory of another agent or process.
        ExternalMemory = "external-memory",
        /// Page faults may change memory at any time.
        Xnack = "xnack",
        /// The bytes to save do not fit the budget.
        Budget = "budget",
        /// The saved bytes could not be placed.
        PlanFailed = "plan-failed",
        /// Saving the memory failed.
        CaptureFailed = "capture-failed",
        /// Earlier work of the same queue did not end in time.
        ReachTimeout = "reach-timeout",
        /// Work of the agent's other queues did not end in time.
        DrainTimeout = "drain-timeout",
        /// A pass did not end in time.
        PassTimeout = "pass-timeout",
        /// Copies in flight did not end in time.
        CopyFence = "copy-fence",
        /// Another window held the agent for too long.
        AgentBusy = "agent-busy",
        /// The queue that runs the passes reported an error.
        QueueError = "queue-error",
        /// An earlier submission on this agent has not been seen to end.
        AgentQuarantined = "agent-quarantined",
        /// A code object was loaded or unloaded during the window.
        CodeObjectChanged = "code-object-changed",
        /// The kernel is known to wait for other work.
        WaitsOnOthers = "waits-on-others",
        /// Another tool intercepts the same queue.
        ForeignInterceptor = "foreign-interceptor",
        /// Putting the memory back failed.
        RestoreFailed = "restore-failed",
        /// Memory changed outside the list of what a kernel was seen to change.
        UnlistedChange = "unlisted-change",
        /// The process is shutting down.
        Finalizing = "finalizing",
        /// The profiler asked for zero passes.
        BadPlan = "bad-plan",
        /// The profiler's callback panicked.
        ToolPanicked = "tool-panicked",
    }
}

words! {
    /// How memory is put back before a pass.
    RestoreMode, "restore mode" {
        /// Copy everything back.
        Full = "full",
        /// Hash all live tiles before every pass and copy the changed ones back.
        HashEveryPass = "hash-every-pass",
        /// Hash once, before pass 1; later passes copy the same tiles back, and the rest is
        /// checked at the end.
        HashOnce = "hash-once",
    }
}

words! {
    /// When it was checked that every pass started from the captured bytes.
    Verified, "verification" {
        /// Before every pass.
        EveryPass = "every-pass",
        /// At the end of the window only; a change that reverts itself in between escapes.
        EndOnly = "end-only",
    }
}

words! {
    /// One kind of place to save bytes, in order of preference.
    Tier, "tier" {
        /// Memory of the agent itself.
        Device = "device",
        /// Host memory that the agent can reach over its link.
        PinnedHost = "pinned-host",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::collections::BTreeSet;
    use std::string::ToString;

    fn check<T>(all: &[T])
    where
        T: Copy + fmt::Display + FromStr<Err = UnknownWord> + PartialEq + fmt::Debug,
    {
        let words: BTreeSet<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), all.len(), "two values share a word");
        for value in all {
            let word = value.to_string();
            assert!(
                word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{word}"
            );
            assert_eq!(word.parse(), Ok(*value));
            assert!(word.to_uppercase().parse::<T>().is_err());
        }
    }

    #[test]
    fn every_word_is_distinct_kebab_case_and_parses_back() {
        check(Outcome::ALL);
        check(Reason::ALL);
        check(RestoreMode::ALL);
        check(Verified::ALL);
        check(Tier::ALL);
    }
}
