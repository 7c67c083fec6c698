//! A disk that takes nothing, and a keeper that is held up.

use std::os::fd::OwnedFd;

use super::*;

/// A file that cannot be written: it stands for a full disk.
fn unwritable(path: &Path) -> Arc<File> {
    Arc::new(File::open(path).unwrap())
}

impl Bench {
    /// The file that was made ahead, waited for.
    fn file_ahead(&self) -> Arc<File> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if let NextFile::Ahead { file, .. } = &*self.log.shared.next_file.lock().unwrap() {
                return file.clone();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("no file is made ahead");
    }

    /// Puts another file in the place of the one that was made ahead.
    fn replace_file_ahead(&self, with: Arc<File>) {
        match &mut *self.log.shared.next_file.lock().unwrap() {
            NextFile::Ahead { file, .. } => *file = with,
            other => panic!("{other:?}"),
        }
    }

    /// Begins the file that was made ahead, and has the keeper take a pipe for it, which cannot be synced.
    fn begin_file_without_sync(&mut self) {
        self.file_ahead();
        let (_, pipe) = io::pipe().unwrap();
        let pipe = Arc::new(File::from(OwnedFd::from(pipe)));
        let (first, former_bytes) = (self.log.next_position(), self.log.file_bytes);
        let mut next_file = self.log.shared.next_file.lock().unwrap();
        let NextFile::Ahead { number, file } = std::mem::take(&mut *next_file) else { panic!("it was ahead") };
        file.write_all_at(&segment::header(first, now_ns()), 0).unwrap();
        *next_file = NextFile::Begun(Begun { number, file: pipe, first, prior_ns: now_ns(), former_bytes });
        drop(next_file);
        (self.log.file, self.log.number, self.log.file_bytes) = (file, number, segment::HEADER_BYTES);
        self.log.note_written();
    }
}

#[test]
fn a_disk_that_takes_nothing_suspends_the_log_until_it_does() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(1..4);
    // A file that cannot be written stands for a full disk.
    let path = bench.log.shared.segments.load()[0].path.clone();
    let writable = std::mem::replace(&mut bench.log.file, unwritable(&path));
    let begun = Instant::now();
    bench.append(4, "lost");
    bench.log.write(begun);
    assert!(bench.log.is_suspended() && bench.reader.state().suspended.is_some());
    bench.log.file = writable;
    bench.append(5, "lost too, for it is not tried again at once");
    bench.log.write(begun);
    let mut cursor = bench.reader.cursor(Position(0));
    assert_eq!(sequences(&mut cursor), [1, 2, 3]);
    assert_eq!(cursor.position(), Position(5), "what was skipped is not waited for");
    bench.append(6, "kept");
    bench.log.write(begun + RETRY_PERIOD);
    assert!(!bench.log.is_suspended());
    let state = bench.reader.state();
    assert_eq!((state.suspended, state.skipped), (None, 2));
    assert_eq!(sequences(&mut cursor), [6]);
    assert_eq!(all(&bench.restart().reader), [1, 2, 3, 6]);
}

#[test]
fn a_keeper_that_is_held_up_still_learns_of_every_file() {
    let directory = tempfile::tempdir().unwrap();
    let (let_go, gate) = channel::<()>();
    let (told, hangs) = channel();
    // The first answer waits until it is let go; then the gate's other end is gone.
    let on_sync = Box::new(move |_, _| {
        let _ = told.send(());
        let _ = gate.recv();
    });
    let (log, reader) =
        EventLog::open(directory.path(), EventLogLimits { bytes_max: 1 << 20, ..LIMITS }, Position(0), now_ns(), on_sync).unwrap();
    let mut bench = Bench { directory, synced: channel().1, log, reader };
    bench.file_ahead();
    bench.log.sync();
    hangs.recv_timeout(Duration::from_secs(10)).unwrap();
    (0..1000).for_each(|_| bench.log.sync());
    bench.fill(0..1000);
    drop(let_go);
    let begun = Instant::now();
    for sequence in 1000.. {
        if bench.reader.state().segments > 2 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", bench.reader.state());
        bench.fill(sequence..sequence + 1);
        // Less than retention would begin to take.
        std::thread::sleep(Duration::from_millis(5));
    }
    let read = all(&bench.reader);
    assert!(read.iter().copied().eq(0..bench.log.next_position().0), "{} events", read.len());
}

#[test]
fn a_next_file_that_takes_no_header_leaves_the_log_in_the_present_one() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    let file_ahead = bench.file_ahead();
    bench.replace_file_ahead(unwritable(&bench.log.shared.segments.load()[0].path));
    bench.fill(0..1000);
    bench.sync().1.unwrap();
    assert_eq!((all(&bench.reader), bench.reader.state().segments), ((0..1000).collect(), 1));
    bench.replace_file_ahead(file_ahead);
    bench.fill(1000..1001);
    bench.sync().1.unwrap();
    assert_eq!((all(&bench.reader), bench.reader.state().segments), ((0..1001).collect(), 2));
    assert_eq!(all(&bench.restart().reader), (0..1001).collect::<Vec<_>>());
}

#[test]
fn a_reader_takes_nothing_that_may_be_taken_back() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(1..3);
    // A write under way has left a record, and a part of the next.
    let path = bench.log.shared.segments.load()[0].path.clone();
    let mut torn = Vec::new();
    for sequence in [3, 4] {
        Record { position: Position(sequence - 1), time_ns: 1, id: id(sequence), topic: "T", event: "taken back", origin: None }
            .push_to(&mut torn);
    }
    let written = bench.log.file_bytes;
    File::options().write(true).open(&path).unwrap().write_all_at(&torn[..torn.len() - 9], written).unwrap();
    let mut cursor = bench.reader.cursor(Position(0));
    assert_eq!(sequences(&mut cursor), [1, 2]);
    assert_eq!((cursor.position(), bench.reader.end()), (Position(2), Position(2)));
    // It fails, and is taken back before the next one.
    let writable = std::mem::replace(&mut bench.log.file, unwritable(&path));
    let begun = Instant::now();
    bench.append(5, "skipped");
    bench.log.write(begun);
    assert_eq!((sequences(&mut cursor), cursor.position()), (vec![], Position(3)));
    bench.log.file = writable;
    bench.append(6, "short");
    bench.log.write(begun + RETRY_PERIOD);
    assert_eq!(fs::metadata(&path).unwrap().len(), bench.log.file_bytes);
    assert_eq!(sequences(&mut cursor), [6]);
    assert_eq!(all(&bench.restart().reader), [1, 2, 6]);
}

#[test]
fn a_write_that_cannot_be_taken_back_keeps_the_log_suspended() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(1..3);
    let path = bench.log.shared.segments.load()[0].path.clone();
    // It can be written, and not be cut.
    let device = Arc::new(File::options().read(true).write(true).open("/dev/null").unwrap());
    let writable = std::mem::replace(&mut bench.log.file, unwritable(&path));
    let begun = Instant::now();
    bench.append(3, "lost");
    bench.log.write(begun);
    bench.log.file = device;
    bench.append(4, "lost");
    bench.log.write(begun + RETRY_PERIOD);
    assert!(bench.log.is_suspended());
    bench.log.file = writable;
    bench.append(5, "kept");
    bench.log.write(begun + 2 * RETRY_PERIOD);
    assert!(!bench.log.is_suspended());
    assert_eq!(all(&bench.reader), [1, 2, 5]);
}

#[test]
fn a_suspended_log_is_tried_again_although_nothing_is_appended() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(1..3);
    let path = bench.log.shared.segments.load()[0].path.clone();
    let whole = fs::metadata(&path).unwrap().len();
    let writable = std::mem::replace(&mut bench.log.file, unwritable(&path));
    let begun = Instant::now();
    bench.append(3, "lost");
    bench.log.write(begun);
    bench.log.write(begun + RETRY_PERIOD);
    assert!(bench.log.is_suspended(), "the disk takes nothing yet");
    bench.log.file = writable;
    bench.log.write(begun + RETRY_PERIOD);
    assert!(bench.log.is_suspended(), "it is not tried again at once");
    bench.log.write(begun + 2 * RETRY_PERIOD);
    assert!(!bench.log.is_suspended());
    assert_eq!(bench.reader.state().skipped, 1);
    assert_eq!(fs::metadata(&path).unwrap().len(), whole, "a trial leaves nothing");
}

#[test]
fn after_a_failed_sync_nothing_of_its_file_is_promised() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(1..3);
    assert_eq!(bench.sync(), (Position(2), Ok(())));
    bench.begin_file_without_sync();
    bench.fill(3..5);
    for attempt in ["first", "second"] {
        let (end, told) = bench.sync();
        assert!(end == Position(4) && told.is_err(), "the {attempt} answer: {told:?}");
    }
    assert_eq!(bench.reader.state().synced, Position(2));
    let begun = Instant::now();
    bench.append(5, "skipped");
    bench.log.write(begun);
    assert!(bench.log.is_suspended());
    // The log goes on in another file, and only what is in that one is promised.
    bench.file_ahead();
    bench.append(6, "kept");
    bench.log.write(begun + RETRY_PERIOD);
    assert!(!bench.log.is_suspended());
    let (end, told) = bench.sync();
    assert!(end == Position(5) && told.is_err(), "{end:?} {told:?}");
    assert_eq!(bench.synced.recv_timeout(Duration::from_secs(10)).unwrap(), (Position(6), Ok(())));
    assert_eq!(all(&bench.reader), [1, 2, 3, 4, 6]);
    assert_eq!(all(&bench.restart().reader), [1, 2, 3, 4, 6]);
}
