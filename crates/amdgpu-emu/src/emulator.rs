//! Runs a dispatch: starts workgroups, gives their waves turns, and ends.
//!
//! Waves of a workgroup take turns of about [`TURN`] instructions, or until they end, wait at a barrier or sleep.
//! Workgroups start in order, one at a time. The next one starts beside those that run only after a round of turns in
//! which none of them ended, stored anything or passed a barrier, or after [`PATIENCE`] rounds without an end, and up to
//! [`Limits::resident`]: kernels whose workgroups wait for later ones then get on, and most others run one workgroup
//! after another. The order is a function of the dispatch alone.
//!
//! Not here: what an instruction does (`isa`), how one is found (`code`).

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::code::Code;
use crate::counters::{COMPUTE_UNITS, LAUNCH_CYCLES, Tally};
use crate::descriptor::{Kernel, Start};
use crate::isa::{Bus, Exec, Halt, Instruction, Stop};
use crate::wave::{State, Wave};
use crate::{Counter, Counters, Dispatch, Fault, Illegal, KernelError, LANES, Memory, Place};

/// Instructions of a wave's turn. The turn ends at the first jump backwards after them, so that a wave that loops is
/// seen at the same place again and again.
const TURN: u32 = 4096;

/// Rounds of turns without an end, after which another workgroup starts even though those that run store something.
const PATIENCE: u32 = 64;

/// What turns an endless kernel into an error. Both are off unless asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wave instructions that a dispatch may execute; after them it ends with [`Fault::Budget`].
    pub budget: Option<NonZeroU64>,
    /// How often the state of all waves must repeat itself, with nothing stored in between, until the dispatch ends
    /// with [`Fault::NoProgress`]. Only sound where no one else will write what the waves wait for.
    pub repeats: Option<NonZeroU32>,
    /// Workgroups that may run side by side when they wait for each other.
    pub resident: NonZeroU32,
}

impl Default for Limits {
    fn default() -> Self {
        const RESIDENT: NonZeroU32 =
            NonZeroU32::new(COMPUTE_UNITS as u32).expect("there are compute units");
        Self {
            budget: None,
            repeats: None,
            resident: RESIDENT,
        }
    }
}

/// A wave instruction that is about to be executed.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Where.
    pub place: Place,
    /// The instruction; its `Display` is the assembler's text.
    pub instruction: &'a Instruction,
    /// The lanes that are on.
    pub exec: u64,
}

/// What is called before each wave instruction.
type Trace<'a> = dyn FnMut(&Step<'_>) + 'a;

/// How a dispatch ended, and what it counted until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The counters, up to the fault if there was one.
    pub counters: Counters,
    /// Whether every wave came to its end.
    pub result: Result<(), Fault>,
}

/// Runs dispatches on one agent's memory.
///
/// A kernel of one instruction that ends at once, on eight waves:
///
/// ```
/// use amdgpu_emu::{Counter, Dispatch, Emulator, FlatMemory, Memory};
///
/// let memory = FlatMemory::new(0x1000, 4096);
/// memory.write(0x1010, &256i64.to_le_bytes())?; // kernel descriptor: the code is 256 bytes further on
/// memory.write(0x1100, &0xbf81_0000u32.to_le_bytes())?; // s_endpgm
/// let dispatch = Dispatch {
///     workgroup_size: [128, 1, 1],
///     grid_size: [512, 1, 1],
///     kernel_object: 0x1000,
///     ..Dispatch::default()
/// };
/// let outcome = Emulator::new(&memory).run(&dispatch);
/// assert_eq!(outcome.result, Ok(()));
/// assert_eq!(outcome.counters[Counter::Waves], 8);
/// # Ok::<(), amdgpu_emu::AccessFault>(())
/// ```
pub struct Emulator<'a> {
    memory: &'a dyn Memory,
    limits: Limits,
    seed: u64,
    clock: u64,
    cancel: Option<&'a AtomicBool>,
    interrupt: Option<Box<dyn FnMut(u32) + 'a>>,
    trace: Option<Box<Trace<'a>>>,
}

impl fmt::Debug for Emulator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator")
            .field("limits", &self.limits)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl<'a> Emulator<'a> {
    /// An emulator on `memory`, without limits, trace or interrupts.
    pub fn new(memory: &'a dyn Memory) -> Self {
        let (limits, seed) = (Limits::default(), 0x9e37_79b9_7f4a_7c15);
        Self {
            memory,
            limits,
            seed,
            clock: 0,
            cancel: None,
            interrupt: None,
            trace: None,
        }
    }

    /// Ends dispatches that would not end by themselves.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Seed of the garbage that registers and LDS start with.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What `s_memtime` and `s_memrealtime` read at the start of the next dispatch, in cycles of the model.
    #[must_use]
    pub fn clock(mut self, cycles: u64) -> Self {
        self.clock = cycles;
        self
    }

    /// A flag that is looked at between instructions: once it is set, running waves are discarded.
    #[must_use]
    pub fn cancel(mut self, flag: &'a AtomicBool) -> Self {
        self.cancel = Some(flag);
        self
    }

    /// Called with the event's number when a kernel interrupts the host (`s_sendmsg` 1). Without it, the message is
    /// dropped.
    #[must_use]
    pub fn interrupt(mut self, raise: impl FnMut(u32) + 'a) -> Self {
        self.interrupt = Some(Box::new(raise));
        self
    }

    /// Called before each wave instruction. Slow.
    #[must_use]
    pub fn trace(mut self, step: impl FnMut(&Step<'_>) + 'a) -> Self {
        self.trace = Some(Box::new(step));
        self
    }

    /// Runs `dispatch` to its end on the calling thread.
    pub fn run(&mut self, dispatch: &Dispatch) -> Outcome {
        let mut counters = Counters::default();
        let result = self.run_counted(dispatch, &mut counters);
        Outcome { counters, result }
    }

    fn run_counted(&mut self, dispatch: &Dispatch, counters: &mut Counters) -> Result<(), Fault> {
        dispatch.check()?;
        let kernel = Kernel::read(dispatch, self.memory)?;
        let mut grid = Grid::new(dispatch, &kernel, self.limits.resident.get())?;
        let mut runner = Runner {
            emulator: self,
            code: Code::new(&kernel),
            fuel: 0,
            repeats: Repeats::default(),
            progressed: false,
        };
        runner.fuel = runner
            .emulator
            .limits
            .budget
            .map_or(u64::MAX, NonZeroU64::get);
        let result = grid.run(&mut runner);
        grid.count(counters);
        result
    }
}

/// A workgroup that has started.
struct Group {
    index: u64,
    id: [u32; 3],
    /// Which share of the scratch memory it has.
    share: u32,
    waves: Vec<Wave>,
    lds: Vec<u8>,
    tally: Tally,
}

/// The workgroups of a dispatch.
struct Grid<'a> {
    dispatch: &'a Dispatch,
    kernel: &'a Kernel,
    /// Workgroups in x, y, z and in all.
    size: [u32; 3],
    total: u64,
    /// Index of the next one to start.
    next: u64,
    running: Vec<Group>,
    /// Most that may run side by side.
    resident: usize,
    /// Waves started, and cycles of each compute unit.
    waves: u64,
    cycles: [u64; COMPUTE_UNITS],
    tallies: Counters,
}

impl<'a> Grid<'a> {
    fn new(dispatch: &'a Dispatch, kernel: &'a Kernel, resident: u32) -> Result<Self, Fault> {
        let size = dispatch.workgroups();
        let mut grid = Self {
            dispatch,
            kernel,
            size,
            total: size
                .iter()
                .map(|&n| u64::from(n))
                .fold(1, u64::saturating_mul),
            next: 0,
            running: Vec::new(),
            resident: resident as usize,
            waves: 0,
            cycles: [0; COMPUTE_UNITS],
            tallies: Counters::default(),
        };
        let needed = u64::from(grid.waves_of([0; 3])) * u64::from(grid.scratch_of_wave());
        if needed > 0 {
            let granted = u64::from(dispatch.scratch.bytes());
            if needed > granted {
                return Err(KernelError::Scratch { needed, granted }.into());
            }
            grid.resident = grid.resident.min((granted / needed) as usize);
        }
        Ok(grid)
    }

    /// Bytes of scratch that a wave has: its work-items' private memory, in steps of 1 KiB.
    fn scratch_of_wave(&self) -> u32 {
        self.dispatch
            .private_segment_size
            .saturating_mul(LANES as u32)
            .checked_next_multiple_of(1024)
            .unwrap_or(u32::MAX)
    }

    /// Work-items of a workgroup in x, y, z; fewer at the end of the grid.
    fn items_of(&self, id: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|i| {
            let full = u32::from(self.dispatch.workgroup_size[i]);
            full.min(self.dispatch.grid_size[i] - id[i] * full)
        })
    }

    fn waves_of(&self, id: [u32; 3]) -> u32 {
        self.items_of(id)
            .iter()
            .product::<u32>()
            .div_ceil(LANES as u32)
    }

    /// Starts the next workgroup, in the share of the scratch memory that is free.
    fn start(&mut self, seed: u64) {
        let index = self.next;
        self.next += 1;
        let [x, y] = [u64::from(self.size[0]), u64::from(self.size[1])];
        let id = [
            (index % x) as u32,
            (index / x % y) as u32,
            (index / x / y) as u32,
        ];
        let share = (0..)
            .find(|share| self.running.iter().all(|group| group.share != *share))
            .unwrap_or(0);
        let items = self.items_of(id);
        let waves = self.waves_of(id);
        let scratch = self.scratch_of_wave();
        let first_slot = share * self.waves_of([0; 3]);
        let garbage = mix(seed ^ mix(index));
        self.waves += u64::from(waves);
        let lds_bytes = self.dispatch.group_segment_size as usize;
        let mut lds = garbage.to_le_bytes().repeat(lds_bytes.div_ceil(8));
        lds.truncate(lds_bytes);
        self.running.push(Group {
            index,
            id,
            share,
            lds,
            tally: Tally::default(),
            waves: (0..waves)
                .map(|wave| {
                    let start = Start {
                        workgroup: id,
                        scratch_offset: (first_slot + wave).saturating_mul(scratch),
                        first: wave == 0,
                        waves,
                    };
                    Wave::new(
                        self.kernel,
                        self.dispatch,
                        &start,
                        wave,
                        items,
                        mix(garbage ^ u64::from(wave)),
                    )
                })
                .collect(),
        });
    }

    fn run(&mut self, runner: &mut Runner<'_, '_>) -> Result<(), Fault> {
        let mut rounds = 0;
        loop {
            if self.running.is_empty() {
                if self.next == self.total {
                    return Ok(());
                }
                self.start(runner.emulator.seed);
            }
            for group in &mut self.running {
                runner.round(group)?;
            }
            let progressed = std::mem::take(&mut runner.progressed);
            rounds += 1;
            if self.retire_ended() {
                rounds = 0;
                continue;
            }
            let room = self.next < self.total && self.running.len() < self.resident;
            if room && (!progressed || rounds >= PATIENCE) {
                self.start(runner.emulator.seed);
                rounds = 0;
            }
            runner.look_for_repeats(progressed, &self.running)?;
        }
    }

    /// Forgets workgroups whose waves have all ended; whether there was any.
    fn retire_ended(&mut self) -> bool {
        let has_ended =
            |group: &mut Group| group.waves.iter().all(|wave| wave.state == State::Ended);
        let ended: Vec<Group> = self.running.extract_if(.., has_ended).collect();
        ended
            .iter()
            .for_each(|group| self.retire(group.index, &group.tally));
        !ended.is_empty()
    }

    /// Adds what a workgroup executed.
    fn retire(&mut self, index: u64, tally: &Tally) {
        self.cycles[(index % COMPUTE_UNITS as u64) as usize] += tally.cycles();
        tally.add_to(&mut self.tallies);
    }

    fn count(&mut self, counters: &mut Counters) {
        for group in std::mem::take(&mut self.running) {
            self.retire(group.index, &group.tally);
        }
        *counters = self.tallies;
        let busy = self.cycles.iter().copied().max().unwrap_or(0);
        counters[Counter::Waves] = self.waves;
        counters[Counter::BusyCycles] = busy;
        counters[Counter::GrbmCount] = busy + LAUNCH_CYCLES;
        counters[Counter::GrbmGuiActive] = busy + LAUNCH_CYCLES;
    }
}

/// What all waves of a dispatch share while it runs.
struct Runner<'r, 'a> {
    emulator: &'r mut Emulator<'a>,
    code: Code,
    /// Instructions left of the budget.
    fuel: u64,
    repeats: Repeats,
    /// Whether a wave ended, passed a barrier or did something that others can see, since this was last looked at.
    progressed: bool,
}

impl Runner<'_, '_> {
    /// Gives each wave of a workgroup that can run one turn, then opens the barrier if all have come to it.
    fn round(&mut self, group: &mut Group) -> Result<(), Fault> {
        for wave in &mut group.waves {
            if wave.state == State::Running {
                self.turn(wave, &mut group.lds, &mut group.tally, group.id)?;
            }
        }
        if group.waves.iter().all(|wave| wave.state != State::Running) {
            for wave in &mut group.waves {
                if wave.state == State::AtBarrier {
                    wave.state = State::Running;
                    self.progressed = true;
                }
            }
        }
        Ok(())
    }

    fn turn(
        &mut self,
        wave: &mut Wave,
        lds: &mut [u8],
        tally: &mut Tally,
        id: [u32; 3],
    ) -> Result<(), Fault> {
        let place = |pc: u64, wave: &Wave| Place {
            pc,
            workgroup: id,
            wave: wave.id,
        };
        let never = AtomicBool::new(false);
        let cancel = self.emulator.cancel.unwrap_or(&never);
        let lds_bytes = lds.len() as u32;
        let mut bus = Bus {
            memory: self.emulator.memory,
            lds,
            interrupt: self
                .emulator
                .interrupt
                .as_mut()
                .map(|raise| &mut **raise as &mut dyn FnMut(u32)),
            now: 0,
            stored: false,
        };
        for step in 0.. {
            let pc = wave.pc;
            if cancel.load(Ordering::Relaxed) {
                return Err(Fault::Cancelled {
                    place: place(pc, wave),
                });
            }
            if self.fuel == 0 {
                let budget = self.emulator.limits.budget.map_or(0, NonZeroU64::get);
                return Err(Fault::Budget {
                    place: place(pc, wave),
                    budget,
                });
            }
            let op = match self.code.at(pc, bus.memory) {
                Ok(op) => op,
                Err(error) => return Err(error.at(place(pc, wave))),
            };
            if let Some(trace) = &mut self.emulator.trace {
                trace(&Step {
                    place: place(pc, wave),
                    instruction: op,
                    exec: wave.exec(),
                });
            }
            self.fuel -= 1;
            tally.add(op.class);
            wave.pc = pc.wrapping_add(u64::from(op.len));
            match op.exec {
                Exec::Registers(run) => run(wave, op),
                Exec::Machine(run) => {
                    bus.now = self.emulator.clock + LAUNCH_CYCLES + tally.cycles();
                    match run(wave, &mut bus, op) {
                        Ok(()) => {}
                        Err(Stop::Pause(state)) => {
                            wave.state = state;
                            bus.stored |= state == State::Ended;
                            break;
                        }
                        Err(Stop::Halt(halt)) => {
                            return Err(fault(halt, place(pc, wave), op, lds_bytes));
                        }
                    }
                }
                Exec::Missing => {
                    return Err(fault(
                        Halt::Illegal(Illegal::NotModelled),
                        place(pc, wave),
                        op,
                        lds_bytes,
                    ));
                }
            }
            if step >= TURN && wave.pc <= pc {
                break;
            }
        }
        self.progressed |= bus.stored;
        Ok(())
    }

    /// Ends the dispatch when the state of its waves has repeated itself often enough.
    fn look_for_repeats(&mut self, progressed: bool, running: &[Group]) -> Result<(), Fault> {
        let Some(limit) = self.emulator.limits.repeats else {
            return Ok(());
        };
        if progressed {
            self.repeats = Repeats::default();
            return Ok(());
        }
        let waves = || {
            running
                .iter()
                .flat_map(|group| group.waves.iter().map(move |wave| (group, wave)))
        };
        let state = waves().fold(0, |hash, (_, wave)| mix(hash ^ wave.digest()));
        if self.repeats.seen(state) < limit.get() {
            return Ok(());
        }
        let (group, wave) = waves()
            .find(|(_, wave)| wave.state == State::Running)
            .expect("a round with no wave running opened the barrier");
        Err(Fault::NoProgress {
            place: Place {
                pc: wave.pc,
                workgroup: group.id,
                wave: wave.id,
            },
        })
    }
}

/// The fault that an instruction's end of the dispatch amounts to.
fn fault(halt: Halt, place: Place, op: &Instruction, lds_bytes: u32) -> Fault {
    let mnemonic = op.mnemonic();
    match halt {
        Halt::Memory(fault) => Fault::Memory {
            place,
            mnemonic,
            fault,
        },
        Halt::Lds { offset } => Fault::Lds {
            place,
            mnemonic,
            offset,
            size: lds_bytes,
        },
        Halt::Trap(id) => Fault::Trap { place, id },
        Halt::Illegal(illegal) => Fault::Instruction {
            place,
            words: op.words,
            mnemonic: Some(mnemonic),
            illegal,
        },
    }
}

/// Finds out that a sequence of states repeats itself, with Brent's algorithm: one state is remembered, and replaced
/// by the present one after 1, 2, 4, 8 … looks.
#[derive(Default)]
struct Repeats {
    remembered: Option<u64>,
    looks: u64,
    power: u64,
    repeats: u32,
}

impl Repeats {
    /// How often `state` has now been seen since it was remembered.
    fn seen(&mut self, state: u64) -> u32 {
        if self.remembered == Some(state) {
            self.repeats += 1;
            return self.repeats;
        }
        self.looks += 1;
        if self.looks > self.power {
            *self = Self {
                remembered: Some(state),
                looks: 0,
                power: (self.power * 2).max(1),
                repeats: 0,
            };
        }
        0
    }
}

/// A step of splitmix64: garbage and digests come from it.
pub(crate) fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
