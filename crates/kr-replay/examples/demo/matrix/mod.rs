//! A square sparse matrix as it was written down, and the form in which the kernel reads it.
//!
//! Invariants of [`Matrix`], which hold for whatever text it was read from
//! - `1 <= n <= MAX_ROWS`; there is at least one entry; every index is below `n`.
//! - Every value is finite, and so is the sum of the magnitudes in each row. Hence `A x` is finite
//!   whenever no element of `x` exceeds 1 in magnitude, which power iterates never do.
//!
//! Entries stay in the order of the text with duplicates apart, so that the reference product over
//! them has nothing in common with the kernel's product over [`Csr`].

mod market;
mod mesh;

pub(crate) use market::parse;
pub(crate) use mesh::generate;

/// Rows at the most; keeps a wild size line from exhausting memory, and indices within `u32`.
pub(crate) const MAX_ROWS: usize = 1 << 24;

/// One value at (row, column), counted from 0.
pub(crate) type Entry = (u32, u32, f64);

/// See the module. Made by [`parse`] only.
#[derive(Debug)]
pub(crate) struct Matrix {
    n: usize,
    entries: Vec<Entry>,
}

impl Matrix {
    /// Rows, and columns as well.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// The entries in the order of the text; those at the same place add up.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Compressed sparse rows, columns ascending, duplicates summed.
    pub(crate) fn to_csr(&self) -> Csr {
        let mut sorted = self.entries.clone();
        sorted.sort_by_key(|&(row, column, _)| (row, column));
        sorted.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        let mut row_offsets = vec![0u32; self.n + 1];
        for &(row, _, _) in &sorted {
            row_offsets[row as usize + 1] += 1;
        }
        for row in 0..self.n {
            row_offsets[row + 1] += row_offsets[row];
        }
        Csr {
            row_offsets,
            columns: sorted.iter().map(|entry| entry.1).collect(),
            values: sorted.iter().map(|entry| entry.2).collect(),
        }
    }
}

/// Compressed sparse rows: row `r` has the entries `row_offsets[r]..row_offsets[r + 1]`.
#[derive(Debug, PartialEq)]
pub(crate) struct Csr {
    pub(crate) row_offsets: Vec<u32>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csr_sorts_sums_and_keeps_empty_rows() {
        let text = "%%MatrixMarket matrix coordinate real general\n3 3 4\n\
                    3 3 1\n1 2 5\n3 1 2\n1 2 -1.5\n";
        let csr = parse(text.as_bytes()).unwrap().to_csr();
        let want = Csr {
            row_offsets: vec![0, 1, 1, 3],
            columns: vec![1, 0, 2],
            values: vec![3.5, 2.0, 1.0],
        };
        assert_eq!(csr, want);
    }
}
