//! A finite-element matrix as an assembler writes it: one contribution per element, in text.

use std::fmt::Write as _;

/// The stiffness matrix of the Laplacian on the unit square, in Matrix Market form: `side * side`
/// nodes of a graded mesh, two linear triangles per cell.
///
/// Contributions of neighbouring elements to the same place are left for the reader to add up, and
/// only the lower triangle is written, so reading it back takes summing and mirroring.
pub(crate) fn generate(side: usize) -> String {
    let position = |i: usize| grade(i as f64 / (side - 1) as f64);
    let node = |column: usize, row: usize| Node {
        number: row * side + column + 1,
        at: [position(column), position(row)],
    };
    let mut entries = String::new();
    let mut count = 0;
    for row in 1..side {
        for column in 1..side {
            let [sw, se] = [node(column - 1, row - 1), node(column, row - 1)];
            let [nw, ne] = [node(column - 1, row), node(column, row)];
            for triangle in [[&sw, &se, &ne], [&sw, &ne, &nw]] {
                let stiffness = stiffness(triangle.map(|node| node.at));
                for (a, stiffness) in triangle.iter().zip(stiffness) {
                    for (b, value) in triangle.iter().zip(stiffness) {
                        if a.number >= b.number {
                            // Writing to a string does not fail.
                            let _ = writeln!(entries, "{} {} {value:e}", a.number, b.number);
                            count += 1;
                        }
                    }
                }
            }
        }
    }
    let n = side * side;
    format!(
        "%%MatrixMarket matrix coordinate real symmetric\n\
         % Laplacian, linear triangles, {side} x {side} nodes of a graded mesh; not assembled\n\
         {n} {n} {count}\n{entries}"
    )
}

struct Node {
    number: usize,
    at: [f64; 2],
}

/// Maps [0, 1] onto itself with nodes denser at both ends, where solutions have boundary layers.
fn grade(t: f64) -> f64 {
    t - (std::f64::consts::TAU * t).sin() / 10.0
}

/// Element matrix of a linear triangle: `area * grad(i) . grad(j)`, where the gradient of corner
/// `i`'s shape function is the opposite edge, turned by a right angle, over twice the area.
fn stiffness(corners: [[f64; 2]; 3]) -> [[f64; 3]; 3] {
    let edge = |i: usize| {
        let ([ax, ay], [bx, by]) = (corners[(i + 1) % 3], corners[(i + 2) % 3]);
        [bx - ax, by - ay]
    };
    let edges = [edge(0), edge(1), edge(2)];
    let twice_area = edges[0][0] * edges[1][1] - edges[0][1] * edges[1][0];
    edges.map(|a| edges.map(|b| (a[0] * b[0] + a[1] * b[1]) / (2.0 * twice_area)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::parse;

    #[test]
    fn the_unit_triangle_has_the_matrix_of_the_textbook() {
        let right_angle_first = stiffness([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]);
        let want = [[1.0, -0.5, -0.5], [-0.5, 0.5, 0.0], [-0.5, 0.0, 0.5]];
        assert_eq!(right_angle_first, want);
    }

    #[test]
    fn the_matrix_is_symmetric_and_constants_are_in_its_kernel() {
        let matrix = parse(generate(7).as_bytes()).unwrap();
        assert_eq!(matrix.n(), 49);
        let mut dense = vec![[0.0f64; 49]; 49];
        for &(row, column, value) in matrix.entries() {
            dense[row as usize][column as usize] += value;
        }
        for (i, row) in dense.iter().enumerate() {
            let sum: f64 = row.iter().sum();
            assert!(sum.abs() < 1e-12, "row {i} sums to {sum}");
            assert!(row[i] > 0.0);
            let column = dense.iter().map(|row| row[i]);
            assert!(column.eq(row.iter().copied()), "row {i}");
        }
        assert!(dense[0][48] == 0.0, "far nodes do not interact");
    }
}
