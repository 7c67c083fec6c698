//! The command that moves the operator: it asks one edge after the other for the steps, and may die and be given again.

use bodkin_broker::graph::{
    handover::{Handover, SourceTaken},
    placement::EdgeId,
};

use super::{MoveFlaw, Place, World, office::Waits, press::PUBLISHER, state_of};
use crate::graph::Broken;

const EDGES: usize = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Plan,
    Prepare,
    Commit,
    /// What was given is on its way.
    Finish,
    /// What was taken is noted to be at work.
    AtWork,
    Forget,
}

/// A move under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Command {
    step: Step,
}

impl Command {
    pub fn is_under_way(&self) -> bool {
        self.step != Step::Plan
    }
}

impl World {
    /// Where the operator goes: what an edge has given says so, and otherwise it goes where it is not.
    fn direction(&self) -> (Place, bool) {
        match (self.press.database.given.is_some(), self.office.database.given.is_some()) {
            (true, _) => (Place::Office, true),
            (_, true) => (Place::Press, true),
            _ if self.press.database.runs == Place::Press => (Place::Office, false),
            _ => (Place::Press, false),
        }
    }

    /// The command dies. What is prepared and not committed is let go behind its time; the same command is given again.
    pub(super) fn command_dies(&mut self) -> Result<(), Broken> {
        if !self.command.is_under_way() || self.office.waits.is_some() {
            return Ok(());
        }
        let (to, is_committed) = self.direction();
        self.command.step = Step::Plan;
        if is_committed {
            self.tally.died_committed += 1;
            return Ok(());
        }
        self.tally.died_before += 1;
        self.office.is_held_up = false;
        match to {
            Place::Office => {
                self.press_goes_on()?;
                if self.office.operator.is_none() && self.office.is_hearing {
                    self.office_leaves();
                }
            }
            Place::Press => {
                (self.press.is_held_up, self.press.held) = (false, Default::default());
            }
        }
        Ok(())
    }

    /// The edge that was asked is another one now: the command asks again, and by that finds out what holds.
    pub(super) fn command_is_interrupted(&mut self) {
        if let Some((_, Waits::Gives)) = self.office.waits.take() {
            self.command.step = Step::Plan;
        }
    }

    /// What the command waited for at the office is done.
    pub(super) fn command_goes_on(&mut self) {
        self.command.step = match self.command.step {
            Step::Commit => Step::Finish,
            Step::Finish => Step::AtWork,
            Step::Forget => {
                self.tally.moves += 1;
                Step::Plan
            }
            other => other,
        };
    }

    /// The graph that runs at the press goes on with what it has held.
    fn press_goes_on(&mut self) -> Result<(), Broken> {
        self.press.is_held_up = false;
        let held = std::mem::take(&mut self.press.held);
        let Some(operator) = &mut self.press.operator else { return Ok(()) };
        for sequence in held {
            self.press.taken = sequence;
            let number = self.numbers[&(self.press.run, sequence.0)];
            self.results.process(&mut **operator, number)?;
        }
        Ok(())
    }

    /// The next step, if what it waits for is there.
    pub(super) fn next_step(&mut self) -> Result<(), Broken> {
        if self.office.waits.is_some() {
            self.proceed();
            return Ok(());
        }
        let (to, is_committed) = self.direction();
        match self.command.step {
            Step::Plan if is_committed => self.command.step = Step::Finish,
            Step::Plan => self.command.step = Step::Prepare,
            Step::Prepare => self.prepare(to),
            Step::Commit => self.commit(to)?,
            Step::Finish => self.finish(to)?,
            Step::AtWork => {
                if self.office.protection.is_none() {
                    self.office.database = self.office.database.is_at_work(self.office.database.runs);
                }
                self.command.step = Step::Forget;
            }
            Step::Forget => {
                self.press.database.given = None;
                let change = self.office.write(self.office.database.was_taken());
                self.office.waits = Some((change, Waits::Forgets));
                self.proceed();
            }
        }
        Ok(())
    }

    /// The office hears the press; or the press takes nothing in, and the office has all that it has published.
    fn prepare(&mut self, to: Place) {
        match to {
            Place::Office if self.flaw == Some(MoveFlaw::SubscribesLate) => self.command.step = Step::Commit,
            Place::Office if !self.may_change() => {}
            Place::Office => {
                self.office.is_held_up = self.office.protection.is_some();
                self.hear_press();
                if self.office.is_connected && self.press.subscription.is_some() {
                    self.command.step = Step::Commit;
                }
            }
            Place::Press if self.flaw == Some(MoveFlaw::HoldsNothing) => self.command.step = Step::Commit,
            Place::Press => {
                self.press.is_held_up = true;
                if !self.press.is_owed() {
                    self.command.step = Step::Commit;
                }
            }
        }
    }

    /// Whether the office may begin another change: a Backup has the version that runs.
    fn may_change(&self) -> bool {
        let does_not_wait = self.flaw == Some(MoveFlaw::DoesNotWait) || self.office.protection.is_none();
        does_not_wait || self.office.database.is_settled()
    }

    /// The operator is given: one transaction.
    fn commit(&mut self, to: Place) -> Result<(), Broken> {
        let (operator, taken, from) = match to {
            Place::Office => {
                // First it takes nothing more in; the next time nothing is under way.
                if !std::mem::replace(&mut self.press.is_held_up, true) {
                    return Ok(());
                }
                let taken =
                    SourceTaken { source: "A".to_owned(), publisher: PUBLISHER, incarnation: self.press.run, through: self.press.taken };
                (&self.press.operator, vec![taken], "press")
            }
            Place::Press if !self.may_change() => return Ok(()),
            Place::Press => {
                let taken = self.office.taken().map(|taken| SourceTaken {
                    source: "A".to_owned(),
                    publisher: taken.publisher,
                    incarnation: taken.incarnation,
                    through: taken.through,
                });
                (&self.office.operator, taken.collect(), "office")
            }
        };
        let operator = operator.as_deref().ok_or("there is no operator to be given")?;
        let given = Handover {
            digest: 1,
            operator: "mean".to_owned(),
            from: from.to_owned(),
            state: state_of(operator),
            inputs: Vec::new(),
            taken,
        };
        match to {
            Place::Office => {
                self.press.database = self.press.database.gives(to, given.encode()).is_at_work(to);
                // What is held here is for an operator that is elsewhere now.
                (self.press.operator, self.press.is_held_up, self.press.held) = (None, false, Default::default());
                self.command.step = Step::Finish;
            }
            Place::Press => {
                self.office.is_held_up = true;
                let change = self.office.write(self.office.database.gives(to, given.encode()));
                self.office.waits = Some((change, Waits::Gives));
                self.proceed();
            }
        }
        Ok(())
    }

    /// The operator is taken where it comes.
    fn finish(&mut self, to: Place) -> Result<(), Broken> {
        let given = match to {
            Place::Office => &self.press.database.given,
            Place::Press => &self.office.database.given,
        };
        let mut given = Handover::decode(given.as_deref().ok_or("nothing was given")?).map_err(|error| error.to_string())?;
        if self.flaw == Some(MoveFlaw::KeepsNothing) {
            given.state = state_of(&*super::operator());
        }
        let (press, office) = (EdgeId::of(0), EdgeId::of(1));
        let (from, at) = if to == Place::Office { (press, office) } else { (office, press) };
        let arrived = given.arrived(from, at, EDGES, |_| Some(press)).map_err(|error| error.to_string())?;
        match to {
            // It is there already: the command was given again.
            Place::Office if self.office.database.runs == Place::Office && self.office.operator.is_some() => {}
            Place::Office => {
                if !self.may_change() {
                    return Ok(());
                }
                // One that has lost what it had prepared prepares it again.
                if !self.office.is_hearing && self.flaw != Some(MoveFlaw::SubscribesLate) {
                    self.office.is_held_up = self.office.protection.is_some();
                    self.hear_press();
                    return Ok(());
                }
                let change = self.office.write(self.office.database.takes(to, arrived.encode()));
                self.office.waits = Some((change, Waits::Takes(arrived)));
                self.proceed();
                return Ok(());
            }
            Place::Press if self.press.operator.is_some() => {}
            Place::Press => self.press_takes(&arrived)?,
        }
        self.command.step = Step::AtWork;
        Ok(())
    }
}
