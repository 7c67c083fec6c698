//! The database that several nodes share, and what does not go with it.

use anyhow::{Context, bail};
use bodkin_host::DatabasePlace;

use super::Settings;

impl Settings {
    /// Where the shared database of complete settings is; `None`: this node has one of its own.
    pub fn shared_database(&self) -> anyhow::Result<Option<DatabasePlace>> {
        let url = self.database.as_deref().unwrap_or_default().trim();
        if url.is_empty() {
            return Ok(None);
        }
        let place = DatabasePlace::parse(url).context("--database")?;
        if self.role.as_deref().is_some_and(|role| !role.is_empty()) {
            bail!(
                "--database is for nodes that are alike, and --role for a reliable pair, which keeps its own database: leave one of them away"
            );
        }
        if self.topic.is_some() || self.graphs.as_ref().is_some_and(|graphs| !graphs.is_empty()) {
            bail!(
                "real-time topics and graphs are served by one node, a cloud by itself or a reliable pair: they do not go with --database"
            );
        }
        Ok(Some(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shared_database_does_not_go_with_is_refused() {
        let with = |settings: Settings| Settings { database: Some("postgres://bodkin@db/cloud".into()), ..settings }.shared_database();
        assert!(Settings::defaults().shared_database().unwrap().is_none());
        assert_eq!(with(Settings::defaults()).unwrap().unwrap().to_string(), "postgres://bodkin@db:5432/cloud");
        let error = with(Settings { topic: Some(toml::Value::Array(Vec::new())), ..Settings::defaults() }).unwrap_err();
        assert!(error.to_string().contains("one node"), "{error}");
        let unreadable = Settings { database: Some("sqlite://x".into()), ..Settings::defaults() }.shared_database().unwrap_err();
        assert!(format!("{unreadable:#}").contains("postgres://USER"), "{unreadable:#}");
    }
}
