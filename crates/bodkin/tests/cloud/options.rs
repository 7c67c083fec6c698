//! Flags, environment, file and defaults.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use toml::{Table, Value};

use crate::support::cloud::BINARY;

/// A setting that has a flag, an environment variable and a key in the file.
const FLAG: &str = "--header-timeout-ms";
const VARIABLE: &str = "BODKIN_HEADER_TIMEOUT_MS";
const KEY: &str = "header_timeout_ms";

fn bodkin(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(BINARY).args(arguments).envs(environment.iter().copied()).output().expect("the binary runs")
}

/// The effective configuration.
#[track_caller]
fn printed(arguments: &[&str], environment: &[(&str, &str)]) -> Table {
    let mut all = vec!["up", "--print-config"];
    all.extend_from_slice(arguments);
    let output = bodkin(&all, environment);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").parse().expect("the configuration is TOML")
}

/// Where the key is, at any depth.
fn find<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    table.get(key).or_else(|| table.values().filter_map(Value::as_table).find_map(|inner| find(inner, key)))
}

/// `key = value` under the table that the printed configuration has it in.
fn file_with(directory: &Path, value: i64) -> PathBuf {
    fn set(table: &mut Table, key: &str, value: i64) -> bool {
        if table.contains_key(key) {
            table.insert(key.into(), Value::Integer(value));
            return true;
        }
        table.iter_mut().filter_map(|(_, inner)| inner.as_table_mut()).any(|inner| set(inner, key, value))
    }
    let mut whole = printed(&["--insecure"], &[]);
    assert!(set(&mut whole, KEY, value), "{KEY} is not printed");
    let path = directory.join("bodkin.toml");
    fs::write(&path, whole.to_string()).expect("written");
    path
}

#[test]
fn a_flag_beats_the_environment_and_that_beats_the_file() {
    let place = TempDir::new().expect("a temporary directory");
    let path = file_with(place.path(), 1111);
    let file = ["--insecure", "--config", path.to_str().expect("text")];
    let flagged = [&file[..], &[FLAG, "3333"]].concat();
    let value = |arguments: &[&str], environment: &[(&str, &str)]| find(&printed(arguments, environment), KEY).cloned();
    assert_eq!(value(&file, &[]), Some(Value::Integer(1111)));
    assert_eq!(value(&file, &[(VARIABLE, "2222")]), Some(Value::Integer(2222)));
    assert_eq!(value(&flagged, &[(VARIABLE, "2222")]), Some(Value::Integer(3333)));
    assert_eq!(value(&["--insecure"], &[(VARIABLE, "2222")]), Some(Value::Integer(2222)));
}

#[test]
fn an_unknown_key_is_a_usage_error_that_names_it() {
    let place = TempDir::new().expect("a temporary directory");
    let path = place.path().join("bodkin.toml");
    for content in ["no_such_key = 1\n", "[no_such_key]\nx = 1\n"] {
        fs::write(&path, content).expect("written");
        let output = bodkin(&["up", "--insecure", "--print-config", "--config", path.to_str().expect("text")], &[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no_such_key"), "{output:?}");
    }
}

#[test]
fn a_wrong_use_is_exit_code_2_with_what_is_wrong() {
    let place = TempDir::new().expect("a temporary directory");
    let broken = place.path().join("broken.toml");
    fs::write(&broken, "this is = = not TOML\n").expect("written");
    let cases: [(&[&str], &str); 5] = [
        (&["up", "--insecure", "--no-such-flag"], "--no-such-flag"),
        (&["no-such-command"], "no-such-command"),
        (&["up", "--insecure", FLAG, "soon"], "soon"),
        (&["up", "--insecure", "--port-offset", "70000"], "70000"),
        (&["up", "--insecure", "--config", broken.to_str().expect("text")], "broken.toml"),
    ];
    for (arguments, named) in cases {
        let output = bodkin(arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(named), "{named} is not named: {output:?}");
    }
}

#[test]
fn a_configuration_file_that_is_not_there_is_told_by_its_path() {
    let place = TempDir::new().expect("a temporary directory");
    let missing = place.path().join("missing.toml");
    let output = bodkin(&["up", "--insecure", "--config", missing.to_str().expect("text")], &[]);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing.toml"), "{output:?}");
}

#[test]
fn help_names_the_units_and_the_variables() {
    let output = bodkin(&["up", "--help"], &[]);
    assert!(output.status.success(), "{output:?}");
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    for named in [FLAG, "--idle-timeout-ms", VARIABLE, "--insecure", "--data", "--listen", "--port-offset", "--any-port", "--config"] {
        assert!(help.contains(named), "{named} is not in the help:\n{help}");
    }
    let flags = help.split_whitespace().filter(|word| word.starts_with("--"));
    for flag in flags.map(|word| word.trim_end_matches([',', '.'])) {
        let is_switch = flag.ends_with("-scheduled");
        let timed = !is_switch && ["timeout", "interval", "ttl"].iter().any(|word| flag.contains(word));
        let has_unit = ["-ns", "-us", "-ms", "-s", "-min", "-minutes", "-h"].iter().any(|unit| flag.ends_with(unit));
        assert!(!timed || has_unit, "{flag} does not say its unit");
    }
}

#[test]
fn the_example_file_is_the_defaults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bodkin.example.toml");
    let example: Table = fs::read_to_string(&path).expect("bodkin.example.toml is there").parse().expect("it is TOML");
    assert_eq!(example, printed(&[], &[]));
    assert!(!example.is_empty(), "the example shows every key");
    let output = bodkin(&["up", "--print-config", "--config", path.to_str().expect("text")], &[]);
    assert!(output.status.success(), "{output:?}");
}
