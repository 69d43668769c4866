//! Why a call of the thunk was refused, and the status that says so to ROCr.

use crate::abi::Status;
use crate::config::ConfigError;

/// A refused call. Nothing changed, unless a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the emulated driver is not open")]
    NotOpen,
    #[error("the emulated driver is open already")]
    AlreadyOpen,
    #[error(
        "this process is a fork of one that had opened the emulated GPU, and has neither its queues nor its threads; use exec, or open only in the child"
    )]
    Forked,
    #[error("cannot set up the emulated machine")]
    Config(#[from] ConfigError),
    #[error("there is no node {0} with what was asked for")]
    Node(u32),
    #[error("{0} is null")]
    Null(&'static str),
    #[error("{what} is {value:#x}, want {want}")]
    Argument {
        what: &'static str,
        value: u64,
        want: &'static str,
    },
    #[error("node {node} has no {bytes} bytes left in one piece, {free} are free")]
    NoMemory { node: u32, bytes: u64, free: u64 },
    #[error("the host refused {what}")]
    Host {
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("address {0:#x} is in no block of the emulated driver")]
    NoBlock(u64),
    #[error("address {0:#x} is not a multiple of 4096")]
    Unaligned(u64),
    #[error("there is no queue {0}")]
    NoQueue(u64),
    #[error(
        "queue {0} was stopped by an error or in the middle of a kernel, and can only be destroyed"
    )]
    QueueStopped(u64),
    #[error("there is no event {0}")]
    NoEvent(u32),
    #[error("all {0} events are in use")]
    NoEventLeft(u32),
    #[error("not emulated: {0}")]
    NotSupported(&'static str),
    #[error("panicked: {0}")]
    Panicked(String),
    #[error("exceptions are off")]
    WithoutExceptions,
    /// Time ran out, which is no fault of anybody.
    #[error("timed out")]
    Timeout,
}

impl Error {
    /// The status for ROCr.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::NotOpen | Self::Forked => Status::KERNEL_IO_CHANNEL_NOT_OPENED,
            Self::AlreadyOpen => Status::KERNEL_ALREADY_OPENED,
            Self::Config(_) | Self::Panicked(_) => Status::ERROR,
            Self::Node(_) => Status::INVALID_NODE_UNIT,
            Self::Null(_) | Self::Argument { .. } => Status::INVALID_PARAMETER,
            Self::NoMemory { .. } | Self::Host { .. } => Status::NO_MEMORY,
            Self::NoBlock(_) => Status::MEMORY_NOT_REGISTERED,
            Self::Unaligned(_) => Status::MEMORY_ALIGNMENT,
            Self::NoQueue(_) | Self::NoEvent(_) => Status::INVALID_HANDLE,
            Self::QueueStopped(_) => Status::UNAVAILABLE,
            Self::NoEventLeft(_) => Status::OUT_OF_RESOURCES,
            Self::NotSupported(_) | Self::WithoutExceptions => Status::NOT_SUPPORTED,
            Self::Timeout => Status::WAIT_TIMEOUT,
        }
    }
}

/// An error and what caused it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
