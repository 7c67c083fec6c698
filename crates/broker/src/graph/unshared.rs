//! A graph in which no operator is shared: what sharing saves is the difference.

use std::collections::BTreeMap;

use super::spec::{Edge, Graph, GraphFault, OPERATORS_MAX, OperatorId, OperatorSpec, Output, Source};

impl Graph {
    /// The same graph with a copy of each operator for every output that it leads to, and of each copy the operator that it is one of. None if these would be more than
    /// [`OPERATORS_MAX`].
    pub fn unshared(&self) -> Option<(Self, Vec<OperatorId>)> {
        let mut copies = Copies { graph: self, operators: Vec::new(), origins: Vec::new() };
        let mut outputs = Vec::with_capacity(self.outputs().len());
        for (number, output) in self.outputs().iter().enumerate() {
            let from = copies.copy(output.from, number, &mut BTreeMap::new())?;
            outputs.push(Output { from, ..output.clone() });
        }
        let Copies { operators, origins, .. } = copies;
        let graph: Result<Self, Vec<GraphFault>> = Self::new(self.name.clone(), self.suppliers().to_vec(), operators, outputs);
        Some((graph.expect("copies of a graph's operators are a graph"), origins))
    }
}

struct Copies<'g> {
    graph: &'g Graph,
    operators: Vec<OperatorSpec>,
    origins: Vec<OperatorId>,
}

impl Copies<'_> {
    /// The copy of an operator for one output; inside of that it is made once. Recursive: a way is as long as there are operators at the most.
    fn copy(&mut self, id: OperatorId, output: usize, made: &mut BTreeMap<OperatorId, OperatorId>) -> Option<OperatorId> {
        if let Some(copy) = made.get(&id) {
            return Some(*copy);
        }
        let spec = self.graph.operator(id);
        let mut inputs = Vec::with_capacity(spec.inputs.len());
        for Edge { from, usage } in &spec.inputs {
            let from = match from {
                Source::Operator(upstream) => Source::Operator(self.copy(*upstream, output, made)?),
                Source::Supplier(_) => *from,
            };
            inputs.push(Edge { from, usage: *usage });
        }
        if self.operators.len() == OPERATORS_MAX {
            return None;
        }
        let copy = OperatorId::of(self.operators.len());
        self.operators.push(OperatorSpec {
            name: format!("{} of {}", spec.name, self.graph.outputs()[output].topic),
            inputs,
            ..spec.clone()
        });
        self.origins.push(id);
        made.insert(id, copy);
        Some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::testing::*, *};

    #[test]
    fn every_output_has_operators_of_its_own() {
        let (graph, origins) = figure_2_2().unshared().expect("they are few");
        let origins: Vec<usize> = origins.into_iter().map(OperatorId::index).map(|origin| origin + 1).collect();
        assert_eq!(origins, [1, 5, 1, 2, 6, 1, 2, 3, 4, 5, 7, 4]);
        assert_eq!(graph.level(OperatorId::of(2)).get(), 1, "the copy of o1 for o6 is as urgent as o6");
        assert_eq!(graph.operator(OperatorId::of(2)).name, "o1 of C2");
    }
}
