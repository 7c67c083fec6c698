//! A program that solves a net, as a process: what it takes and what it finds.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::sys::resource::{UsageWho, getrusage};

/// Between two looks at whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Memory that Java may take, and a collector that takes no other processors.
const JAVA: [&str; 2] = ["-Xmx6g", "-XX:+UseSerialGC"];

/// Two times are one if they differ by less.
const SAME_TIME: f64 = 1e-6;

/// Columns of our own tables that have no numbers.
const OF_WORDS: [&str; 2] = ["method", "certainty"];

/// How programs are run.
pub struct Solver<'a> {
    /// Where what they say is kept meanwhile.
    pub place: &'a Path,
    /// After it they are stopped.
    pub limit: Duration,
}

/// What a program found.
#[derive(Debug)]
pub struct Solution {
    pub cpu_s: f64,
    times: Vec<f64>,
    /// By place, at each time.
    values: BTreeMap<String, Vec<f64>>,
}

impl Solver<'_> {
    /// Runs a program, which writes CSV with a column `t` and one for each place.
    pub fn solve(&self, command: &mut Command) -> Result<Solution, String> {
        let (out, told) = (self.place.join("out"), self.place.join("told"));
        let open = |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
        let before = children_cpu_s();
        let program = command.get_program().to_string_lossy().into_owned();
        let started = command.stdin(Stdio::null()).stdout(open(&out)?).stderr(open(&told)?).spawn();
        let mut child = started.map_err(|error| format!("{program} does not start: {error}"))?;
        let deadline = Instant::now() + self.limit;
        let status = loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    // Both fail only when it has just ended by itself.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("no answer within {} s", self.limit.as_secs()));
                }
                None => thread::sleep(LOOK_EVERY),
            }
        };
        let cpu_s = children_cpu_s() - before;
        if !status.success() {
            let told = fs::read_to_string(&told).unwrap_or_default();
            return Err(told.lines().rfind(|line| !line.trim().is_empty()).map_or_else(|| status.to_string(), str::to_owned));
        }
        let text = fs::read_to_string(&out).map_err(|error| error.to_string())?;
        Solution::read(&text, cpu_s).ok_or_else(|| format!("{program} wrote no table: {}", text.lines().next().unwrap_or_default()))
    }
}

/// Of all processes that this one has started and that have ended.
fn children_cpu_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("every process has used something");
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

impl Solution {
    fn read(text: &str, cpu_s: f64) -> Option<Self> {
        let mut lines = text.lines();
        // Storm's warnings go where its answers go.
        let names: Vec<&str> = lines.find_map(|line| line.strip_prefix("t,"))?.split(',').collect();
        let mut times = Vec::new();
        let mut values: BTreeMap<String, Vec<f64>> = names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
        for line in lines {
            let (time, cells) = line.split_once(',')?;
            times.push(time.parse().ok()?);
            let cells: Vec<&str> = cells.split(',').collect();
            if cells.len() != names.len() {
                return None;
            }
            for (name, cell) in names.iter().zip(cells) {
                match cell.parse() {
                    Ok(value) => values.entry((*name).to_owned()).or_default().push(value),
                    Err(_) if OF_WORDS.contains(name) => _ = values.remove(*name),
                    Err(_) => return None,
                }
            }
        }
        Some(Self { cpu_s, times, values })
    }

    /// The largest difference at times and places that both have; none where they have nothing in common.
    pub fn off(&self, right: &Self) -> Option<f64> {
        let pairs = self.times.iter().enumerate().filter_map(|(own, time)| {
            let after = right.times.partition_point(|other| *other < time - SAME_TIME);
            right.times.get(after).filter(|other| (*other - time).abs() <= SAME_TIME).map(|_| (own, after))
        });
        let difference = |(own, other): (usize, usize)| {
            let of_place = |(name, values): (&String, &Vec<f64>)| Some((values[own] - right.values.get(name)?[other]).abs());
            // What is no number is as far off as anything can be.
            self.values.iter().filter_map(of_place).map(|off| if off.is_nan() { f64::INFINITY } else { off }).reduce(f64::max)
        };
        pairs.filter_map(difference).reduce(f64::max)
    }
}

/// Sirio, built.
pub struct Sirio {
    target: PathBuf,
}

impl Sirio {
    /// Java with the program; what it is asked is to follow.
    pub fn command(&self) -> Command {
        let mut java = Command::new("java");
        java.args(JAVA).arg("-cp").arg(format!("{0}/bodkin-sirio.jar:{0}/lib/*", self.target.display())).arg("bodkin.bench.Solve");
        java
    }
}

/// Builds Sirio's program; Maven fetches what is not there.
pub fn sirio(sources: &Path) -> Result<Sirio, String> {
    if !sources.join("pom.xml").is_file() {
        return Err(format!("{} has no pom.xml: name the program's sources with --sirio", sources.display()));
    }
    let built = Command::new("mvn").args(["--quiet", "--batch-mode", "package"]).current_dir(sources).stdin(Stdio::null()).output();
    let built = built.map_err(|error| format!("mvn does not start: {error}"))?;
    let told = [built.stdout, built.stderr].concat();
    if !built.status.success() {
        let told = String::from_utf8_lossy(&told);
        return Err(format!("mvn package fails: {}", told.lines().find(|line| line.contains("ERROR")).unwrap_or_default()));
    }
    Ok(Sirio { target: sources.join("target") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Solution {
        Solution::read(text, 1.0).expect("it is a table")
    }

    #[test]
    fn differences_are_of_times_and_places_that_both_have() {
        let right = read("t,a,b\n0,1,0\n0.5,0.5,0.5\n1,0.25,0.75\n");
        assert_eq!(read("t,b,c\n0.0,0.0,9\n1.0,0.7,9\n").off(&right), Some(0.75 - 0.7));
        assert_eq!(read("t,a\n0.25,7\n").off(&right), None, "no time in common");
        assert_eq!(read("t,c\n1,7\n").off(&right), None, "no place in common");
        assert_eq!(read("WARN (where): what\nt,a\n1,1\n").off(&right), Some(0.75), "what is told in front of the table");
        assert_eq!(read("t,a,method\n1,0.5,markov\n").off(&right), Some(0.25), "words are left out");
        assert_eq!(read("t,a\n1,NaN\n").off(&right), Some(f64::INFINITY));
        assert!(["", "x,a\n", "t,a\n1\n", "t,a\n1,x\n"].iter().all(|text| Solution::read(text, 1.0).is_none()));
    }

    #[test]
    fn a_program_is_stopped_at_the_limit_and_its_last_words_are_told() {
        let place = tempfile::tempdir().expect("a directory");
        let solver = Solver { place: place.path(), limit: Duration::from_millis(50) };
        let told = |script: &str| solver.solve(Command::new("sh").args(["-c", script])).expect_err("no table");
        assert_eq!(told("sleep 5"), "no answer within 0 s");
        assert_eq!(told("echo first >&2; echo; echo last >&2; exit 3"), "last");
        assert_eq!(told("exit 3"), "exit status: 3");
        assert_eq!(told("echo nothing"), "sh wrote no table: nothing");
        let solver = Solver { limit: Duration::from_secs(20), ..solver };
        let found = solver.solve(Command::new("sh").args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo t,a; echo 1,2"]));
        let found = found.expect("a table");
        assert!(found.cpu_s > 0.0 && found.off(&read("t,a\n1,2.5\n")) == Some(0.5), "{found:?}");
        assert!(solver.solve(&mut Command::new("/no/program")).expect_err("it is not there").contains("does not start"));
    }
}
