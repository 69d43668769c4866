//! Tables and quantities in plain text.

use std::io::{self, Write};
use std::time::Duration;

/// Prints `rows` under `heads`: the first column to the left, numbers to the right.
pub(crate) fn print<const N: usize>(
    out: &mut dyn Write,
    heads: [&str; N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let heads = heads.map(String::from);
    let mut widths = [0; N];
    for row in std::iter::once(&heads).chain(rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in std::iter::once(&heads).chain(rows) {
        write!(out, "{:<1$}", row[0], widths[0])?;
        for (cell, width) in row.iter().zip(widths).skip(1) {
            write!(out, "  {cell:>width$}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A count with its thousands set apart.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the largest binary unit that leaves a whole number before the point.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let unit = n.max(1).ilog2() as usize / 10;
    match unit.min(UNITS.len()).checked_sub(1) {
        None => format!("{n} B"),
        Some(unit) => format!(
            "{:.2} {}",
            n as f64 / 1024f64.powi(unit as i32 + 1),
            UNITS[unit]
        ),
    }
}

/// A duration in milliseconds, all in one unit so that a column can be compared by eye.
pub(crate) fn time(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["π".into(), "1".into()], ["saxpy".into(), "12,345".into()]];
        let mut out = Vec::new();
        print(&mut out, ["kernel", "n"], &rows).unwrap();
        let want = "kernel       n\nπ            1\nsaxpy   12,345\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn quantities() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
        assert_eq!(bytes(u64::MAX), "16777216.00 TiB");
        assert_eq!(time(Duration::from_micros(1_234)), "1.234 ms");
    }
}
