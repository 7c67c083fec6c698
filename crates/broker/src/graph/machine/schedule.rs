//! Who is next: what may begin is begun, the most urgent level first.

use super::{
    super::spec::{OperatorId, Source},
    Machine,
    inputs::{Invalid, Needed, Round},
    level::{LevelQueues, Move},
    node::{Redo, Running},
    store::EventSlot,
    words::{Action, JobId},
};

impl Machine {
    /// Puts an operator to its level's queue once a round could begin.
    pub(super) fn enqueue(&mut self, operator: OperatorId) {
        let node = &mut self.nodes[operator.index()];
        if !node.is_queued && node.running.is_none() && node.has_round() {
            node.is_queued = true;
            self.levels[node.level].ready.push_back(operator);
        }
    }

    pub(super) fn schedule(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        if self.is_suspended {
            return;
        }
        while self.look_over(now_ns, out) {}
    }

    /// Begins what may begin, the most urgent level first. Whether a level that had yielded may go on since, because what it has yielded to was shed.
    fn look_over(&mut self, now_ns: u64, out: &mut Vec<Action>) -> bool {
        let (mut running_above, mut is_behind_above, mut yielding) = (0, false, None);
        let go_on = if self.is_held { self.levels.len().min(2).saturating_sub(1) } else { self.levels.len() };
        for level in 0..go_on {
            while self.step(now_ns, level, (running_above, is_behind_above), out) {}
            running_above += self.levels[level].running;
            is_behind_above |= self.levels[level].has_arrivals() && self.levels[level].pace.is_behind(now_ns);
            if self.yields(now_ns, level) {
                yielding = yielding.or(Some(level));
            } else if !self.policy.is_preemptive && self.levels[level].waits() {
                // All cores are taken, and what waits here is more urgent than all below.
                break;
            }
        }
        yielding.is_some_and(|level| self.levels[level].has_arrivals() && !self.yields(now_ns, level))
    }

    /// Whether a level takes nothing in before less urgent ones have finished what it has shared with them: it does not keep up, so that it loses no result by that, and without it they would have none.
    /// The most urgent level waits for nobody.
    fn yields(&self, now_ns: u64, level: usize) -> bool {
        level > 0
            && self.levels[level].pace.is_behind(now_ns)
            && self.levels[level].ready.is_empty()
            && self.levels[level + 1..].iter().any(LevelQueues::is_at_work)
    }

    /// Does the next thing of a level, if there is one and a worker for it. `above` is how many rounds of more urgent levels run, and whether one of those does not keep up.
    fn step(&mut self, now_ns: u64, level: usize, above: (usize, bool), out: &mut Vec<Action>) -> bool {
        let ((running_above, is_behind_above), cores) = (above, self.policy.cores);
        let own = self.levels[level].running;
        let below: usize = self.levels[level + 1..].iter().map(|level| level.running).sum();
        let has_worker = if self.policy.is_preemptive { own < cores } else { running_above + own + below < cores };
        if has_worker && let Some(operator) = self.levels[level].ready.pop_front() {
            self.begin(now_ns, operator, out);
            return true;
        }
        let is_behind = level > 0 && self.levels[level].pace.is_behind(now_ns);
        // What is shared goes behind this level's work, wherever that still waits; of a level that does not keep up in front of what it has not taken in yet.
        let is_turn_of_shared =
            if is_behind { self.levels[level].ready.is_empty() } else { running_above + own < cores && !self.levels[level].has_work() };
        if is_turn_of_shared && let Some(Move { reader, input, slot }) = self.levels[level].take_share() {
            self.put(reader, input, slot);
            return true;
        }
        // Where a more urgent level does not keep up the others only finish what they have.
        if has_worker
            && !is_behind_above
            && !self.yields(now_ns, level)
            && let Some(slot) = self.levels[level].take_arrival()
        {
            self.take_in(slot, level);
            return true;
        }
        false
    }

    /// Hands a supplier's event to its readers.
    fn take_in(&mut self, slot: EventSlot, level: usize) {
        let Source::Supplier(supplier) = self.store.record(slot).source else { unreachable!("only suppliers' events arrive") };
        for at in 0..self.suppliers[supplier.index()].1.len() {
            let (reader, input) = self.suppliers[supplier.index()].1[at];
            self.store.hold(slot);
            self.hand(level, reader, input, slot);
        }
        self.store.release(slot);
    }

    /// Begins a round of an operator, if its events are valid.
    fn begin(&mut self, now_ns: u64, operator: OperatorId, out: &mut Vec<Action>) {
        let spec = self.graph.operator(operator);
        let node = &mut self.nodes[operator.index()];
        node.is_queued = false;
        if let Some(Redo { round, events, counts }) = node.redo.take() {
            return self.run(operator, round, events, counts, out);
        }
        if !node.inputs.is_ready() {
            return;
        }
        let dropped = &mut self.dropped;
        let pace = &mut self.levels[node.level].pace;
        let needed = Needed { remaining_ns: node.remaining_ns, first_ns: pace.needed_ns(now_ns) };
        let judged = node.inputs.judge(spec, &self.store, now_ns, needed, |slot| dropped.push(slot));
        match judged {
            Err((why, Round { lead, begun_ns, .. })) => {
                node.counters.shed(why);
                if why != Invalid::Apart {
                    pace.lose(now_ns);
                    // Nothing was begun of what is shed in front of the first operator.
                    if begun_ns < now_ns {
                        pace.give_up(now_ns - begun_ns);
                    }
                }
                while let Some(slot) = self.dropped.pop() {
                    self.store.release(slot);
                }
                out.push(Action::Shed { operator, lead, why });
                self.lose(operator);
                // The others may still make a round.
                self.enqueue(operator);
            }
            Ok(round) => {
                let (mut events, mut counts) = std::mem::take(&mut node.spare);
                node.inputs.begin(&mut self.store, &mut events, &mut counts);
                self.run(operator, round, events, counts, out);
            }
        }
    }

    fn run(&mut self, operator: OperatorId, round: Round, events: Vec<EventSlot>, counts: Vec<u16>, out: &mut Vec<Action>) {
        let node = &mut self.nodes[operator.index()];
        node.rounds += 1;
        node.counters.rounds += 1;
        let result = self.store.take(Source::Operator(operator));
        node.running = Some(Running { events, counts, result, round, first: operator });
        self.levels[node.level].running += 1;
        out.push(Action::Run(JobId { operator, round: node.rounds }));
        self.reserve(operator, round, result);
    }
}
