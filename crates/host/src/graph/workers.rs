//! The limit of worker threads for graphs on this machine.
//!
//! A graph has `cores` workers, and a preemptive graph has as many for each level. More workers than processors compute
//! nothing sooner, and the bounds of the analysis hold only if each worker has a processor. [`Processors::check`]
//! therefore refuses such a graph when it is deployed.

use std::num::NonZeroUsize;

use bodkin_broker::{
    graph::{Graph, response::Workers},
    topic::Level,
};
use bodkin_operators::file::GraphFile;

use super::{GraphError, Lateness};

/// Worker threads of all graphs together, at most, for each processor.
pub(super) const WORKERS_PER_PROCESSOR: usize = 64;

/// The processors that this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors(NonZeroUsize);

impl Processors {
    /// Those of this machine, its control group and affinity considered.
    pub fn available() -> Self {
        Self(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// Returns the workers of each set: as many as the file says, at most one for each processor.
    pub fn cores(self, workers: &Workers) -> usize {
        self.0.get().min(workers.cores.get() as usize)
    }

    /// Returns the worker threads that a graph has here.
    pub fn workers(self, file: &GraphFile) -> usize {
        self.cores(&file.workers) * sets(&file.graph, &file.workers).len()
    }

    /// Checks that a graph fits this machine, where other graphs have `others` worker threads.
    ///
    /// # Errors
    /// Returns an error that names the limit. With [`Lateness::Told`], a graph with too many cores runs with fewer workers
    /// instead, and the log reports this: it was deployed before, perhaps on another machine.
    pub fn check(self, place: &str, file: &GraphFile, others: usize, lateness: Lateness) -> Result<(), GraphError> {
        let (cores, processors) = (file.workers.cores.get() as usize, self.0.get());
        if cores > processors {
            lateness.judge(GraphError::Cores { place: place.to_owned(), cores, processors })?;
        }
        let (workers, limit) = (self.workers(file), WORKERS_PER_PROCESSOR * processors);
        if workers + others > limit {
            return Err(GraphError::Workers { place: place.to_owned(), workers, others, limit });
        }
        Ok(())
    }
}

/// Returns the level of each set of workers. A graph that is not preemptive has one set.
pub(super) fn sets(graph: &Graph, workers: &Workers) -> Vec<Level> {
    let mut levels: Vec<Level> = graph.order().iter().map(|operator| graph.level(*operator)).collect();
    levels.sort_unstable();
    levels.dedup();
    if !workers.is_preemptive {
        levels.truncate(1);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::parse;

    const TWO: Processors = Processors(NonZeroUsize::new(2).expect("not 0"));

    fn graph(cores: usize, is_preemptive: bool) -> GraphFile {
        let text = format!(
            "[graph]\nname = \"g\"\ncores = {cores}\npreemption = {is_preemptive}\n[[supplier]]\ntopic = \"in\"\nshape = \"f64\"\nperiod_s = 1\n\
             [[operator]]\nname = \"a\"\nkind = \"max\"\ninputs = [\"in\"]\n[[operator]]\nname = \"b\"\nkind = \"min\"\ninputs = [\"in\"]\n\
             [[output]]\ntopic = \"x\"\nfrom = \"a\"\n[[output]]\ntopic = \"y\"\nfrom = \"b\"\nlevel = 3\n"
        );
        parse(&text).expect("it is a graph")
    }

    fn refused(file: &GraphFile, others: usize, lateness: Lateness) -> Option<String> {
        TWO.check("g.toml", file, others, lateness).err().map(|error| error.to_string())
    }

    #[test]
    fn graph_with_more_cores_than_processors_is_refused() {
        assert_eq!((refused(&graph(1, true), 0, Lateness::Refused), refused(&graph(2, true), 0, Lateness::Refused)), (None, None));
        let expected = "g.toml: cores = 256, and this machine has 2 processors: set cores to at most 2";
        assert_eq!(refused(&graph(256, false), 0, Lateness::Refused).as_deref(), Some(expected));
        assert_eq!((refused(&graph(256, false), 0, Lateness::Told), TWO.workers(&graph(256, false))), (None, 2), "it runs with fewer");
    }

    #[test]
    fn graphs_beyond_worker_limit_are_refused() {
        assert_eq!((TWO.workers(&graph(2, false)), TWO.workers(&graph(2, true))), (2, 4));
        assert_eq!(refused(&graph(2, true), 124, Lateness::Refused), None);
        let expected = "g.toml: the graph needs 4 worker threads and the other graphs have 125, and the limit of this machine is 128 (64 for each processor): \
                        lower cores, leave preemption out, or remove a graph";
        for lateness in [Lateness::Refused, Lateness::Told] {
            assert_eq!(refused(&graph(2, true), 125, lateness).as_deref(), Some(expected));
        }
    }
}
