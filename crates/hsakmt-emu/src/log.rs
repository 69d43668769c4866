//! Lines on standard error, as many as `KR_EMU_LOG` asks for.

use std::fmt::Arguments;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::config::Log;

static LEVEL: AtomicU8 = AtomicU8::new(Log::Errors as u8);

/// Sets what is written from now on.
pub(crate) fn set(level: Log) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Writes a line if lines of this level are asked for.
pub(crate) fn line(level: Log, text: Arguments<'_>) {
    if level as u8 <= LEVEL.load(Ordering::Relaxed) {
        eprintln!("hsakmt-emu: {text}");
    }
}

/// Something went wrong.
macro_rules! error {
    ($($text:tt)*) => { $crate::log::line($crate::config::Log::Errors, format_args!($($text)*)) };
}

/// A packet is taken.
macro_rules! packet {
    ($($text:tt)*) => { $crate::log::line($crate::config::Log::Packets, format_args!($($text)*)) };
}

pub(crate) use {error, packet};
