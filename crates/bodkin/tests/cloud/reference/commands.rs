//! Every command with its help.

use super::{page, printed};

/// Options of many commands; told once.
const SHARED: [&str; 3] = ["Which cloud:", "As whom:", "Output:"];
/// A command that has all of them.
const HAS_ALL: &str = "status";
/// The options of `up` have a page of their own; these commands have them as well.
const CONFIGURED: [&str; 3] = ["up", "backup", "doctor"];
const OPTIONS: &str = "Options:";

/// The help in sections, each with its heading in front.
fn sections(help: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = vec![("", Vec::new())];
    for line in help.lines() {
        let is_outside = !line.is_empty() && !line.starts_with(' ');
        match sections.last_mut() {
            _ if is_outside && line.ends_with(':') => sections.push((line, Vec::new())),
            // What is said at the end belongs to no section.
            Some((heading, _)) if is_outside && !heading.is_empty() => sections.push(("", vec![line])),
            Some((_, lines)) => lines.push(line),
            None => {}
        }
    }
    for (_, lines) in &mut sections {
        let kept = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        lines.truncate(kept);
    }
    sections
}

/// Commands below one, in the order of its help.
fn below(help: &str) -> Vec<&str> {
    let list = sections(help).into_iter().find(|(heading, _)| *heading == "Commands:").map(|(_, lines)| lines).unwrap_or_default();
    let names = list.into_iter().filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
    names.filter(|name| *name != "help").collect()
}

/// The options of a section, the lines of each.
fn options<'h>(lines: &[&'h str]) -> Vec<Vec<&'h str>> {
    let mut options: Vec<Vec<&str>> = Vec::new();
    for line in lines {
        match options.last_mut() {
            Some(option) if !line.trim_start().starts_with('-') || line.starts_with("          ") => option.push(line),
            _ => options.push(vec![line]),
        }
    }
    options
}

/// The help of the options of `up`, which those that have them do not repeat.
struct OfUp(String);

impl OfUp {
    /// Lines of the options of a command that are not those of `up`.
    fn others<'h>(&self, lines: &[&'h str]) -> Vec<&'h str> {
        let known =
            sections(&self.0).into_iter().find(|(heading, _)| *heading == OPTIONS).map(|(_, lines)| options(&lines)).unwrap_or_default();
        let is_same = |one: &[&str], other: &[&str]| one.join("\n").trim_end() == other.join("\n").trim_end();
        options(lines).into_iter().filter(|option| !known.iter().any(|known| is_same(known, option))).flatten().collect()
    }
}

fn push_section(text: &mut String, heading: &str, lines: &[&str]) {
    let body = lines.join("\n");
    text.push_str(format!("{heading}\n{}", body.trim_end_matches([' ', '\n'])).trim_start_matches('\n'));
    text.push_str("\n\n");
}

fn push(text: &mut String, path: &[&str], shared: &[(&str, Vec<&str>)], of_up: &OfUp) {
    let help = printed(&[path, &["--help"]].concat());
    let name = [&["bodkin"], path].concat().join(" ");
    text.push_str(&format!("## {name}\n\n```text\n"));
    let mut shown = String::new();
    for mut section in sections(&help).into_iter().filter(|section| !shared.contains(section)) {
        if section.0 == OPTIONS && path.first().is_some_and(|first| CONFIGURED.contains(first)) {
            section.1 = of_up.others(&section.1);
        }
        if section.0.is_empty() || !section.1.is_empty() {
            push_section(&mut shown, section.0, &section.1);
        }
    }
    text.push_str(shown.trim_matches('\n'));
    text.push_str("\n```\n\n");
    for command in below(&help) {
        push(text, &[path, &[command]].concat(), shared, of_up);
    }
}

#[test]
fn every_command_is_in_the_reference() {
    let mut text = "Options that many commands have are told here: which cloud is meant, as whom a command acts, how results are printed. \
        Those of `bodkin up`, which `bodkin backup` and `bodkin doctor` take as well, are in [configuration.md](configuration.md).\n\n"
        .to_owned();
    text.push_str("## Options of many commands\n\n```text\n");
    let mut shared = String::new();
    let help = printed(&[HAS_ALL, "--help"]);
    let sections: Vec<_> = sections(&help).into_iter().filter(|(heading, _)| SHARED.contains(heading)).collect();
    assert_eq!(sections.len(), SHARED.len(), "{help}");
    for (heading, lines) in &sections {
        push_section(&mut shared, heading, lines);
    }
    text.push_str(shared.trim_matches('\n'));
    text.push_str("\n```\n\n");
    push(&mut text, &[], &sections, &OfUp(printed(&["up", "--help"])));
    assert!(text.matches("\n## ").count() > 80, "{text}");
    page("commands.md", "Commands", &text);
}
