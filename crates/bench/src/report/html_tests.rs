use super::*;
use crate::load::Measured;
use crate::published::Published;
use crate::statistics::Figure;

/// Checks that every element is closed in its order; gives their names.
fn elements(html: &str) -> Vec<String> {
    let (mut open, mut seen) = (Vec::new(), Vec::new());
    let body = html.strip_prefix("<!DOCTYPE html>").expect("a document type");
    for part in body.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("a tag without end: {part}"));
        assert!(!text.contains('>'), "an unescaped sign in {text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed out of order");
            continue;
        }
        let name = tag.split([' ', '/']).next().expect("a name").to_string();
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if !tag.ends_with('/') {
            open.push(name.clone());
        }
        seen.push(name);
    }
    assert!(open.is_empty(), "left open: {open:?}");
    seen
}

fn report(title: &str, errors: u64) -> Report {
    let mut measured = Measured::default();
    for step in 1..3000u64 {
        measured.latencies.record_ns(step * 1000);
        measured.time_line.record(step * 400_000, step * 1000);
    }
    measured.faults.add("status 500 instead of 201: <html>\"no\"".into());
    let mut outcome = Outcome::new("100 simultaneous & more".into());
    outcome.push(vec![Figure::sum("errors", errors), Figure::median("mean_ms", 1.5)], measured);
    let mut report = Report::new(title.into());
    report.outcomes = vec![outcome, Outcome::new("nothing".into())];
    report.conditions = Some(Conditions::begin("anywhere".into(), "own".into(), "none".into(), 3));
    report.published.push(Published { source: "A <work>".into(), what: "register".into(), figures: "mean s 41.14".into() });
    report.note("a note".into());
    report.ratio("one to another".into(), 1.2);
    report.judge(&["errors<1".parse().unwrap()]);
    report
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_else() {
    let mut document = Document::series("A series".into());
    document.reports = vec![report("first <b>", 0), report("second", 2)];
    document.failures.push(("bench x".into(), "it broke <here>".into()));
    let html = document.html();
    let elements = elements(&html);
    for wanted in ["svg", "polyline", "polygon", "table", "details", "nav", "style"] {
        assert!(elements.iter().any(|name| name == wanted), "no {wanted}");
    }
    for unwanted in ["script", "link", "img", "iframe"] {
        assert!(!elements.iter().any(|name| name == unwanted), "{unwanted}");
    }
    for elsewhere in ["http://", "https://", "url(", "@import"] {
        assert!(!html.contains(elsewhere), "{elsewhere}");
    }
    for told in
        ["p99.99", "1 of 2 thresholds missed", "41.14", "one of 1 errors", "Load average", "it broke &lt;here&gt;", "first &lt;b&gt;"]
    {
        assert!(html.contains(told), "{told}");
    }
}

#[test]
fn a_single_report_has_no_contents() {
    let html = Document::single(report("alone", 0)).html();
    assert!(!elements(&html).iter().any(|name| name == "nav"));
    assert!(html.contains("all 1 thresholds met"));
}
