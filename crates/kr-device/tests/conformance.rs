//! The host backend keeps the contract of [`Device`](kr_device::Device): every rule of the suite,
//! with few and many copy threads, with much and little memory.

use std::process::ExitCode;

use kr_device::host::{HostDevice, HostDeviceConfig};
use kr_testkit::conformance::device;
use kr_types::AgentId;
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let threads = |n: u64| HostDeviceConfig {
        copy_threads: n.try_into().ok(),
        ..HostDeviceConfig::default()
    };
    let tight = |config| HostDeviceConfig {
        device_bytes: Some(8 << 20),
        pinned_bytes: Some(8 << 20),
        ..config
    };
    let configs = [
        ("one_thread", threads(1)),
        ("four_threads", threads(4)),
        ("one_thread_little_memory", tight(threads(1))),
        ("seven_threads_little_memory", tight(threads(7))),
    ];
    let trials = configs.iter().flat_map(|(name, config)| {
        device::rules::<HostDevice>().iter().map(move |rule| {
            let config = config.clone();
            Trial::test(format!("{name}::{}", rule.name), move || {
                (rule.check)(&HostDevice::with_config(AgentId(3), &config));
                Ok(())
            })
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
