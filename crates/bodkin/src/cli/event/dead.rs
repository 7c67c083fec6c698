//! `bodkin event dead`: events that a subscriber did not take.

use bodkin_client::{Monitor, answer::DeadLetter};
use clap::{Args, Subcommand};

use crate::{
    DONE, FAILED,
    cli::{page::PageOptions, printer::Printer, table::Table},
};

/// What to do with dead letters.
#[derive(Subcommand, Clone, Debug)]
pub enum DeadCommand {
    /// List dead letters
    List {
        /// Only of this subscription
        #[arg(long, value_name = "ID")]
        subscription: Option<i64>,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Post dead letters again, in their order; what is taken is removed. Exit code 1 if any is left
    Replay(Which),
    /// Remove dead letters
    Remove(Which),
}

#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// Those of this subscription
    #[arg(long, value_name = "ID")]
    subscription: Option<i64>,
    /// Those of all subscriptions
    #[arg(long)]
    all: bool,
}

/// Carries a command out; gives the exit code.
pub async fn run(monitor: &Monitor, command: DeadCommand, printer: Printer) -> anyhow::Result<u8> {
    match command {
        DeadCommand::List { subscription, page } => {
            let letters = monitor.dead_letters(subscription, &page.into()).await?;
            printer.rows(&letters, &table(&letters.data), "no dead letters")?;
        }
        DeadCommand::Replay(which) => {
            let done = monitor.replay_dead_letters(which.subscription).await?;
            let mut sentence = format!("{} were taken, {} failed again, {} are left", done.replayed, done.failed, done.remaining);
            if done.elsewhere > 0 {
                sentence += &format!(
                    "; the events of {} are in the event log of the other node of the pair: hand the lead over to it (bodkin pair hand-over) and try again",
                    done.elsewhere
                );
            }
            printer.done(&done, &sentence)?;
            return Ok(if done.remaining == 0 { DONE } else { FAILED });
        }
        DeadCommand::Remove(which) => {
            let done = monitor.remove_dead_letters(which.subscription).await?;
            printer.done(&done, &format!("removed: {} dead letters", done.removed))?;
        }
    }
    Ok(DONE)
}

fn table(letters: &[DeadLetter]) -> Table {
    let mut table = Table::new(&["ID", "SUBSCRIPTION", "EVENT TYPE", "PUBLISHED", "DIED", "ATTEMPTS", "REASON", "PAYLOAD"]);
    for letter in letters {
        table.push([
            letter.id.to_string(),
            letter.subscription.to_string(),
            letter.event_type.clone().unwrap_or_default(),
            letter.published_at.clone().unwrap_or_default(),
            letter.died_at.clone(),
            letter.attempts.to_string(),
            letter.reason.clone(),
            payload(letter),
        ]);
    }
    table
}

fn payload(letter: &DeadLetter) -> String {
    match (&letter.event, letter.payload_withheld_bytes) {
        (None, _) => "(not kept any more)".to_owned(),
        (Some(_), Some(bytes)) => format!("({bytes} bytes, for subscribers)"),
        (Some(event), None) => event.payload.clone().unwrap_or_default(),
    }
}
