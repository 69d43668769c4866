//! Reading the coordinate form of the Matrix Market exchange format (math.nist.gov/MatrixMarket).
//!
//! Read: `real`, `double`, `integer` and `pattern` values; `general`, `symmetric` and
//! `skew-symmetric` matrices, of which the file holds the lower triangle. Comments and blank lines
//! may stand anywhere after the header. Everything else is refused with the line and what was
//! expected there.

use std::fmt;

use super::{Entry, MAX_ROWS, Matrix};

/// Half of what `f64` can hold: the rest is left to the rounding of other orders of summation.
const MAX_ROW_SUM: f64 = f64::MAX / 2.0;

/// Why a text is not a matrix that the demo can use.
#[derive(Debug, PartialEq)]
pub(crate) struct MatrixError {
    /// Counted from 1; `None` if the trouble is not in one line.
    line: Option<usize>,
    message: String,
}

impl fmt::Display for MatrixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for MatrixError {}

fn whole<T>(message: impl Into<String>) -> Result<T, MatrixError> {
    let message = message.into();
    Err(MatrixError {
        line: None,
        message,
    })
}

/// One line with its number, for messages.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn fail<T>(self, message: impl Into<String>) -> Result<T, MatrixError> {
        Err(MatrixError {
            line: Some(self.number),
            message: message.into(),
        })
    }

    /// The line's words if there are exactly `N`, which `expected` describes.
    fn words<const N: usize>(self, expected: &str) -> Result<[&'a str; N], MatrixError> {
        let mut words = self.text.split_whitespace();
        let mut found = [""; N];
        for word in &mut found {
            match words.next() {
                Some(next) => *word = next,
                None => return self.fail(format!("expected {expected}, found {self}")),
            }
        }
        match words.next() {
            None => Ok(found),
            Some(_) => self.fail(format!("expected {expected}, found {self}")),
        }
    }

    /// `word` as an index from 1 to `n`, counted from 0.
    fn index(self, what: &str, word: &str, n: usize) -> Result<u32, MatrixError> {
        match word.parse::<usize>() {
            // Fits: n is at most MAX_ROWS.
            Ok(index) if (1..=n).contains(&index) => Ok(index as u32 - 1),
            _ => self.fail(format!(
                "expected a {what} from 1 to {n}, found {}",
                quote(word)
            )),
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote(self.text.trim()))
    }
}

/// `text` in quotes for a message, cut short and without control characters: it may be anything.
fn quote(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{}`", short.escape_debug())
}

#[derive(Clone, Copy)]
enum Field {
    Real,
    Integer,
    Pattern,
}

#[derive(Clone, Copy, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// Reads a matrix. Bytes that are not UTF-8 are tolerated, since comments in real files have them.
pub(crate) fn parse(bytes: &[u8]) -> Result<Matrix, MatrixError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text
        .lines()
        .zip(1..)
        .map(|(text, number)| Line { number, text });
    let Some(first) = lines.next() else {
        return whole("is empty, expected a Matrix Market header");
    };
    let (field, symmetry) = header(first)?;

    let mut lines = lines.filter(|line| {
        let text = line.text.trim_start();
        !text.is_empty() && !text.starts_with('%')
    });
    let Some(sizes) = lines.next() else {
        return whole("ends before the line with the numbers of rows, columns and entries");
    };
    let (n, announced) = size_line(sizes)?;

    // An entry takes two bytes of text at least, so no announcement reserves more than that.
    let mut entries = Vec::with_capacity(announced.min(bytes.len() / 2));
    let mut sums = vec![0.0; n];
    for found in 0..announced {
        let Some(line) = lines.next() else {
            return whole(format!(
                "ends after {found} of {announced} entries that line {} announces",
                sizes.number
            ));
        };
        let entry @ (row, column, value) = entry(line, field, symmetry, n)?;
        let mirrored = match symmetry {
            Symmetry::General => None,
            Symmetry::Symmetric => (row != column).then_some((column, row, value)),
            Symmetry::Skew => Some((column, row, -value)),
        };
        for entry in [Some(entry), mirrored].into_iter().flatten() {
            let sum: &mut f64 = &mut sums[entry.0 as usize];
            *sum += value.abs();
            if *sum > MAX_ROW_SUM {
                return line.fail(format!(
                    "expected magnitudes that add up to {MAX_ROW_SUM:e} per row at the most, \
                     those of row {} exceed it",
                    entry.0 + 1
                ));
            }
            entries.push(entry);
        }
    }
    match lines.next() {
        None => Ok(Matrix { n, entries }),
        Some(line) => line.fail(format!(
            "expected the end after {announced} entries, found {line}"
        )),
    }
}

fn header(line: Line<'_>) -> Result<(Field, Symmetry), MatrixError> {
    const EXPECTED: &str = "a header such as `%%MatrixMarket matrix coordinate real general`";
    let lower = line.text.to_ascii_lowercase();
    if !lower.starts_with("%%matrixmarket") {
        return line.fail(format!("expected {EXPECTED}, found {line}"));
    }
    let lower = Line {
        text: &lower,
        ..line
    };
    let [_, object, format, field, symmetry] = lower.words(EXPECTED)?;
    if object != "matrix" {
        return line.fail(format!("expected a `matrix`, found {}", quote(object)));
    }
    match format {
        "coordinate" => {}
        "array" => {
            return line.fail(
                "expected a sparse matrix in `coordinate` form, found the `array` form, which \
                 lists every element",
            );
        }
        other => {
            return line.fail(format!(
                "expected `coordinate` form, found {}",
                quote(other)
            ));
        }
    }
    let field = match field {
        "real" | "double" => Field::Real,
        "integer" => Field::Integer,
        "pattern" => Field::Pattern,
        other => {
            return line.fail(format!(
                "expected `real`, `integer` or `pattern` values, found {}",
                quote(other)
            ));
        }
    };
    let symmetry = match (symmetry, field) {
        ("general", _) => Symmetry::General,
        ("symmetric", _) => Symmetry::Symmetric,
        ("skew-symmetric", Field::Pattern) => {
            return line.fail("a `pattern` has no signs, so it cannot be `skew-symmetric`");
        }
        ("skew-symmetric", _) => Symmetry::Skew,
        (other, _) => {
            return line.fail(format!(
                "expected `general`, `symmetric` or `skew-symmetric`, found {}",
                quote(other)
            ));
        }
    };
    Ok((field, symmetry))
}

/// Rows (and columns) and entries.
fn size_line(line: Line<'_>) -> Result<(usize, usize), MatrixError> {
    const EXPECTED: &str = "the numbers of rows, columns and entries";
    let mut sizes = [0usize; 3];
    for (size, word) in sizes.iter_mut().zip(line.words::<3>(EXPECTED)?) {
        match word.parse() {
            Ok(value) => *size = value,
            Err(_) => return line.fail(format!("expected {EXPECTED}, found {line}")),
        }
    }
    match sizes {
        [0, 0, _] | [_, _, 0] => line.fail("the matrix is empty, expected rows and entries"),
        [rows, columns, _] if rows != columns => line.fail(format!(
            "expected a square matrix, found {rows} rows and {columns} columns"
        )),
        [rows, _, _] if rows > MAX_ROWS => line.fail(format!(
            "expected {MAX_ROWS} rows at the most, found {rows}"
        )),
        [rows, _, entries] => Ok((rows, entries)),
    }
}

fn entry(line: Line<'_>, field: Field, symmetry: Symmetry, n: usize) -> Result<Entry, MatrixError> {
    let (row, column, value) = match field {
        Field::Pattern => {
            let [row, column] = line.words("a row and a column")?;
            (row, column, 1.0)
        }
        Field::Real | Field::Integer => {
            let [row, column, word] = line.words("a row, a column and a value")?;
            let value = match field {
                Field::Integer => word.parse::<i64>().ok().map(|value| value as f64),
                _ => word.parse::<f64>().ok(),
            };
            let kind = match field {
                Field::Integer => "an integer",
                _ => "a finite number",
            };
            match value {
                Some(value) if value.is_finite() => (row, column, value),
                _ => return line.fail(format!("expected {kind}, found {}", quote(word))),
            }
        }
    };
    let row = line.index("row", row, n)?;
    let column = line.index("column", column, n)?;
    match symmetry {
        Symmetry::Symmetric if row < column => line.fail(format!(
            "expected an entry on or below the diagonal of a symmetric matrix, found {line}"
        )),
        Symmetry::Skew if row <= column => line.fail(format!(
            "expected an entry below the diagonal of a skew-symmetric matrix, found {line}"
        )),
        _ => Ok((row, column, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";

    fn entries(text: &str) -> Vec<Entry> {
        parse(text.as_bytes()).unwrap().entries
    }

    fn refusal(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn comments_blank_lines_case_and_line_ends_do_not_matter() {
        let text = "%%matrixmarket MATRIX Coordinate Real GENERAL\r\n% a comment\r\n\r\n\
                    2 2 2\r\n  % another\n\n 1\t2  -1.5e1\n2 1 3\n\n% the end\n";
        assert_eq!(entries(text), [(0, 1, -15.0), (1, 0, 3.0)]);
        let latin = b"%%MatrixMarket matrix coordinate pattern general\n% caf\xe9\n1 1 1\n1 1";
        assert_eq!(parse(latin).unwrap().entries, [(0, 0, 1.0)]);
    }

    #[test]
    fn triangles_are_mirrored_once_and_the_diagonal_is_not() {
        let body = "2 2 2\n1 1 4\n2 1 3\n";
        let symmetric = entries(&format!(
            "%%MatrixMarket matrix coordinate integer symmetric\n{body}"
        ));
        assert_eq!(symmetric, [(0, 0, 4.0), (1, 0, 3.0), (0, 1, 3.0)]);
        let skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n";
        assert_eq!(entries(skew), [(1, 0, 3.0), (0, 1, -3.0)]);
        let pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n";
        assert_eq!(entries(pattern), [(1, 0, 1.0), (0, 1, 1.0)]);
    }

    #[test]
    fn headers_are_refused_by_the_word_that_is_wrong() {
        for (header, part) in [
            ("", "is empty, expected a Matrix Market header"),
            ("1 1 1", "line 1: expected a header such as"),
            (
                "%%MatrixMarket matrix coordinate real",
                "line 1: expected a header such as",
            ),
            (
                "%%MatrixMarket vector coordinate real general",
                "found `vector`",
            ),
            (
                "%%MatrixMarket matrix array real general",
                "found the `array` form",
            ),
            ("%%MatrixMarket matrix dense real general", "found `dense`"),
            (
                "%%MatrixMarket matrix coordinate complex general",
                "found `complex`",
            ),
            (
                "%%MatrixMarket matrix coordinate real hermitian",
                "found `hermitian`",
            ),
            (
                "%%MatrixMarket matrix coordinate pattern skew-symmetric",
                "has no signs",
            ),
            (
                "%%MatrixMarket matrix coordinate real general",
                "ends before the line with",
            ),
        ] {
            let message = refusal(header);
            assert!(message.contains(part), "{header}: {message}");
        }
    }

    #[test]
    fn lines_are_refused_by_number_and_expectation() {
        for (body, part) in [
            (
                "2 2",
                "line 2: expected the numbers of rows, columns and entries, found `2 2`",
            ),
            (
                "2 2 -1",
                "line 2: expected the numbers of rows, columns and entries",
            ),
            (
                "2 3 1\n1 1 1",
                "line 2: expected a square matrix, found 2 rows and 3 columns",
            ),
            ("0 0 0", "line 2: the matrix is empty"),
            ("2 2 0", "line 2: the matrix is empty"),
            (
                "99999999999 99999999999 1\n1 1 1",
                "line 2: expected 16777216 rows at the most",
            ),
            (
                "2 2 99999999999999999",
                "ends after 0 of 99999999999999999 entries",
            ),
            (
                "2 2 2\n1 1 1\n",
                "ends after 1 of 2 entries that line 2 announces",
            ),
            (
                "2 2 1\n1 1 1\n\n2 2 1",
                "line 5: expected the end after 1 entries",
            ),
            (
                "2 2 1\n1 1",
                "line 3: expected a row, a column and a value, found `1 1`",
            ),
            (
                "2 2 1\n1 1 1 1",
                "line 3: expected a row, a column and a value",
            ),
            (
                "2 2 1\n0 1 1",
                "line 3: expected a row from 1 to 2, found `0`",
            ),
            (
                "2 2 1\n1 3 1",
                "line 3: expected a column from 1 to 2, found `3`",
            ),
            (
                "2 2 1\n1 -1 1",
                "line 3: expected a column from 1 to 2, found `-1`",
            ),
            (
                "2 2 1\n1 1 one",
                "line 3: expected a finite number, found `one`",
            ),
            (
                "2 2 1\n1 1 nan",
                "line 3: expected a finite number, found `nan`",
            ),
            (
                "2 2 1\n1 1 -inf",
                "line 3: expected a finite number, found `-inf`",
            ),
            (
                "2 2 1\n1 1 1e999",
                "line 3: expected a finite number, found `1e999`",
            ),
            (
                "1 1 2\n1 1 8e307\n1 1 -8e307",
                "line 4: expected magnitudes that add up to",
            ),
        ] {
            let message = refusal(&format!("{GENERAL}{body}"));
            assert!(message.contains(part), "{body}: {message}");
        }
    }

    #[test]
    fn what_contradicts_the_header_is_refused() {
        for (kind, body, part) in [
            (
                "integer general",
                "1 1 1\n1 1 1.5",
                "expected an integer, found `1.5`",
            ),
            (
                "pattern general",
                "1 1 1\n1 1 1",
                "expected a row and a column, found `1 1 1`",
            ),
            ("real symmetric", "2 2 1\n1 2 1", "on or below the diagonal"),
            (
                "real skew-symmetric",
                "2 2 1\n1 1 1",
                "below the diagonal of a skew",
            ),
        ] {
            let message = refusal(&format!("%%MatrixMarket matrix coordinate {kind}\n{body}"));
            assert!(
                message.starts_with("line 3: ") && message.contains(part),
                "{message}"
            );
        }
    }

    #[test]
    fn messages_show_hostile_text_short_and_without_control_characters() {
        let message = refusal(&format!("{GENERAL}1 1 1\n1 1 \x1b[2J{}", "x".repeat(1000)));
        assert!(
            !message.contains('\x1b') && message.len() < 120,
            "{message}"
        );
    }
}
