//! Every option of `bodkin up` with its default.

use toml::Table;

use super::{cell, page, printed};

/// An option of a help text: its flag, and its paragraphs.
fn options(help: &str) -> Vec<(String, Vec<String>)> {
    let mut options: Vec<(String, Vec<String>)> = Vec::new();
    let body = help.lines().skip_while(|line| *line != "Options:").skip(1).take_while(|line| line.is_empty() || line.starts_with(' '));
    for line in body {
        let text = line.trim();
        let is_flag = line.len() - line.trim_start().len() < 10 && text.starts_with('-');
        match options.last_mut() {
            _ if is_flag => options.push((text.to_owned(), Vec::new())),
            Some((_, paragraphs)) if !text.is_empty() => paragraphs.push(text.to_owned()),
            _ => {}
        }
    }
    options
}

/// The long flag of an option without its value.
fn long(flag: &str) -> &str {
    let from = flag.find("--").map_or(flag, |at| &flag[at..]);
    from.split([' ', '[', '=']).next().unwrap_or(from)
}

#[test]
fn every_option_of_up_is_in_the_reference() {
    let defaults: Table = printed(&["up", "--print-config"]).parse().expect("the configuration is TOML");
    let help = printed(&["up", "--help"]);
    let mut rows = String::new();
    let mut others = String::new();
    let mut told = 0;
    for (flag, paragraphs) in options(&help) {
        let (noted, words): (Vec<String>, Vec<String>) = paragraphs.into_iter().partition(|text| text.starts_with('['));
        let words = words.join(" ");
        // It has a column of its own.
        let words = cell(words.split(" [default: ").next().unwrap_or_default());
        // Of a secret its value is never shown, and so no sign of equality.
        let variable = |text: &String| Some(text.strip_prefix("[env: ")?.strip_suffix(']')?.trim_end_matches('=').to_owned());
        let variable = noted.iter().find_map(variable).unwrap_or_default();
        let flag = long(&flag);
        match defaults.get(&flag.trim_start_matches('-').replace('-', "_")) {
            Some(default) => {
                told += 1;
                let key = flag.trim_start_matches('-').replace('-', "_");
                rows.push_str(&format!("| `{key}` | `{}` | `{variable}` | {words} |\n", cell(&default.to_string())));
            }
            None => others.push_str(&format!(
                "* `{flag}`{}: {words}\n",
                if variable.is_empty() { String::new() } else { format!(" (`{variable}`)") }
            )),
        }
    }
    assert_eq!(told, defaults.len(), "every key is an option, and told once");
    let text = format!(
        "Every option of `bodkin up` and `bodkin backup` is a key of a TOML file, an environment variable and a flag: the key's name with dashes, `port_offset` as \
         `--port-offset`. Flags go before the environment, that before the file of `--config`, that before `/etc/bodkin/bodkin.toml`, and that before the defaults \
         below. Unknown keys, flags and `BODKIN_` variables are refused. `bodkin.example.toml` explains each at greater length, and `bodkin up --print-config` prints \
         what is in force. Tables of the file only are `[platform]` and `[[topic]]`, see [topics](../formats/topics.md), and `[fleet]`, see [forward events to a fleet's stream](../how-to/fleet.md).\n\n\
         | key | default | variable | |\n|---|---|---|---|\n{rows}\nFlags that are no keys:\n\n{others}"
    );
    page("configuration.md", "Configuration", &text);
}
