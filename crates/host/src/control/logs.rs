//! What a system logged (reference 1.6).

use bodkin_arrowhead::{
    core_service::CoreSystem,
    log::{LogParameters, LogQuery},
};

use super::{Control, Result, page_request};
use crate::{answer::Answer, request::Request};

impl Control {
    pub(super) async fn list_logs(&self, system: CoreSystem, request: &Request) -> Result<Answer> {
        let origin = format!("/{}/mgmt/logs", system.name());
        let given = LogParameters {
            level: request.parameter("level"),
            from: request.parameter("from"),
            to: request.parameter("to"),
            logger: request.parameter("logger"),
        };
        let query = LogQuery::parse(system, page_request(request, &origin)?, given, &origin)?;
        Ok(Answer::json(200, &self.log_book.read(&self.store, query).await?))
    }
}
