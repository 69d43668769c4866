//! What the host backend promises beyond the contract of [`Device`]: faults on request, bad ranges
//! as errors, and kernels.

use std::num::NonZeroU64;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use kr_device::host::{
    Cancel, Fault, HostBlock, HostDevice, HostDeviceConfig, HostFence, HostKernel, KernelCtx,
    KernelFault, KernelLaunch,
};
use kr_device::{Block, CopyOp, Device, DeviceError};
use kr_types::{AgentId, DeviceAddr, Tier};

const AGENT: AgentId = AgentId(5);
const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

fn device() -> HostDevice {
    HostDevice::new(AGENT)
}

fn block(device: &HostDevice, bytes: u64) -> HostBlock {
    let bytes = NonZeroU64::new(bytes).expect("blocks are not empty");
    device
        .alloc(Tier::Device, bytes)
        .expect("the host has memory")
}

fn submit(
    device: &HostDevice,
    copies: &[(DeviceAddr, DeviceAddr, u64)],
) -> Result<HostFence, DeviceError> {
    let op = |&(from, to, len): &(_, _, u64)| CopyOp {
        from,
        to,
        len: len.try_into().expect("copies are not empty"),
    };
    let copies: Vec<_> = copies.iter().map(op).collect();
    // SAFETY: memory of this backend is made of atomic words and every range is checked, so no
    // copy is undefined behaviour.
    unsafe { device.submit(&copies) }
}

/// Copies and waits.
fn copy(
    device: &HostDevice,
    from: DeviceAddr,
    to: DeviceAddr,
    len: u64,
) -> Result<(), DeviceError> {
    let fence = submit(device, &[(from, to, len)])?;
    assert!(device.wait(&fence, PATIENCE)?, "the copy did not end");
    Ok(())
}

fn bytes_at(device: &HostDevice, addr: DeviceAddr, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    device
        .read_bytes(addr, &mut bytes)
        .expect("the range is mapped");
    bytes
}

fn fault(addr: DeviceAddr, len: u64) -> DeviceError {
    let agent = AGENT;
    DeviceError::Fault { agent, addr, len }
}

fn past(addr: DeviceAddr, bytes: u64) -> DeviceAddr {
    DeviceAddr(addr.0 + bytes)
}

// Faults on request

/// Which of five operations of each kind fail after `fail_nth(kind, n)`.
#[test]
fn the_nth_operation_fails_and_no_other() {
    type Operation = fn(&HostDevice, DeviceAddr) -> Result<(), DeviceError>;
    let operations: [(Fault, &str, Operation); 5] = [
        (Fault::Alloc, "alloc", |device, _| {
            device.alloc(Tier::PinnedHost, NonZeroU64::MIN).map(drop)
        }),
        (Fault::Submit, "submit", |device, at| {
            submit(device, &[(at, past(at, 8), 8)]).map(drop)
        }),
        (Fault::Copy, "copy", |device, at| {
            copy(device, at, past(at, 8), 8)
        }),
        (Fault::Read, "read", |device, at| {
            // SAFETY: as for `submit`.
            unsafe { device.read(at, &mut [0; 8]) }
        }),
        (Fault::Write, "write", |device, at| {
            // SAFETY: as for `submit`.
            unsafe { device.write(at, &[0; 8]) }
        }),
    ];
    for (kind, operation, run) in operations {
        let pair = match kind {
            Fault::Submit | Fault::Copy => &[Fault::Submit, Fault::Copy][..],
            _ => &[],
        };
        let device = device();
        let block = block(&device, PAGE);
        for n in 0..3 {
            device.fail_nth(kind, n);
            // A copy is also a submit, and the other way round; else no kind counts another's.
            let apart = |other: Fault| other != kind && !pair.contains(&other);
            for (other, _, run) in operations.iter().filter(|(other, ..)| apart(*other)) {
                assert_eq!(
                    run(&device, block.addr()),
                    Ok(()),
                    "{other:?} with {kind:?} armed"
                );
            }
            for i in 0..5 {
                let result = run(&device, block.addr());
                if i != n {
                    assert_eq!(result, Ok(()), "{kind:?} {i} with {n} armed");
                    continue;
                }
                let expected = match kind {
                    Fault::Alloc => DeviceError::OutOfMemory {
                        agent: AGENT,
                        tier: Tier::PinnedHost,
                        requested: NonZeroU64::MIN,
                    },
                    _ => DeviceError::Failed {
                        agent: AGENT,
                        operation,
                        detail: "injected fault".to_owned(),
                    },
                };
                assert_eq!(result, Err(expected), "{kind:?} {i} with {n} armed");
            }
        }
        assert_eq!(device.used_bytes(Tier::Device), PAGE);
        drop(block);
        let used = [Tier::Device, Tier::PinnedHost].map(|tier| device.used_bytes(tier));
        assert_eq!(used, [0, 0], "after faults of {kind:?}");
    }
}

#[test]
fn a_failed_submit_copies_nothing() {
    let device = device();
    let block = block(&device, PAGE);
    device.write_bytes(block.addr(), &[1, 2]).unwrap();
    device.fail_nth(Fault::Submit, 0);
    assert!(submit(&device, &[(block.addr(), past(block.addr(), 1), 1)]).is_err());
    // The next submit completes after anything that were under way.
    copy(&device, block.addr(), past(block.addr(), 100), 1).unwrap();
    assert_eq!(bytes_at(&device, block.addr(), 2), [1, 2]);
}

#[test]
fn a_failed_copy_is_reported_by_its_fence_and_by_no_other() {
    let device = device();
    let block = block(&device, 9 * MIB);
    let at = |mib| past(block.addr(), mib * MIB);
    device.write_bytes(at(0), &[7; 64]).unwrap();
    let hold = device.hold_copies();
    // The second copy of the second submit fails; a copy counts once, however long it is.
    device.fail_nth(Fault::Copy, 4);
    let fences = [
        submit(
            &device,
            &[
                (at(0), at(2), 3 * MIB),
                (at(0), at(5), MIB),
                (at(0), at(6), 1),
            ],
        ),
        submit(&device, &[(at(0), at(7), 64), (at(0), past(at(7), 64), 64)]),
        submit(&device, &[(at(0), at(8), 64)]),
    ]
    .map(Result::unwrap);
    drop(hold);
    let expected = DeviceError::Failed {
        agent: AGENT,
        operation: "copy",
        detail: "injected fault".to_owned(),
    };
    assert_eq!(device.wait(&fences[2], PATIENCE), Ok(true));
    assert_eq!(device.wait(&fences[1], PATIENCE), Err(expected.clone()));
    assert_eq!(
        device.wait(&fences[1], Duration::ZERO),
        Err(expected),
        "a second look"
    );
    assert_eq!(device.wait(&fences[0], PATIENCE), Ok(true));
    for (mib, len) in [(2, 64), (5, 64), (6, 1), (8, 64)] {
        assert_eq!(
            bytes_at(&device, at(mib), len),
            vec![7; len as usize],
            "at {mib} MiB"
        );
    }
}

#[test]
fn held_copies_wait_and_then_complete() {
    let device = device();
    let block = block(&device, PAGE);
    let (from, to) = (block.addr(), past(block.addr(), 64));
    device.write_bytes(from, &[7; 64]).unwrap();
    let holds = [device.hold_copies(), device.hold_copies()];
    let fence = submit(&device, &[(from, to, 64)]).unwrap();
    for hold in holds {
        assert_eq!(device.wait(&fence, Duration::ZERO), Ok(false));
        let limit = Duration::from_millis(20);
        let start = Instant::now();
        assert_eq!(device.wait(&fence, limit), Ok(false));
        let took = start.elapsed();
        assert!(
            took >= limit && took < PATIENCE,
            "a wait of {limit:?} took {took:?}"
        );
        assert_eq!(bytes_at(&device, to, 64), [0; 64]);
        // Nothing but copies is held.
        device.write_bytes(past(to, 64), &[1]).unwrap();
        drop(hold);
    }
    assert_eq!(device.wait(&fence, PATIENCE), Ok(true));
    assert_eq!(bytes_at(&device, to, 64), [7; 64]);
}

#[test]
fn a_device_goes_away_although_its_copies_are_held() {
    let device = device();
    let block = block(&device, PAGE);
    let hold = device.hold_copies();
    let fences: Vec<_> = (0..3)
        .map(|i| submit(&device, &[(block.addr(), past(block.addr(), 64 + i), 1)]).unwrap())
        .collect();
    let (gone, is_gone) = mpsc::channel();
    let dropping = thread::spawn(move || {
        drop(device);
        gone.send(()).unwrap();
    });
    assert_eq!(is_gone.recv_timeout(PATIENCE), Ok(()), "the drop hangs");
    dropping.join().unwrap();
    // Who still waits is told. Any device can look at a fence of this backend.
    for fence in &fences {
        let result = self::device().wait(fence, PATIENCE);
        assert!(
            matches!(
                result,
                Err(DeviceError::Failed {
                    operation: "copy",
                    ..
                })
            ),
            "{result:?}"
        );
    }
    drop((block, hold));
}

// Memory

#[test]
fn capacity_is_per_tier_and_exact() {
    let device = HostDevice::with_config(
        AGENT,
        &HostDeviceConfig {
            device_bytes: Some(100),
            pinned_bytes: Some(200),
            copy_threads: None,
        },
    );
    let alloc = |tier, bytes: u64| device.alloc(tier, bytes.try_into().unwrap());
    for (tier, capacity) in [(Tier::Device, 100), (Tier::PinnedHost, 200)] {
        let first = alloc(tier, 60).unwrap();
        let requested = (capacity - 59).try_into().unwrap();
        let expected = DeviceError::OutOfMemory {
            agent: AGENT,
            tier,
            requested,
        };
        assert_eq!(alloc(tier, capacity - 59).map(drop), Err(expected));
        assert_eq!(device.used_bytes(tier), 60);
        let rest = alloc(tier, capacity - 60).unwrap();
        assert_eq!(device.used_bytes(tier), capacity);
        drop((first, rest));
        assert_eq!(device.used_bytes(tier), 0);
        assert!(alloc(tier, capacity).is_ok());
    }
}

#[test]
fn a_freed_address_is_used_again() {
    let device = device();
    let (a, b) = (block(&device, 3 * PAGE), block(&device, 3 * PAGE));
    let freed = a.addr();
    drop(a);
    let c = block(&device, 3 * PAGE - 1);
    assert_eq!(c.addr(), freed);
    assert_ne!(c.addr(), b.addr());
    // The new owner's length counts.
    assert_eq!(
        device.read_bytes(c.addr(), &mut vec![0; 3 * PAGE as usize]),
        Err(fault(freed, 3 * PAGE))
    );
}

#[test]
fn a_bad_range_is_a_fault_that_names_it() {
    let device = device();
    let good = block(&device, PAGE);
    let block = block(&device, 4 * PAGE);
    let freed = {
        let freed = self::block(&device, 5 * PAGE);
        freed.addr()
    };
    let cases = [
        ("over the end", past(block.addr(), 4 * PAGE - 8), 9),
        ("in the gap", past(block.addr(), 4 * PAGE), 1),
        ("before the first", DeviceAddr(good.addr().0 - 1), 1),
        ("across a gap", good.addr(), 2 * PAGE + 1),
        ("after free", freed, 1),
        ("at null", DeviceAddr::NULL, 16),
        ("round the address space", DeviceAddr(u64::MAX), 16),
    ];
    for (what, addr, len) in cases {
        let expected = fault(addr, len);
        assert!(expected.to_string().contains(&addr.to_string()));
        let mut into = vec![0; len as usize];
        assert_eq!(
            device.read_bytes(addr, &mut into),
            Err(expected.clone()),
            "read {what}"
        );
        assert_eq!(
            device.write_bytes(addr, &into),
            Err(expected.clone()),
            "write {what}"
        );
        let from = copy(&device, addr, block.addr(), len);
        assert_eq!(from, Err(expected.clone()), "copy from {what}");
        let to = copy(&device, block.addr(), addr, len);
        assert_eq!(to, Err(expected), "copy to {what}");
        // The device goes on.
        assert_eq!(
            copy(&device, block.addr(), past(block.addr(), 64), 64),
            Ok(())
        );
    }
    assert_eq!(
        bytes_at(&device, block.addr(), 4 * PAGE),
        vec![0; 4 * PAGE as usize]
    );
}

#[test]
fn a_wild_copy_length_faults_and_costs_nothing() {
    let device = device();
    let (a, b) = (block(&device, 3 * MIB), block(&device, 3 * MIB));
    for len in [4 * MIB, 1 << 40, 1 << 62, u64::MAX] {
        let result = copy(&device, a.addr(), b.addr(), len);
        let Err(DeviceError::Fault {
            agent: AGENT, addr, ..
        }) = result
        else {
            panic!("a copy of {len} bytes gave {result:?}");
        };
        // The piece that does not fit is named.
        let offset = addr.offset_from(a.addr());
        assert!(
            offset.is_some_and(|at| at >= 2 * MIB),
            "{addr} for {}",
            a.addr()
        );
    }
    assert_eq!(copy(&device, a.addr(), b.addr(), 3 * MIB), Ok(()));
}

// Kernels

#[test]
fn a_kernel_counts_what_it_does() {
    let device = device();
    let block = block(&device, PAGE);
    device
        .write_bytes(block.addr(), &[1, 0, 2, 0, 3, 0])
        .unwrap();
    let kernel = HostKernel::new("count", |ctx| {
        let [addr] = ctx.args::<[u64; 1]>()?;
        let [x, y, z] = ctx.grid();
        let values = ctx.load::<u16>(DeviceAddr(addr), 3)?;
        let mut again = [0u8; 2];
        ctx.load_into(DeviceAddr(addr), &mut again)?;
        ctx.store(DeviceAddr(addr + 64), &[values[2], u16::from(again[0])])?;
        ctx.add_operations(u64::from(x * y * z));
        ctx.add_operations(1);
        Ok(())
    });
    let launch = KernelLaunch::new(&kernel, &[block.addr().0]).grid([2, 3, 5]);
    for _ in 0..2 {
        let counters = launch.run(&device).unwrap();
        assert_eq!(
            (
                counters.bytes_read,
                counters.bytes_written,
                counters.operations
            ),
            (8, 4, 31)
        );
        assert!(counters.wall > Duration::ZERO);
    }
    assert_eq!(bytes_at(&device, past(block.addr(), 64), 4), [3, 0, 1, 0]);
}

#[test]
fn every_execution_has_its_own_arguments() {
    let kernel = HostKernel::new("scribble", |ctx| {
        let [n] = ctx.args::<[u32; 1]>()?;
        ctx.add_operations(u64::from(n));
        ctx.kernarg_mut().fill(0xff);
        let [scribbled] = ctx.args::<[u32; 1]>()?;
        assert_eq!(scribbled, u32::MAX);
        Ok(())
    });
    let launch = KernelLaunch::new(&kernel, &[7u32]);
    for _ in 0..2 {
        assert_eq!(launch.run(&device()).unwrap().operations, 7);
    }
    assert_eq!(launch.kernarg, 7u32.to_ne_bytes());
}

#[test]
fn arguments_of_the_wrong_size_are_a_fault() {
    let kernel = HostKernel::new("two", |ctx| ctx.args::<[u64; 2]>().map(drop));
    for given in [0, 8, 15, 17, 24] {
        let mut launch = KernelLaunch::new(&kernel, &[0u64; 2]);
        assert!(launch.run(&device()).is_ok());
        launch.kernarg.resize(given, 0);
        let expected = KernelFault::Kernarg {
            expected: 16,
            given,
        };
        assert_eq!(launch.run(&device()), Err(expected));
    }
}

/// Runs `body` on a fresh device, on a block of one page; returns what the page holds then, too.
fn run_on_a_page<F>(body: F) -> (Result<(), KernelFault>, Vec<u8>, DeviceAddr)
where
    F: Fn(&mut KernelCtx<'_>, DeviceAddr) -> Result<(), KernelFault> + Send + Sync + 'static,
{
    let device = device();
    let block = block(&device, PAGE);
    let addr = block.addr();
    let kernel = HostKernel::new("body", move |ctx| body(ctx, addr));
    let result = KernelLaunch::new(&kernel, &[0u8; 0]).run(&device).map(drop);
    (result, bytes_at(&device, addr, PAGE), addr)
}

#[test]
fn a_kernel_that_leaves_its_memory_faults() {
    let (result, bytes, addr) = run_on_a_page(|ctx, addr| {
        ctx.store(addr, &[1u8])?;
        ctx.store(past(addr, PAGE - 4), &[1u64])
    });
    assert_eq!(
        result,
        Err(KernelFault::Memory(fault(past(addr, PAGE - 4), 8)))
    );
    // What it stored stays; the access that faulted stored nothing.
    assert_eq!((bytes[0], &bytes[PAGE as usize - 4..]), (1, &[0; 4][..]));

    let (result, _, addr) = run_on_a_page(|ctx, addr| {
        let mut into = [0u8; 2];
        ctx.load_into(past(addr, PAGE - 1), &mut into)
    });
    assert_eq!(
        result,
        Err(KernelFault::Memory(fault(past(addr, PAGE - 1), 2)))
    );
}

#[test]
fn a_wild_length_faults_before_memory_is_taken_for_it() {
    for n in [PAGE as usize + 1, 1 << 45, 1 << 61, usize::MAX] {
        let (result, ..) = run_on_a_page(move |ctx, addr| ctx.load::<u64>(addr, n).map(drop));
        assert!(
            matches!(result, Err(KernelFault::Memory(DeviceError::Fault { .. }))),
            "{n} values: {result:?}"
        );
    }
}

#[test]
fn a_panic_is_a_fault_of_the_kernel() {
    let text = |result| match result {
        Err(KernelFault::Panicked(text)) => text,
        other => panic!("expected a panic, got {other:?}"),
    };
    let (result, bytes, _) = run_on_a_page(|ctx, addr| {
        ctx.store(addr, &[1u8])?;
        panic!("on purpose");
    });
    assert_eq!((text(result).as_str(), bytes[0]), ("on purpose", 1));
    let (result, ..) = run_on_a_page(|_, addr| panic!("at {addr}"));
    assert!(text(result).starts_with("at 0x"));
    let (result, ..) = run_on_a_page(|_, _| std::panic::panic_any(1));
    assert_eq!(text(result), "no message");
}

#[test]
fn a_cancelled_kernel_stops_at_its_next_access() {
    let device = device();
    let block = block(&device, PAGE);
    let (started, has_started) = mpsc::sync_channel(1);
    let kernel = HostKernel::new("endless", move |ctx| {
        let [addr] = ctx.args::<[u64; 1]>()?;
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            ctx.store(DeviceAddr(addr), &[1u64])?;
            let _ = started.try_send(());
        }
        Ok(())
    });
    let cancel = Cancel::default();
    let launch = KernelLaunch::new(&kernel, &[block.addr().0]);
    thread::scope(|scope| {
        let running = scope.spawn(|| launch.run_until(&device, &cancel));
        has_started.recv_timeout(PATIENCE).unwrap();
        assert!(!cancel.is_cancelled() && !running.is_finished());
        cancel.clone().cancel();
        assert_eq!(running.join().unwrap(), Err(KernelFault::Cancelled));
    });
    // Neither loads nor stores get through any more, and who asks is told.
    type Access = fn(&mut KernelCtx<'_>, DeviceAddr) -> Result<(), KernelFault>;
    let accesses: [Access; 3] = [
        |ctx, addr| ctx.load::<u8>(addr, 1).map(drop),
        |ctx, addr| ctx.store(addr, &[u64::MAX]),
        |ctx, _| ctx.running(),
    ];
    let last = bytes_at(&device, block.addr(), 8);
    for access in accesses {
        let addr = block.addr();
        let kernel = HostKernel::new("late", move |ctx| access(ctx, addr));
        let launch = KernelLaunch::new(&kernel, &[0u8; 0]);
        assert_eq!(
            launch.run_until(&device, &cancel),
            Err(KernelFault::Cancelled)
        );
        assert_eq!(bytes_at(&device, addr, 8), last);
        assert!(
            launch.run(&device).is_ok(),
            "another execution is not cancelled"
        );
        device.write_bytes(addr, &last).unwrap();
    }
}
