//! π by throwing points at a square. The generators' states live in device memory, so every launch
//! goes on where the last one stopped, and how much a launch does depends on them.

use std::error::Error;

use kr_replay::host::{HostKernel, KernelLaunch};

use super::{Finding, Mismatches, Program, element, groups, scramble};
use crate::app::App;
use crate::table;

/// Lanes per workgroup.
const GROUP: usize = 1024;
/// Points inside the circle that each lane finds per launch.
const HITS: u64 = 16;

pub(crate) struct MonteCarlo {
    pub(crate) lanes: usize,
    pub(crate) launches: usize,
}

impl Program for MonteCarlo {
    fn name(&self) -> &'static str {
        "monte-carlo"
    }

    fn run(&self, app: &App<'_>) -> Result<Finding, Box<dyn Error>> {
        let seeds: Vec<u64> = (0..self.lanes as u64).map(seed).collect();
        let states = app.upload(&seeds)?;
        let throws = app.upload(&vec![0u64; self.lanes])?;
        let kernel = kernel();
        for _ in 0..self.launches {
            let args = [states.addr().0, throws.addr().0, self.lanes as u64];
            app.launch(&KernelLaunch::new(&kernel, &args).grid([self.lanes as u32, 1, 1]))?;
        }

        // Exact: integers only.
        let hits = HITS * self.launches as u64;
        let lanes = (0..self.lanes as u64).map(|lane| reference(lane, hits));
        let (want_states, want_throws): (Vec<u64>, Vec<u64>) = lanes.unzip();
        let mut mismatches = Mismatches::default();
        mismatches.compare("throws", &throws.read::<u64>()?, &want_throws);
        mismatches.compare("states", &states.read::<u64>()?, &want_states);
        let all = want_throws.iter().sum::<u64>();
        let pi = 4.0 * (hits * self.lanes as u64) as f64 / all as f64;
        Ok(Finding {
            summary: format!("pi about {pi:.5} from {} points", table::count(all)),
            mismatches,
        })
    }
}

/// Where a lane starts: far from its neighbours, whose first numbers would be like its own.
fn seed(lane: u64) -> u64 {
    scramble(lane + 1)
}

/// Operations: random numbers drawn.
fn kernel() -> HostKernel {
    HostKernel::new("monte-carlo", |ctx| {
        let [states, throws, lanes] = ctx.args::<[u64; 3]>()?;
        for group in groups(lanes as usize, GROUP) {
            let mut state: Vec<u64> = ctx.load(element::<u64>(states, group.start), group.len())?;
            let mut thrown: Vec<u64> =
                ctx.load(element::<u64>(throws, group.start), group.len())?;
            for (lane, (state, thrown)) in group.clone().zip(state.iter_mut().zip(&mut thrown)) {
                let before = *thrown;
                let mut hits = 0;
                while hits < HITS {
                    let [x, y] = [draw(state, lane as u64), draw(state, lane as u64)];
                    let [x, y] = [x, y].map(|v| u64::from(v >> 1));
                    hits += u64::from(x * x + y * y < 1 << 62);
                    *thrown += 1;
                }
                ctx.add_operations(2 * (*thrown - before));
            }
            ctx.store(element::<u64>(states, group.start), &state)?;
            ctx.store(element::<u64>(throws, group.start), &thrown)?;
        }
        Ok(())
    })
}

/// PCG-XSH-RR with 64 bits of state and 32 of output (pcg-random.org). Each lane has a sequence of
/// its own, chosen by the odd increment.
fn draw(state: &mut u64, lane: u64) -> u32 {
    let old = *state;
    *state = old
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(2 * lane + 1);
    ((((old >> 18) ^ old) >> 27) as u32).rotate_right((old >> 59) as u32)
}

/// State and throws of `lane` after it has found `hits` points inside the circle, in arithmetic
/// that cannot wrap.
fn reference(lane: u64, hits: u64) -> (u64, u64) {
    let (mut state, mut throws, mut found) = (u128::from(seed(lane)), 0, 0);
    let mut coordinate = || {
        let mixed = ((state ^ (state >> 18)) >> 27) % (1 << 32);
        let turn = state >> 59;
        state = (state * 6_364_136_223_846_793_005 + u128::from(lane) * 2 + 1) % (1 << 64);
        // A word turned right by n is its two copies side by side, less the last n bits.
        (((mixed << 32 | mixed) >> turn) % (1 << 32)) / 2
    };
    while found < hits {
        let (x, y) = (coordinate(), coordinate());
        throws += 1;
        if x.pow(2) + y.pow(2) < 1u128 << 62 {
            found += 1;
        }
    }
    (state as u64, throws)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the generator's own demonstration, seed 42 on sequence 54.
    #[test]
    fn the_generator_is_pcg32() {
        let (mut state, sequence) = (0, 54);
        draw(&mut state, sequence);
        state += 42;
        draw(&mut state, sequence);
        let drawn: Vec<u32> = (0..4).map(|_| draw(&mut state, sequence)).collect();
        assert_eq!(drawn, [0xa15c_02b7, 0x7b47_f409, 0xba1d_3330, 0x83d2_f293]);
    }

    #[test]
    fn the_reference_finds_pi() {
        let (lanes, hits) = (2_000, 50);
        let throws: u64 = (0..lanes).map(|lane| reference(lane, hits).1).sum();
        let pi = 4.0 * (lanes * hits) as f64 / throws as f64;
        // Four standard deviations: 1.64 over the root of 127,000 throws is one.
        assert!((pi - std::f64::consts::PI).abs() < 0.019, "{pi}");
    }
}
