//! What the options say of traces.

use anyhow::{Context, bail};
use bodkin_host::TraceConfig;

use super::Settings;

impl Settings {
    /// What complete settings say; `None`: nobody is told of traces.
    pub(super) fn traces(&self) -> anyhow::Result<Option<TraceConfig>> {
        let all = "complete settings have every option";
        let (url, one_in) = (self.otlp_url.as_deref().expect(all).trim(), self.trace_one_in.expect(all));
        if url.is_empty() {
            if one_in > 0 {
                bail!("trace_one_in is {one_in}, and otlp_url says no collector that could be told: give both, or leave trace_one_in at 0");
            }
            return Ok(None);
        }
        Ok(Some(TraceConfig { collector: url.parse().context("otlp_url")?, one_in }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_that_begin_here_need_a_collector() {
        let config =
            |url: &str, one_in| Settings { otlp_url: Some(url.to_owned()), trace_one_in: Some(one_in), ..Settings::defaults() }.traces();
        assert_eq!(config("", 0).unwrap(), None);
        let told = config(" http://127.0.0.1:4318 ", 10).unwrap().expect("there is one");
        assert_eq!((told.collector.to_string().as_str(), told.one_in), ("http://127.0.0.1:4318/v1/traces", 10));
        assert!(config("", 1).unwrap_err().to_string().contains("otlp_url"));
        assert!(format!("{:#}", config("127.0.0.1:4318", 0).unwrap_err()).contains("http://HOST:PORT"));
    }
}
