//! Commands that the documents show: each has to be one that this binary understands.

mod shell;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{CommandFactory, error::ErrorKind};

use self::shell::commands;
use crate::Command;

/// Documents of the tree, and folders of them.
const DOCUMENTS: &[&str] = &["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "zmtp-c/README.md", "python/README.md"];
/// Info strings of fences with commands for a shell; the first is none at all.
const SHELLS: &[&str] = &["", "sh", "bash"];
/// Texts that begin with the same word, and are signed or hashed.
const NO_COMMANDS: &[&str] = &["introduction 1", "graph event key 1", "tunnel 1"];
/// What is answered by a help text: a command that is not whole shows what there is, as `./x bench`.
const IS_HELP: &[ErrorKind] = &[ErrorKind::DisplayHelp, ErrorKind::DisplayVersion, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];
/// Deepest folder of documents.
const DEPTH_MAX: u32 = 8;
/// Stands for what a document leaves out.
const LEFT_OUT: &str = "...";

/// A fenced block: where it begins, its info string, its text.
struct Fence {
    line: usize,
    info: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn collect(place: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    assert!(depth <= DEPTH_MAX, "{}: deeper than {DEPTH_MAX} folders", place.display());
    if place.is_dir() {
        for entry in fs::read_dir(place).expect("a folder is read") {
            collect(&entry.expect("an entry").path(), depth + 1, found);
        }
    } else if place.extension().is_some_and(|ending| ending == "md") {
        found.push(place.to_owned());
    }
}

fn documents() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    DOCUMENTS.iter().for_each(|name| collect(&root().join(name), 0, &mut paths));
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root()).expect("it is below").display().to_string();
        (name, fs::read_to_string(&path).expect("a document is text"))
    };
    paths.into_iter().map(read).collect()
}

fn fences(text: &str) -> Vec<Fence> {
    let mut fences = Vec::new();
    let mut open: Option<Fence> = None;
    for (line, content) in (1..).zip(text.lines()) {
        match (content.trim_start().strip_prefix("```"), &mut open) {
            (Some(info), None) => open = Some(Fence { line, info: info.trim().to_owned(), text: String::new() }),
            (Some(_), Some(_)) => fences.extend(open.take()),
            (None, Some(fence)) => fence.text.extend([content, "\n"]),
            (None, None) => {}
        }
    }
    fences
}

/// What the command line says of these words, which begin behind `bodkin`.
fn mistake(words: &[String]) -> Option<String> {
    if words.iter().any(|word| word == LEFT_OUT) {
        return None;
    }
    // What a variable has is known when it runs; where a number has to be one stands for it.
    let words = words.iter().map(|word| if word.starts_with('$') { "1".to_owned() } else { word.clone() });
    let line = std::iter::once("bodkin".to_owned()).chain(words);
    match Command::command().try_get_matches_from(line) {
        // The commands in front of it have made the file, where it is run.
        Err(error) if error.kind() == ErrorKind::ValueValidation && error.to_string().contains("No such file or directory") => None,
        Err(error) if !IS_HELP.contains(&error.kind()) => Some(error.to_string().lines().next().unwrap_or_default().to_owned()),
        _ => None,
    }
}

/// The words behind `bodkin` of a shell command that starts it, or has `x` start it.
fn of_bodkin(words: &[String]) -> Option<Vec<String>> {
    let is_assignment =
        |word: &String| word.split_once('=').is_some_and(|(name, _)| name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()));
    let mut words = words.iter().skip_while(|word| is_assignment(word)).skip_while(|word| *word == "exec").peekable();
    if words.next_if(|word| *word == "sudo").is_some() && words.next_if(|word| *word == "-u").is_some() {
        words.next();
    }
    let below = match (words.next()?.as_str(), words.peek().map(|word| word.as_str())) {
        ("bodkin", _) => None,
        ("./x", Some("bench")) => Some("bench"),
        ("./x", Some("run")) => Some("demo"),
        _ => return None,
    };
    Some(below.map(str::to_owned).into_iter().chain(words.skip(usize::from(below.is_some())).cloned()).collect())
}

#[test]
fn every_command_of_the_documents_is_understood() {
    let mut mistakes = Vec::new();
    let mut checked = 0;
    for (name, text) in documents() {
        for fence in fences(&text).iter().filter(|fence| SHELLS.contains(&fence.info.split(' ').next().unwrap_or_default())) {
            for words in commands(&fence.text).iter().filter_map(|words| of_bodkin(words)) {
                checked += 1;
                mistakes.extend(
                    mistake(&words).map(|told| format!("{name}, fence of line {}: bodkin {}: {told}", fence.line, words.join(" "))),
                );
            }
        }
    }
    assert!(checked > 100, "only {checked} commands were found");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

/// Of what is named in a sentence only the command is looked up: options stand there by themselves, and arguments for anything.
#[test]
fn every_command_that_is_named_is_there() {
    let mut mistakes = Vec::new();
    let definition = Command::command();
    for (name, text) in documents() {
        let fenced: Vec<String> = fences(&text).into_iter().map(|fence| fence.text).collect();
        let prose = fenced.iter().fold(text.clone(), |text, fence| text.replace(fence.as_str(), ""));
        for span in prose.split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("bodkin ")) {
            if NO_COMMANDS.iter().any(|text| span.starts_with(text)) {
                continue;
            }
            let mut command = &definition;
            for word in span.split_whitespace().take_while(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')) {
                match command.find_subcommand(word) {
                    Some(below) => command = below,
                    None if command.has_subcommands() && !word.starts_with('-') => {
                        mistakes.push(format!("{name}: bodkin {span}: there is no {word}"));
                        break;
                    }
                    None => break,
                }
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn a_mistake_is_found() {
    let words = |line: &str| commands(line).iter().filter_map(|words| of_bodkin(words)).collect::<Vec<_>>();
    for good in [
        "bodkin status",
        "bodkin event --help",
        "sudo -u bodkin bodkin status --data x",
        "A=b ./x bench event --scenario C",
        "bodkin cert ...",
    ] {
        let [command] = &words(good)[..] else { panic!("{good} is one command") };
        assert_eq!(mistake(command), None, "{good}");
    }
    for bad in ["bodkin no-such-command", "bodkin status --no-such-option", "bodkin event publish X", "x | bodkin event tail"] {
        let [command] = &words(bad)[..] else { panic!("{bad} is one command") };
        assert!(mistake(command).is_some(), "{bad}");
    }
    assert!(words("curl bodkin; # bodkin nonsense\ncat <<'END'\nbodkin nonsense\nEND\n").is_empty());
}
