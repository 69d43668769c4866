//! What fuzz targets call: each function decodes its input and compares the code with a model that
//! is simple enough to be read as a definition. A difference is a panic.

use kr_types::{AgentId, DeviceAddr, Extent, Generation, MemoryClass, Region, TILE_BYTES, Tier};

use crate::{Digester, Split, Stream};

/// Numbers from the input; zeros once it is used up.
struct Numbers<'a>(std::slice::Iter<'a, u8>);

impl Numbers<'_> {
    fn next(&mut self) -> u64 {
        let mut byte = || u64::from(self.0.next().copied().unwrap_or(0));
        byte() | byte() << 8
    }

    fn is_empty(&self) -> bool {
        self.0.len() == 0
    }
}

/// Tile arithmetic: the stream, its runs and pieces, against a list of tiles made by counting bytes.
pub fn tiles(data: &[u8]) {
    struct Tile {
        extent: u32,
        index: u32,
        live: u64,
        saved: u64,
        len: u64,
    }

    let mut numbers = Numbers(data.iter());
    let (waves, from, to) = (numbers.next() % 64, numbers.next(), numbers.next());
    let (mut extents, mut model) = (Vec::new(), Vec::new());
    let (mut base, mut saved) = (1 << 20, 1 << 40);
    while !numbers.is_empty() {
        let len = 1 + numbers.next() * (1 + numbers.next() % 3);
        let region = Region::new(
            AgentId(0),
            DeviceAddr(base),
            len,
            Generation::FIRST,
            MemoryClass::Vram,
        )
        .expect("neither empty nor at the end of the address space");
        let mut start = 0;
        while start < len {
            let end = len.min(start + (1 + numbers.next() % 3) * TILE_BYTES);
            let tier = Tier::ALL[(numbers.next() % 2) as usize];
            let extent = Extent::new(region, start, end - start, DeviceAddr(saved), tier);
            let number = extents.len() as u32;
            extents.push(extent.expect("inside its region"));
            let mut at = start;
            while at < end {
                let tile = TILE_BYTES.min(end - at);
                model.push(Tile {
                    extent: number,
                    index: ((at - start) / TILE_BYTES) as u32,
                    live: base + at,
                    saved: saved + at - start,
                    len: tile,
                });
                at += tile;
            }
            saved += end - start + 3;
            start = end;
        }
        base += len + numbers.next();
    }

    let stream = Stream::new(&extents).expect("all cuts are at tile borders");
    assert_eq!(stream.tiles(), model.len() as u64);
    for (i, tile) in model.iter().enumerate() {
        let entry = stream.tile(i as u64).expect("inside the stream");
        assert_eq!((entry.extent, entry.index), (tile.extent, tile.index));
    }
    assert_eq!(stream.tile(stream.tiles()), None);

    let range = from.min(to) % (stream.tiles() + 2)..from.max(to);
    let mut next = range.start;
    for run in stream.runs(range.clone()) {
        assert_eq!(run.tiles().start, next);
        let tiles = &model[next as usize..run.tiles().end as usize];
        assert_eq!(
            (run.live().0, run.saved().0),
            (tiles[0].live, tiles[0].saved)
        );
        assert_eq!(run.len_bytes(), tiles.iter().map(|t| t.len).sum::<u64>());
        let entry = &stream.entries()[tiles[0].extent as usize];
        assert!(tiles.iter().all(|t| t.extent == tiles[0].extent));
        assert_eq!(run.entry(), entry);
        next = run.tiles().end;
    }
    assert_eq!(next, range.end.min(stream.tiles()).max(range.start));

    let split = Split::new(stream.tiles(), waves);
    let mut covered = vec![0; model.len()];
    for slot in 0..split.slots() {
        let (tile, bytes) = split.slot(slot, |tile| model[tile as usize].len);
        if bytes.is_empty() {
            continue;
        }
        assert_eq!(bytes.start, covered[tile as usize], "pieces come in order");
        covered[tile as usize] = bytes.end;
    }
    assert!(covered.iter().zip(&model).all(|(to, tile)| *to == tile.len));
}

/// Digests of pieces against the digest of the whole tile, computed word by word from one-word
/// pieces.
pub fn digest(data: &[u8]) {
    let mut numbers = Numbers(data.iter());
    let digester = Digester::new(numbers.next());
    let cut = numbers.next();
    let tile = &data[..data.len().min(TILE_BYTES as usize)];
    let (mut sum, mut weighted) = (0u64, 0u64);
    for (i, word) in tile.chunks(8).enumerate() {
        let term = digester.piece(8 * i, word);
        sum = sum.wrapping_add(term);
        weighted = weighted.wrapping_add(term.wrapping_mul(2 * i as u64 + 1));
    }
    let whole = digester.tile128(tile);
    assert_eq!((whole.sum, whole.weighted), (sum, weighted));
    assert_eq!(digester.tile(tile), sum);

    let cut = (cut as usize % (tile.len() / 8 + 1)) * 8;
    let mut pieces = digester.piece128(0, &tile[..cut]);
    pieces += digester.piece128(cut, &tile[cut..]);
    assert_eq!(pieces, whole);
}
