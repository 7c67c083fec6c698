//! Operators that go to another host and come from one.

use bodkin_broker::graph::{
    OperatorId, Source, SupplierId, Taken,
    handover::{Handover, InputHandover, SourceTaken},
    machine::Waiting,
};

use super::Deployment;

impl Deployment {
    /// Notes what was taken of a topic of this host, where an operator may go to another one that hears that topic too. What comes over links is noted in any case.
    pub(super) fn note_taken(&mut self, taken: Taken) {
        if !self.edges.is_empty() && self.link_of(taken.supplier).is_none() {
            self.carried.take(&taken);
        }
    }

    /// What goes with an operator to another host. Nothing is under way here, and nothing is taken in.
    pub fn hand_over(&self, operator: &str, digest: u64) -> Handover {
        let at = self.graph().operators().iter().position(|known| known.name == operator).map(OperatorId::of);
        let id = at.expect("it was looked at before the graph was held up");
        let mut state = Vec::new();
        self.plant.save(id, &mut state);
        let (mut inputs, mut taken): (Vec<InputHandover>, Vec<SourceTaken>) = (Vec::new(), Vec::new());
        for (input, edge) in self.graph().operator(id).inputs.iter().enumerate() {
            let source = self.source_name(edge.from);
            let Waiting { events, fresh, came } = self.machine.waiting(id, input);
            let event = |slot| (self.machine.record(slot).into(), self.plant.payload(slot).clone());
            let waiting = Waiting { events: events.into_iter().map(event).collect(), fresh, came };
            inputs.push(InputHandover { source: source.to_owned(), waiting });
            if taken.iter().all(|known| known.source != source) {
                self.push_taken(edge.from, &mut taken);
            }
        }
        Handover { digest, operator: operator.to_owned(), from: self.own_edge_name.clone(), state, inputs, taken }
    }

    /// How far a source was taken: of another operator of this part, all that was published of it.
    fn push_taken(&self, source: Source, taken: &mut Vec<SourceTaken>) {
        let name = self.source_name(source);
        let run = |publisher, incarnation, through| SourceTaken { source: name.to_owned(), publisher, incarnation, through };
        match source {
            Source::Supplier(id) => {
                taken.extend(
                    self.carried.taken(id).map(|Taken { publisher, incarnation, through, .. }| run(publisher, incarnation, through)),
                );
            }
            Source::Operator(id) => {
                let outputs = self.graph().outputs().iter().enumerate().filter(|(_, output)| output.from == id);
                for (output, _) in outputs {
                    let (newest, _) = self.machine.progress(output);
                    taken.extend(newest.map(|lead| run(lead.sender(), lead.incarnation, lead.sequence)));
                }
            }
        }
    }

    /// Goes on with an operator of another host when it begins.
    pub fn bring(&mut self, handover: Handover) {
        self.brought = Some(handover);
    }

    /// It has that already, by a checkpoint.
    pub fn has_taken_over(&mut self) {
        self.brought = None;
    }

    /// Takes over what has come with an operator, if something has; gives what was taken where it was. What can be begun of it begins when the deployment is [resumed](Self::resume).
    #[must_use]
    pub fn take_over(&mut self) -> Vec<Taken> {
        let Some(Handover { operator, state, inputs, taken, .. }) = self.brought.take() else { return Vec::new() };
        let at = self.graph().operators().iter().position(|known| known.name == operator).map(OperatorId::of);
        let id = at.expect("its file places it here");
        if let Err(error) = self.plant.restore(id, &state) {
            tracing::error!(graph = self.graph().name, operator, %error, "an operator begins anew");
        }
        for (input, edge) in self.graph().operator(id).inputs.clone().into_iter().enumerate() {
            let name = self.source_name(edge.from).to_owned();
            let Some(InputHandover { waiting: Waiting { events, fresh, came }, .. }) =
                inputs.get(input).filter(|known| known.source == name)
            else {
                continue;
            };
            let waiting = Waiting { events: events.iter().map(|(event, _)| *event).collect(), fresh: *fresh, came: *came };
            self.put_waiting(id, input, &waiting, events.iter().map(|(_, payload)| payload.clone()));
        }
        let taken = taken.into_iter().filter_map(|SourceTaken { source, publisher, incarnation, through }| {
            // Of an operator on this host everything has been taken that it made before it was held up.
            let supplier = self.sources.iter().position(|known| *known == source).map(SupplierId::of)?;
            Some(Taken { supplier, publisher, incarnation, through })
        });
        let taken: Vec<Taken> = taken.collect();
        taken.iter().for_each(|taken| self.carried.pass_over(taken));
        tracing::info!(graph = self.graph().name, operator, "an operator has come from another host with its state");
        taken
    }
}
