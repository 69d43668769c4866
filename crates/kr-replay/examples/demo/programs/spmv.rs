//! Sparse matrix times vector, and the power method for the eigenvalue of largest magnitude.

use std::error::Error;

use kr_replay::host::{HostKernel, KernelLaunch};

use super::{Finding, Mismatches, Program, element, groups, noise};
use crate::app::App;
use crate::matrix::Matrix;
use crate::table;

/// Rows per workgroup.
const GROUP: usize = 256;

pub(crate) struct Spmv {
    pub(crate) matrix: Matrix,
    /// Where the matrix comes from, for people.
    pub(crate) origin: String,
    /// Products with vectors that do not depend on each other.
    pub(crate) products: usize,
    /// Steps of the power method at the most.
    pub(crate) steps: usize,
}

impl Program for Spmv {
    fn name(&self) -> &'static str {
        "spmv"
    }

    fn run(&self, app: &App<'_>) -> Result<Finding, Box<dyn Error>> {
        let (n, csr) = (self.matrix.n(), self.matrix.to_csr());
        let buffers = [
            app.upload(&csr.row_offsets)?,
            app.upload(&csr.columns)?,
            app.upload(&csr.values)?,
            app.upload(&vec![0.0; n])?,
            app.upload(&vec![0.0; n])?,
        ];
        let [.., x, y] = &buffers;
        let largest = app.upload(&[0.0])?;
        let (product, normalise) = (product_kernel(), normalise_kernel());
        let multiply = || -> Result<Vec<f64>, Box<dyn Error>> {
            let [offsets, columns, values, x, _] = buffers.each_ref().map(|b| b.addr().0);
            let args = [offsets, columns, values, x, y.addr().0, n as u64];
            app.launch(&KernelLaunch::new(&product, &args).grid([n as u32, 1, 1]))?;
            Ok(y.read()?)
        };

        let mut mismatches = Mismatches::default();
        for k in 0..self.products {
            let vector: Vec<f64> = (0..n).map(|i| noise(k * n + i)).collect();
            x.write(&vector)?;
            check_product(&self.matrix, &vector, &multiply()?, &mut mismatches);
        }

        // Each step is checked against its own start, so that rounding does not pile up.
        let mut vector: Vec<f64> = (0..n).map(noise).collect();
        let (mut magnitude, mut steps) = (0.0, 0);
        x.write(&vector)?;
        while steps < self.steps {
            steps += 1;
            let image = multiply()?;
            check_product(&self.matrix, &vector, &image, &mut mismatches);

            let args = [y.addr().0, x.addr().0, largest.addr().0, n as u64];
            app.launch(&KernelLaunch::new(&normalise, &args).grid([n as u32, 1, 1]))?;
            vector = x.read()?;
            let device_largest = largest.read::<f64>()?;
            // Exact: a maximum does not depend on the order, and a quotient is rounded once.
            let (unit, scale) = normalised(&image);
            mismatches.compare("x", &vector, &unit);
            mismatches.compare("largest", &device_largest, &[scale]);
            magnitude = scale;
            if magnitude == 0.0 {
                break;
            }
        }

        let found = match magnitude {
            0.0 => format!("the power method's vector vanishes in step {steps}"),
            _ => format!("power method at {} in step {steps}", digits(magnitude)),
        };
        let (rows, entries) = (
            table::count(n as u64),
            table::count(csr.values.len() as u64),
        );
        Ok(Finding {
            summary: format!("{}, {rows} rows, {entries} entries, {found}", self.origin),
            mismatches,
        })
    }
}

/// `y = A x`. Operations: additions and multiplications. The vector is loaded once, as through a
/// cache that holds it all.
fn product_kernel() -> HostKernel {
    HostKernel::new("spmv", |ctx| {
        let [row_offsets, columns, values, x, y, n] = ctx.args::<[u64; 6]>()?;
        let n = n as usize;
        let x: Vec<f64> = ctx.load(element::<f64>(x, 0), n)?;
        for group in groups(n, GROUP) {
            let ends: Vec<u32> =
                ctx.load(element::<u32>(row_offsets, group.start), group.len() + 1)?;
            let (first, last) = (ends[0] as usize, ends[group.len()] as usize);
            let columns: Vec<u32> = ctx.load(element::<u32>(columns, first), last - first)?;
            let values: Vec<f64> = ctx.load(element::<f64>(values, first), last - first)?;
            let mut sums = vec![0.0; group.len()];
            for (sum, ends) in sums.iter_mut().zip(ends.windows(2)) {
                for i in ends[0] as usize - first..ends[1] as usize - first {
                    *sum += values[i] * x[columns[i] as usize];
                }
            }
            ctx.add_operations(2 * (last - first) as u64);
            ctx.store(element::<f64>(y, group.start), &sums)?;
        }
        Ok(())
    })
}

/// `x = y / max |y|`, and the maximum itself. `y = 0` is copied as it is. Operations: comparisons
/// and divisions.
fn normalise_kernel() -> HostKernel {
    HostKernel::new("normalise", |ctx| {
        let [y, x, largest, n] = ctx.args::<[u64; 4]>()?;
        let mut vector: Vec<f64> = ctx.load(element::<f64>(y, 0), n as usize)?;
        let scale = vector.iter().fold(0.0, |max: f64, v| max.max(v.abs()));
        ctx.add_operations(n);
        if scale != 0.0 {
            vector.iter_mut().for_each(|v| *v /= scale);
            ctx.add_operations(n);
        }
        ctx.store(element::<f64>(x, 0), &vector)?;
        ctx.store(element::<f64>(largest, 0), &[scale])
    })
}

/// Compares `got` with the product over the entries as the text lists them.
///
/// The kernel sums sorted rows with duplicates merged, so the two round differently. Each is off by
/// at most `k` units of rounding of the row's sum of magnitudes, where `k` is the row's number of
/// entries, and by one smallest number per product that underflows: twice that is tolerated.
fn check_product(matrix: &Matrix, x: &[f64], got: &[f64], mismatches: &mut Mismatches) {
    let mut want = vec![0.0; x.len()];
    let mut magnitudes = vec![0.0; x.len()];
    let mut lengths = vec![0.0; x.len()];
    for &(row, column, value) in matrix.entries() {
        let (row, term) = (row as usize, value * x[column as usize]);
        want[row] += term;
        magnitudes[row] += term.abs();
        lengths[row] += 1.0;
    }
    mismatches.compare_by("y", got, &want, |row, got, want| {
        let smallest = f64::from_bits(1);
        let tolerance = 2.0 * lengths[row] * (f64::EPSILON * magnitudes[row] + smallest);
        (got - want).abs() <= tolerance
    });
}

/// The vector scaled to a largest element of 1, and the largest magnitude that it had.
fn normalised(y: &[f64]) -> (Vec<f64>, f64) {
    let mut sorted: Vec<f64> = y.iter().map(|v| v.abs()).collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.last() {
        Some(&scale) if scale > 0.0 => (y.iter().map(|v| v / scale).collect(), scale),
        _ => (y.to_vec(), 0.0),
    }
}

/// Five digits, with an exponent only where it is needed.
fn digits(x: f64) -> String {
    let rounded: f64 = format!("{x:.4e}").parse().unwrap_or(x);
    format!("{rounded:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::parse;

    #[test]
    fn a_product_may_be_off_by_rounding_and_not_by_more() {
        let text = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 3\n1 2 1\n2 1 4\n";
        let matrix = parse(text.as_bytes()).unwrap();
        let wrong = |got: [f64; 2]| {
            let mut mismatches = Mismatches::default();
            check_product(&matrix, &[1.0, -2.0], &got, &mut mismatches);
            mismatches.count
        };
        assert_eq!(wrong([1.0, 4.0]), 0);
        assert_eq!(wrong([1.0 + 5.0 * f64::EPSILON, 4.0]), 0);
        assert_eq!(wrong([1.0 + 30.0 * f64::EPSILON, 4.0]), 1);
        assert_eq!(wrong([f64::NAN, 0.0]), 2);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(digits(16.529_499), "16.529");
        assert_eq!(digits(1.0 / 3e300), "3.3333e-301");
    }
}
