//! Heat in a plate by Jacobi's method: each sweep replaces every inner cell by the mean of its four
//! neighbours, from one buffer into the other.

use std::error::Error;

use kr_replay::host::{HostKernel, KernelLaunch};

use super::{Finding, Mismatches, Program, element, groups};
use crate::app::App;

/// Rows per workgroup.
const GROUP: usize = 32;
/// Temperature of the upper edge; the other edges are at 0.
const HOT: f32 = 100.0;

pub(crate) struct Jacobi {
    /// Cells per row and per column, the fixed edges included; 3 or more.
    pub(crate) side: usize,
    pub(crate) sweeps: usize,
}

impl Program for Jacobi {
    fn name(&self) -> &'static str {
        "jacobi"
    }

    fn run(&self, app: &App<'_>) -> Result<Finding, Box<dyn Error>> {
        let side = self.side;
        let mut plate = vec![0.0f32; side * side];
        plate[..side].fill(HOT);
        let buffers = [app.upload(&plate)?, app.upload(&plate)?];
        let kernel = kernel();
        for sweep in 0..self.sweeps {
            let (from, to) = (&buffers[sweep % 2], &buffers[(sweep + 1) % 2]);
            let args = [from.addr().0, to.addr().0, side as u64];
            let grid = [side as u32 - 2, side as u32 - 2, 1];
            app.launch(&KernelLaunch::new(&kernel, &args).grid(grid))?;
        }
        let plate = buffers[self.sweeps % 2].read::<f32>()?;

        // Exact: both sides add up the neighbours in the same order.
        let mut mismatches = Mismatches::default();
        mismatches.compare("plate", &plate, &reference(side, self.sweeps).concat());
        let below = plate[side + side / 2];
        Ok(Finding {
            summary: format!(
                "{side} x {side} cells, {} sweeps, {below:.2} below the edge at {HOT}",
                self.sweeps
            ),
            mismatches,
        })
    }
}

/// Operations: additions and multiplications. A workgroup loads its rows and one more on each side.
fn kernel() -> HostKernel {
    HostKernel::new("jacobi", |ctx| {
        let [from, to, side] = ctx.args::<[u64; 3]>()?;
        let side = side as usize;
        for group in groups(side - 2, GROUP) {
            let rows = group.len() + 2;
            let halo: Vec<f32> = ctx.load(element::<f32>(from, group.start * side), rows * side)?;
            for row in 1..=group.len() {
                let [above, here, below] =
                    [row - 1, row, row + 1].map(|row| &halo[row * side..][..side]);
                let next: Vec<f32> = std::iter::zip(&above[1..], &below[1..])
                    .zip(here.windows(3))
                    .map(|((above, below), here)| (above + below + here[0] + here[2]) * 0.25)
                    .collect();
                ctx.add_operations(4 * next.len() as u64);
                ctx.store(element::<f32>(to, (group.start + row) * side + 1), &next)?;
            }
        }
        Ok(())
    })
}

/// The plate by its definition, row by row.
fn reference(side: usize, sweeps: usize) -> Vec<Vec<f32>> {
    let mut old = vec![vec![0.0; side]; side];
    old[0] = vec![HOT; side];
    for _ in 0..sweeps {
        let mut new = old.clone();
        for i in 1..side - 1 {
            for j in 1..side - 1 {
                new[i][j] = (old[i - 1][j] + old[i + 1][j] + old[i][j - 1] + old[i][j + 1]) / 4.0;
            }
        }
        old = new;
    }
    old
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_ends_where_heat_does_not_flow_any_more() {
        let plate = reference(5, 200);
        // By symmetry the four edges contribute equally to the middle.
        assert!((plate[2][2] - HOT / 4.0).abs() < 1e-3, "{plate:?}");
        assert_eq!(plate[0], [HOT; 5]);
        assert!(plate[1..].iter().all(|row| row[0] == 0.0 && row[4] == 0.0));
    }
}
