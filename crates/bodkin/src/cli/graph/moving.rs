//! `bodkin graph move`: an operator goes to another edge with its state, while the graph runs.
//!
//! The command asks the edges for the steps of it, each for its own. Until the edge where the operator runs has committed, a failure or an interruption (SIGINT, SIGTERM) leaves everything as it was; behind
//! that the operator has moved, and the same command once more brings the move to its end.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail};
use bodkin_broker::graph::placement::KEPT_MAX;
use bodkin_client::{
    CallError, Monitor,
    answer::{GraphMove, MoveForm},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    DONE, FAILED,
    cli::{
        printer::Printer,
        registry::{RegistryOptions, parse_host_and_port},
    },
};

const PAUSE: Duration = Duration::from_millis(100);

/// What is moved, and where the edges answer.
pub(super) struct Moving<'m> {
    pub operator: &'m str,
    pub to: &'m str,
    pub graph: Option<&'m str>,
    pub at: &'m [String],
    pub force: bool,
}

/// The edges that take part.
struct Edges {
    own: Monitor,
    others: BTreeMap<String, Monitor>,
}

/// Moves an operator.
pub(super) async fn run(registry: &RegistryOptions, moving: &Moving<'_>, printer: Printer) -> anyhow::Result<u8> {
    let others = moving.at.iter().map(|text| other(registry, text)).collect::<anyhow::Result<BTreeMap<_, _>>>()?;
    let edges = Edges { own: registry.monitor()?, others };
    let graph = match moving.graph {
        Some(graph) => graph.to_owned(),
        None => edges.graph_of(moving.operator).await?,
    };
    let form = MoveForm {
        graph,
        operator: moving.operator.to_owned(),
        to: moving.to.to_owned(),
        step: "plan".to_owned(),
        force: moving.force,
        ..MoveForm::default()
    };
    let plan = edges.own.move_operator(&form).await?;
    if let Some(missing) = plan.edges.iter().find(|edge| !edges.others.contains_key(*edge)) {
        bail!("the edge {missing} is to have the new version too, and where it answers was not said: --at {missing}=HOST:PORT");
    }
    let form = MoveForm { release: Some(plan.release.clone()), file: plan.file.clone(), ..form };
    let mut interruption = Interruption::listen()?;
    let committed = edges.commit(&plan, &form, &mut interruption).await?;
    let finished = interruption.ends(edges.finish_all(&plan, &form, &committed)).await;
    let finished = finished.unwrap_or_else(|| Err(anyhow!("interrupted: {} has gone to {}", moving.operator, moving.to)));
    if let Err(error) = finished {
        eprintln!("bodkin: {error:#}");
        eprintln!("bodkin: the same command once more brings the move to its end");
        return Ok(FAILED);
    }
    let done = GraphMove { handover: None, file: None, ..committed };
    printer.done(&done, &format!("moved: {} runs on {}, with its state", moving.operator, moving.to))?;
    Ok(DONE)
}

/// Whether an edge may have done what it was asked for.
fn is_in_doubt(error: &CallError) -> bool {
    matches!(error, CallError::Interrupted { .. } | CallError::TooSlow { .. })
}

/// SIGINT and SIGTERM, by which an operator ends a move in its middle.
struct Interruption {
    interrupt: Signal,
    terminate: Signal,
}

impl Interruption {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn comes(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Does some of the work unless that is interrupted.
    async fn ends<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.comes() => None,
        }
    }
}

fn step(form: &MoveForm, step: &str) -> MoveForm {
    MoveForm { step: step.to_owned(), ..form.clone() }
}

/// The edges that take part besides the one where the operator comes.
fn hearing<'p>(plan: &'p GraphMove, to: &'p str) -> impl Iterator<Item = &'p str> {
    plan.edges.iter().map(String::as_str).filter(move |edge| *edge != to)
}

/// The edges in the order in which they prepare. Where the operator comes nothing is taken in from then on: it is the last one.
fn preparing<'p>(plan: &'p GraphMove, to: &'p str) -> impl Iterator<Item = &'p str> {
    hearing(plan, to).chain([to])
}

impl Edges {
    /// The only graph here that has an operator of this name.
    async fn graph_of(&self, operator: &str) -> anyhow::Result<String> {
        let graphs = self.own.graphs().await?;
        let has = graphs.data.iter().filter(|graph| graph.placement.iter().any(|place| place.operator == operator));
        let names: Vec<&str> = has.map(|graph| graph.name.as_str()).collect();
        match names[..] {
            [name] => Ok(name.to_owned()),
            [] => bail!("no graph over several edges runs here that has an operator {operator}: bodkin graph list shows them"),
            _ => bail!("several graphs have an operator {operator}: --graph says which ({})", names.join(", ")),
        }
    }

    /// Has the operator go: what is committed already is told again, and what is not is prepared first. A failure leaves everything as it was, unless it says that this is not known.
    async fn commit(&self, plan: &GraphMove, form: &MoveForm, interruption: &mut Interruption) -> anyhow::Result<GraphMove> {
        if !plan.committed {
            let prepared = interruption.ends(self.prepare_all(plan, form)).await;
            if let Err(error) = prepared.unwrap_or_else(|| Err(anyhow!("interrupted, and nothing has changed"))) {
                interruption.ends(self.abandon(plan, form)).await;
                return Err(error);
            }
        }
        let error = match interruption.ends(self.own.move_operator(&step(form, "commit"))).await {
            Some(Ok(committed)) => return Ok(committed),
            Some(Err(error)) if !is_in_doubt(&error) => {
                interruption.ends(self.abandon(plan, form)).await;
                return Err(error.into());
            }
            Some(Err(error)) => error.into(),
            None => anyhow!("interrupted"),
        };
        // It may have been done, or not: what is prepared is let go by itself.
        Err(error.context("whether the operator has gone is not known: the same command once more finds out"))
    }

    async fn prepare_all(&self, plan: &GraphMove, form: &MoveForm) -> anyhow::Result<()> {
        for edge in preparing(plan, &form.to) {
            self.prepare(edge, form).await.with_context(|| format!("{edge} cannot prepare for it, and nothing has changed"))?;
        }
        Ok(())
    }

    async fn prepare(&self, edge: &str, form: &MoveForm) -> Result<GraphMove, CallError> {
        self.ask(edge, MoveForm { handover: None, ..step(form, "prepare") }).await
    }

    /// Asks for a step where another edge is said to answer; who answers there and is another one refuses.
    async fn ask(&self, edge: &str, form: MoveForm) -> Result<GraphMove, CallError> {
        self.others[edge].move_operator(&MoveForm { edge: Some(edge.to_owned()), ..form }).await
    }

    /// Lets go what is prepared, where that was first: who has not answered then may not answer now. Who does not hear it does so by itself.
    async fn abandon(&self, plan: &GraphMove, form: &MoveForm) {
        for edge in preparing(plan, &form.to) {
            let _ = self.ask(edge, step(form, "abandon")).await;
        }
    }

    /// Has all edges run the new version: the operator where it comes, and the others hear it there.
    async fn finish_all(&self, plan: &GraphMove, form: &MoveForm, committed: &GraphMove) -> anyhow::Result<()> {
        let form = MoveForm { file: committed.file.clone(), handover: committed.handover.clone(), ..form.clone() };
        for edge in std::iter::once(&*form.to).chain(hearing(plan, &form.to)) {
            let told = || format!("{} has gone to {}, and {edge} has not heard of it", form.operator, form.to);
            self.finish(edge, &form).await.with_context(told)?;
        }
        let own = self.own.move_operator(&MoveForm { handover: None, ..step(&form, "finish") }).await;
        own.context("the move is done, and is told as under way at the edge that it went from")?;
        Ok(())
    }

    /// Has an edge run the new version, prepared anew if it does not know of it any more; for as long as what it needs is kept for it elsewhere.
    async fn finish(&self, edge: &str, form: &MoveForm) -> Result<(), CallError> {
        let until = Instant::now() + KEPT_MAX;
        loop {
            let finished = match self.ask(edge, step(form, "finish")).await {
                Err(CallError::Problem(_)) => match self.prepare(edge, form).await {
                    Ok(_) => self.ask(edge, step(form, "finish")).await,
                    Err(error) => Err(error),
                },
                finished => finished,
            };
            match finished {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// `EDGE=HOST:PORT`, in secure mode with the directory of that edge's certificates behind a space.
fn other(registry: &RegistryOptions, text: &str) -> anyhow::Result<(String, Monitor)> {
    let expected = || format!("--at {text:?}: expected EDGE=HOST:PORT, or 'EDGE=HOST:PORT TRUST'");
    let (edge, rest) = text.split_once('=').with_context(expected)?;
    let (address, trust) =
        rest.trim().split_once(' ').map_or((rest.trim(), None), |(address, trust)| (address, Some(Path::new(trust.trim()))));
    let addresses =
        address.split(',').map(parse_host_and_port).collect::<Result<Vec<_>, _>>().map_err(anyhow::Error::msg).with_context(expected)?;
    Ok((edge.trim().to_owned(), registry.other_monitor(&addresses.join(","), trust)?))
}
