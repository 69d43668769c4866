//! Tiers without memory, and inventories to place in them.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod case;
pub(crate) mod holes;
pub(crate) mod pool;
pub(crate) mod scripted;

use kr_storage::{Arena, BackingAllocator, Suballocator};

/// A tier whose admission is chosen at run time.
pub(crate) type AnyTier<S, B> = Arena<Box<dyn Fn(&kr_storage::Ask, u64) -> u64>, S, B>;

/// An arena with a boxed admission.
pub(crate) fn tier<S: Suballocator, B: BackingAllocator>(
    admission: impl kr_storage::Admission + 'static,
    suballocator: S,
    backing: B,
) -> AnyTier<S, B> {
    Arena::new(
        Box::new(move |ask: &_, room| admission.accept(ask, room)),
        suballocator,
        backing,
    )
}

/// Makes a chain of one to four tiers, whose type depends on their number, and runs `$body` with it.
#[macro_export]
macro_rules! with_chain {
    ($tiers:expr, |$chain:ident| $body:expr) => {{
        use kr_storage::{Fallback, NullAllocator};
        let mut tiers = $tiers.into_iter();
        let count = tiers.len();
        let mut next = || tiers.next().expect("as many as were counted");
        match count {
            1 => {
                let $chain = &mut Fallback::new(next(), NullAllocator);
                $body
            }
            2 => {
                let $chain = &mut Fallback::new(next(), Fallback::new(next(), NullAllocator));
                $body
            }
            3 => {
                let $chain = &mut Fallback::new(
                    next(),
                    Fallback::new(next(), Fallback::new(next(), NullAllocator)),
                );
                $body
            }
            4 => {
                let $chain = &mut Fallback::new(
                    next(),
                    Fallback::new(
                        next(),
                        Fallback::new(next(), Fallback::new(next(), NullAllocator)),
                    ),
                );
                $body
            }
            other => panic!("{other} tiers"),
        }
    }};
}
