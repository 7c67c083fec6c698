//! The log for programs: one JSON object a line (`docs/formats/logs.md` names its members).

use std::{fmt::Debug, io::Write, time::SystemTime};

use bodkin_arrowhead::utc::UtcTime;
use serde_json::{Map, Number, Value, json};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

/// Writes lines where `write` says.
pub struct JsonLayer<W>(W);

impl JsonLayer<fn(&[u8])> {
    /// To the standard error stream, each line whole.
    pub fn to_stderr() -> Self {
        // What cannot be said there cannot be told anywhere.
        Self(|line| _ = std::io::stderr().lock().write_all(line))
    }
}

impl<S: Subscriber, W: Fn(&[u8]) + 'static> Layer<S> for JsonLayer<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        (self.0)(&line(event, SystemTime::now()));
    }
}

/// The line of an event, its end with it.
fn line(event: &Event<'_>, at: SystemTime) -> Vec<u8> {
    let mut said = Said::default();
    event.record(&mut said);
    let (level, target) = (event.metadata().level().as_str(), event.metadata().target());
    let time = UtcTime::from_system_time(at).ok().map(|time| time.to_string());
    let object = json!({"time": time, "level": level, "target": target, "message": said.message, "fields": said.fields});
    let mut line = object.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// What an event says.
#[derive(Default)]
struct Said {
    message: String,
    fields: Map<String, Value>,
}

impl Said {
    fn put(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for Said {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinity.
        let number = Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number);
        self.put(field, number);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            _ => self.put(field, value.into()),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// The lines that are written while `say` runs.
    fn written(say: impl FnOnce()) -> Vec<Value> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let layer = JsonLayer(move |line: &[u8]| kept.lock().unwrap().push(line.to_vec()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), say);
        let lines = lines.lock().unwrap();
        assert!(lines.iter().all(|line| line.iter().filter(|byte| **byte == b'\n').count() == 1 && line.ends_with(b"\n")));
        lines.iter().map(|line| serde_json::from_slice(line).expect("one JSON document a line")).collect()
    }

    #[test]
    fn each_line_is_an_object_with_the_fields_as_they_are() {
        let lines = written(|| {
            tracing::warn!(target: "bodkin_host::shard", times = 3, late = true, ratio = 0.5, none = f64::INFINITY, who = "a \"b\"\nc", "refused {}", 1);
            tracing::error!(why = ?Some(1), "failed\nhere");
        });
        let expected = json!({"times": 3, "late": true, "ratio": 0.5, "none": "inf", "who": "a \"b\"\nc"});
        assert_eq!(
            (&lines[0]["level"], &lines[0]["target"], &lines[0]["message"]),
            (&json!("WARN"), &json!("bodkin_host::shard"), &json!("refused 1"))
        );
        assert_eq!(lines[0]["fields"], expected);
        assert_eq!((&lines[1]["message"], &lines[1]["fields"]), (&json!("failed\nhere"), &json!({"why": "Some(1)"})));
        assert!(lines.iter().all(|line| UtcTime::parse(line["time"].as_str().expect("a time")).is_ok()));
    }
}
