//! `/api/v1/reports` and `/api/v1/models`: what commands have put into the data directory's folders of these names; nets drawn, and laws fitted
//! to the stages of the running cloud.

use bodkin_arrowhead::core_service::CoreSystem;
use serde_json::{Value, json};

use super::{Api, BASE, list, onboarding::blocking};
use crate::{
    answer::{self, Answer},
    request::Request,
    shelf::{NoFile, Shelf},
    stage::Stage,
};

/// Fits laws to a histogram: the upper bound in nanoseconds and the count of each bucket, ascending.
pub type Fit = fn(&[(u64, u64)]) -> Result<Value, String>;

/// Draws nets and fits laws. The host links no Petri nets: who starts it gives what does.
#[derive(Clone, Copy, Debug)]
pub struct Modeller {
    /// A net's file, JSON, as SVG; or what is wrong with it.
    pub draw: fn(&str) -> Result<String, String>,
    /// The laws as JSON; or why there are none.
    pub fit: Fit,
}

/// What a drawing may do, opened by itself: nothing.
const DRAWING_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

impl Api {
    /// Answers a request at or below `reports` or `models`; that method and path fit was seen before.
    pub(super) async fn shelf(&self, shelf: &Shelf, request: &Request) -> Answer {
        let mut parts = request.path.strip_prefix(BASE).unwrap_or_default().split('/').skip(1);
        match (parts.next(), parts.next()) {
            (None, _) => list_files(shelf.clone()).await,
            (Some(name), None) => match read(shelf, name).await {
                Ok(text) => Answer { content_type: Some(answer::JSON), ..Answer::text(200, text) },
                Err(answer) => *answer,
            },
            (Some(name), Some(_)) => self.draw(shelf, name).await,
        }
    }

    async fn draw(&self, shelf: &Shelf, name: &str) -> Answer {
        let Some(modeller) = self.modeller else { return no_modeller() };
        let text = match read(shelf, name).await {
            Ok(text) => text,
            Err(answer) => return *answer,
        };
        match blocking(move || (modeller.draw)(&text)).await {
            Some(Ok(svg)) => Answer {
                content_type: Some("image/svg+xml"),
                header: Some(("Content-Security-Policy", DRAWING_POLICY.to_owned())),
                ..Answer::text(200, svg)
            },
            Some(Err(told)) => Answer::problem(409, &format!("{name} is no net: {told}.")),
            None => shutting_down(),
        }
    }

    /// Laws fitted to what a stage has taken since the start.
    pub(super) async fn fits(&self, request: &Request) -> Answer {
        let Some(modeller) = self.modeller else { return no_modeller() };
        let (system, stage) = (request.parameter("system").unwrap_or_default(), request.parameter("stage").unwrap_or_default());
        let found = CoreSystem::ALL.into_iter().find(|known| known.name() == system);
        let (Some(system), Some(stage)) = (found, Stage::ALL.into_iter().find(|known| known.name() == stage)) else {
            let told = format!(
                "system is the name of a core system and stage one of its stages, as /api/v1/stages has them, not '{system}' and '{stage}'."
            );
            return Answer::problem(400, &told);
        };
        let buckets = self.stages.of(system, stage).buckets();
        match blocking(move || (modeller.fit)(&buckets)).await {
            Some(Ok(fits)) => Answer::json(200, &json!({"system": system.name(), "stage": stage.name(), "fits": fits})),
            Some(Err(told)) => Answer::problem(409, &format!("{told}.")),
            None => shutting_down(),
        }
    }
}

async fn list_files(shelf: Shelf) -> Answer {
    let path = shelf.path().display().to_string();
    match blocking(move || shelf.files()).await {
        Some(Ok(files)) => list(&files, files.len() as u64),
        Some(Err(error)) => Answer::problem(503, &format!("{path} cannot be read: {error}.")),
        None => shutting_down(),
    }
}

/// A file's text; or the answer that says why there is none.
async fn read(shelf: &Shelf, name: &str) -> Result<String, Box<Answer>> {
    let (shelf, asked) = (shelf.clone(), name.to_owned());
    let refused = |error: NoFile| {
        let told = format!("{error}.");
        match error {
            NoFile::Name(_) => Answer::problem(400, &told),
            NoFile::Missing(_) => Answer::problem(404, &told),
            NoFile::TooLong { .. } | NoFile::NoJson { .. } => Answer::problem(409, &told),
            NoFile::System { .. } => Answer::problem(503, &told),
        }
    };
    match blocking(move || shelf.read(&asked)).await {
        Some(read) => read.map_err(|error| Box::new(refused(error))),
        None => Err(Box::new(shutting_down())),
    }
}

fn no_modeller() -> Answer {
    Answer::problem(409, "This server was started without what draws nets and fits laws.")
}

fn shutting_down() -> Answer {
    Answer::problem(503, "The local cloud is shutting down.")
}
