//! `y = a x + y` in place, several times: every launch reads what the one before has written.

use std::error::Error;

use kr_replay::host::{HostKernel, KernelLaunch};

use super::{Finding, Mismatches, Program, element, groups, noise};
use crate::app::App;
use crate::table;

const A: f32 = 2.5;
/// Elements per workgroup.
const GROUP: usize = 16 * 1024;

pub(crate) struct Saxpy {
    pub(crate) elements: usize,
    pub(crate) launches: usize,
}

impl Program for Saxpy {
    fn name(&self) -> &'static str {
        "saxpy"
    }

    fn run(&self, app: &App<'_>) -> Result<Finding, Box<dyn Error>> {
        let x: Vec<f32> = (0..self.elements).map(|i| noise(i) as f32).collect();
        let y: Vec<f32> = (0..self.elements)
            .map(|i| noise(self.elements + i) as f32)
            .collect();
        let (device_x, device_y) = (app.upload(&x)?, app.upload(&y)?);
        let (x_addr, y_addr) = (device_x.addr().0, device_y.addr().0);
        let kernel = kernel();
        for _ in 0..self.launches {
            let args = [x_addr, y_addr, self.elements as u64, A.to_bits().into()];
            app.launch(&KernelLaunch::new(&kernel, &args).grid([self.elements as u32, 1, 1]))?;
        }

        // Exact: both sides round after the product and after the sum, in the same order.
        let want: Vec<f32> = std::iter::zip(x, y)
            .map(|(x, y)| (0..self.launches).fold(y, |y, _| A * x + y))
            .collect();
        let mut mismatches = Mismatches::default();
        mismatches.compare("y", &device_y.read::<f32>()?, &want);
        let elements = table::count(self.elements as u64);
        Ok(Finding {
            summary: format!(
                "y = {A} x + y, {elements} elements, {} times",
                self.launches
            ),
            mismatches,
        })
    }
}

/// Operations: additions and multiplications.
fn kernel() -> HostKernel {
    HostKernel::new("saxpy", |ctx| {
        let [x, y, n, a] = ctx.args::<[u64; 4]>()?;
        let a = f32::from_bits(a as u32);
        for group in groups(n as usize, GROUP) {
            let xs: Vec<f32> = ctx.load(element::<f32>(x, group.start), group.len())?;
            let mut ys: Vec<f32> = ctx.load(element::<f32>(y, group.start), group.len())?;
            for (y, x) in ys.iter_mut().zip(&xs) {
                *y += a * x;
            }
            ctx.add_operations(2 * group.len() as u64);
            ctx.store(element::<f32>(y, group.start), &ys)?;
        }
        Ok(())
    })
}
