//! What a shell and `man` want to know of the command: completions and manual pages, made from its own definition.

use anyhow::{Context, bail};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::write_out;

/// Options of `bodkin completions`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "bash: bodkin completions bash > ~/.local/share/bash-completion/completions/bodkin\n\
    zsh:  bodkin completions zsh > a directory of $fpath, named _bodkin\n\
    fish: bodkin completions fish > ~/.config/fish/completions/bodkin.fish")]
pub struct CompletionOptions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Options of `bodkin man`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "For example: bodkin man event tail | man -l -")]
pub struct ManualOptions {
    /// The command the page is about [default: bodkin itself]
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

/// Prints the completions of a shell.
pub fn completions(mut command: Command, options: &CompletionOptions) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut command, "bodkin", &mut text);
    print(text)
}

/// Prints a manual page in roff.
pub fn manual(mut command: Command, options: &ManualOptions) -> anyhow::Result<()> {
    // Options of the whole command become those of its subcommands.
    command.build();
    let mut page = &command;
    let mut name = "bodkin".to_owned();
    for word in &options.path {
        let Some(below) = page.find_subcommand(word) else { bail!("{name} has no command {word}; see {name} --help") };
        name = format!("{name}-{}", below.get_name());
        page = below;
    }
    let mut text = Vec::new();
    Man::new(page.clone()).render(&mut text)?;
    print(text)
}

fn print(text: Vec<u8>) -> anyhow::Result<()> {
    Ok(write_out(&String::from_utf8(text).context("what clap makes is text")?)?)
}
