//! Files that are damaged or missing.

use super::*;

#[test]
fn a_file_that_is_gone_is_passed_over() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    bench.fill_files(0..3000);
    let segments = bench.log.shared.segments.load_full();
    let first = |number: usize| segments[number].first.0;
    // As a reader finds them that has looked at the list just before retention.
    fs::remove_file(&segments[0].path).unwrap();
    assert_eq!(all(&bench.reader), (first(1)..3000).collect::<Vec<_>>());
    fs::remove_file(&segments[2].path).unwrap();
    assert_eq!(all(&bench.reader), (first(1)..first(2)).chain(first(3)..3000).collect::<Vec<_>>());
    assert_eq!(sequences(&mut bench.reader.cursor(segments[2].first)), (first(3)..3000).collect::<Vec<_>>());
}
