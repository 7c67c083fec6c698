//! Service definitions and interfaces: rows that are little more than a name, and can be named by it.

use anyhow::bail;
use bodkin_client::{
    CallError, CoreSystems, Page,
    answer::{Interface, List, ServiceDefinition},
};
use serde::Serialize;

use super::lookup;

/// A row that is little more than a name, and the calls about it.
pub trait NameRow: Serialize + Sized {
    /// What it is.
    const WHAT: &'static str;
    /// Head of its column.
    const COLUMN: &'static str;
    /// The command that lists all.
    const LIST_COMMAND: &'static str;

    fn id(&self) -> i64;
    fn name(&self) -> &str;
    fn times(&self) -> [Option<&String>; 2];
    async fn list(cloud: &CoreSystems, page: &Page) -> Result<List<Self>, CallError>;
    async fn of_id(cloud: &CoreSystems, id: i64) -> Result<Self, CallError>;
    async fn add(cloud: &CoreSystems, name: &str) -> Result<Self, CallError>;
    async fn rename(cloud: &CoreSystems, id: i64, name: &str) -> Result<Self, CallError>;
    async fn remove(cloud: &CoreSystems, id: i64) -> Result<(), CallError>;
}

impl NameRow for ServiceDefinition {
    const WHAT: &'static str = "service definition";
    const COLUMN: &'static str = "SERVICE DEFINITION";
    const LIST_COMMAND: &'static str = "bodkin service definition list";

    fn id(&self) -> i64 {
        self.id
    }

    fn name(&self) -> &str {
        &self.service_definition
    }

    fn times(&self) -> [Option<&String>; 2] {
        [self.created_at.as_ref(), self.updated_at.as_ref()]
    }

    async fn list(cloud: &CoreSystems, page: &Page) -> Result<List<Self>, CallError> {
        cloud.service_definitions(page).await
    }

    async fn of_id(cloud: &CoreSystems, id: i64) -> Result<Self, CallError> {
        cloud.service_definition(id).await
    }

    async fn add(cloud: &CoreSystems, name: &str) -> Result<Self, CallError> {
        cloud.add_service_definition(name).await
    }

    async fn rename(cloud: &CoreSystems, id: i64, name: &str) -> Result<Self, CallError> {
        cloud.rename_service_definition(id, name).await
    }

    async fn remove(cloud: &CoreSystems, id: i64) -> Result<(), CallError> {
        cloud.remove_service_definition(id).await
    }
}

impl NameRow for Interface {
    const WHAT: &'static str = "interface";
    const COLUMN: &'static str = "INTERFACE";
    const LIST_COMMAND: &'static str = "bodkin service interface list";

    fn id(&self) -> i64 {
        self.id
    }

    fn name(&self) -> &str {
        &self.interface_name
    }

    fn times(&self) -> [Option<&String>; 2] {
        [self.created_at.as_ref(), self.updated_at.as_ref()]
    }

    async fn list(cloud: &CoreSystems, page: &Page) -> Result<List<Self>, CallError> {
        cloud.interfaces(page).await
    }

    async fn of_id(cloud: &CoreSystems, id: i64) -> Result<Self, CallError> {
        cloud.interface(id).await
    }

    async fn add(cloud: &CoreSystems, name: &str) -> Result<Self, CallError> {
        cloud.add_interface(name).await
    }

    async fn rename(cloud: &CoreSystems, id: i64, name: &str) -> Result<Self, CallError> {
        cloud.rename_interface(id, name).await
    }

    async fn remove(cloud: &CoreSystems, id: i64) -> Result<(), CallError> {
        cloud.remove_interface(id).await
    }
}

/// The row that `text` names, by its name or id.
pub async fn find<R: NameRow>(cloud: &CoreSystems, text: &str) -> anyhow::Result<R> {
    if let Some(id) = lookup::id(text) {
        return lookup::found(R::of_id(cloud, id).await, R::WHAT, text, R::LIST_COMMAND);
    }
    let all = R::list(cloud, &Page::default()).await?.data;
    match all.into_iter().find(|row| row.name().eq_ignore_ascii_case(text.trim())) {
        Some(row) => Ok(row),
        None => bail!("no {} {text} is registered; see {}", R::WHAT, R::LIST_COMMAND),
    }
}
