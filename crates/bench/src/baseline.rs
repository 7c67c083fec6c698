//! The named state that every run starts from, kept so that it can be restored.
//!
//! An own server is filled once and ended; each run then begins with a new server on a copy of its data directory, so that
//! nothing of an earlier run is in its memory or its tables. A foreign cloud cannot be set back: what it was given stays.

use std::sync::Arc;

use crate::cloud::{Cloud, Directory};
use crate::operation::Needs;
use crate::options::{ServerOptions, TargetOptions};
use crate::scene::{Filled, Scene};
use crate::state::State;

/// A state to start from.
pub struct Baseline {
    filled: Arc<Filled>,
    server: String,
    kept: Kept,
}

enum Kept {
    /// The data of an own server that was filled and ended.
    Directory(Directory, ServerOptions),
    /// A foreign cloud; gone while a run has it.
    Foreign(Option<Box<Scene>>),
}

impl Baseline {
    /// Fills a cloud.
    ///
    /// # Errors
    /// It does not start or answer, or refuses what the state needs.
    pub fn prepare(options: &TargetOptions, state: State, needs: Needs) -> anyhow::Result<Self> {
        let cloud = Cloud::open(options)?;
        let filled = Filled::fill(&cloud, state, needs, &options.provider_address)?;
        let server = cloud.description();
        let kept = match options.target {
            Some(_) => Kept::Foreign(Some(Box::new(Scene::new(cloud, Arc::clone(&filled))))),
            None => Kept::Directory(cloud.close()?.expect("an own server has a directory"), options.server.clone()),
        };
        Ok(Self { filled, server, kept })
    }

    /// A cloud in this state.
    ///
    /// # Errors
    /// The copy cannot be written, or the server does not start on it.
    pub fn restore(&mut self) -> anyhow::Result<Scene> {
        match &mut self.kept {
            Kept::Directory(directory, options) => {
                Ok(Scene::new(Cloud::start(directory.copy(options.data.as_deref())?, options)?, Arc::clone(&self.filled)))
            }
            Kept::Foreign(scene) => Ok(*scene.take().expect("a run gives the foreign cloud back")),
        }
    }

    /// Takes back what [`Baseline::restore`] gave.
    ///
    /// # Errors
    /// The own server did not end well.
    pub fn end(&mut self, mut scene: Scene) -> anyhow::Result<()> {
        match &mut self.kept {
            Kept::Directory(..) if scene.cloud.ended().is_some() => Ok(()),
            Kept::Directory(..) => scene.cloud.close().map(drop),
            Kept::Foreign(kept) => {
                *kept = Some(Box::new(scene));
                Ok(())
            }
        }
    }

    /// What the report says about the server.
    pub fn server(&self) -> String {
        self.server.clone()
    }

    /// What the report says about the state.
    pub fn description(&self) -> String {
        let state = self.filled.state();
        match self.kept {
            Kept::Directory(..) => format!("{state}, restored before each run"),
            Kept::Foreign(_) => format!("{state}; a foreign cloud keeps what the runs before gave it"),
        }
    }
}
