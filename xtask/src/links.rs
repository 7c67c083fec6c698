//! Links of the documents: each leads to something in the tree, and to a heading of it where it names one. A document that is named in code, as in
//! `docs/design/pair.md` or `pair.md`, has to be there as well, and so has each test that a table's last column, `tests` or `test`, names.

use std::collections::BTreeMap;

use crate::tree::TextFile;

/// Every link that leads nowhere, a line each. `is_there` says of a path from the root whether the tree has it.
pub fn violations(files: &[TextFile], is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let documents = files.iter().filter(|file| file.path().ends_with(".md"));
    let anchors: BTreeMap<&str, Vec<String>> = documents.clone().map(|file| (file.path(), anchors(file.text()))).collect();
    let code: Vec<&TextFile> = files.iter().filter(|file| file.path().ends_with(".rs")).collect();
    let mut violations = Vec::new();
    for file in documents {
        let path = file.path();
        let missing = tests_named(file.text()).filter(|(_, name)| !is_test(name, &code));
        violations.extend(missing.map(|(number, name)| format!("{path}:{number}: names the test {name}, which is not there")));
        for (number, line) in prose(file.text()) {
            for target in links(&line) {
                violations.extend(fault(path, &target, &anchors, &is_there).map(|fault| format!("{path}:{number}: {fault}")));
            }
            for name in code_spans(&line).filter(|span| names_document(span) && !is_of_its_time(path)) {
                let is_one_of = |file: &&TextFile| file.path().strip_suffix(name).is_some_and(|folder| folder.ends_with('/'));
                if !is_there(name) && !is_there(&resolved(path, name)) && !files.iter().any(|file| is_one_of(&file)) {
                    violations.push(format!("{path}:{number}: names {name}, which is not there"));
                }
            }
        }
    }
    violations
}

/// What is wrong with a link's target in the document at `path`.
fn fault(path: &str, target: &str, anchors: &BTreeMap<&str, Vec<String>>, is_there: &impl Fn(&str) -> bool) -> Option<String> {
    // Other places than the tree are not looked up: the check needs no network.
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let file = if file.is_empty() { path.to_owned() } else { resolved(path, file) };
    if !is_there(&file) {
        return Some(format!("leads to {file}, which is not there"));
    }
    let anchor = anchor?;
    match anchors.get(file.as_str()) {
        Some(known) if known.iter().any(|known| known == anchor) => None,
        Some(_) => Some(format!("leads to #{anchor} of {file}, which has no such heading")),
        None => Some(format!("leads to #{anchor} of {file}, which is no document")),
    }
}

/// The path from the root of what `target` is, seen from the document at `path`.
fn resolved(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Lines outside of fences, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut is_fenced = false;
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (!is_fenced && !is_fence).then(|| (number, line.to_owned()))
    })
}

/// Targets of `[text](target)` and `![text](target)`; what is in code is none.
fn links(line: &str) -> Vec<String> {
    let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()?.split_whitespace().next());
    targets.map(str::to_owned).collect()
}

/// What stands between backticks.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The tests that the last column of a table names under the head `tests` or `test`.
///
/// A name is `NAME`, `MODULE::NAME`, `BEGIN_OF_A_NAME_*`, or `MODULE::` for all of a module.
fn tests_named(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut is_in_table = false;
    let cells = prose(text).filter_map(move |(number, line)| {
        let last = line.trim_end().strip_suffix('|')?.rsplit('|').next()?.trim().to_owned();
        Some((number, last))
    });
    let mut line_before = 0;
    let rows = cells.filter(move |(number, last)| {
        let is_head = *number != line_before + 1;
        line_before = *number;
        if is_head {
            is_in_table = matches!(last.as_str(), "tests" | "test");
        }
        is_in_table && !is_head
    });
    rows.flat_map(|(number, last)| {
        let names: Vec<String> = code_spans(&last).filter(|span| !span.contains(' ')).map(str::to_owned).collect();
        names.into_iter().map(move |name| (number, name))
    })
}

/// Whether there is a test of this name, or a module of tests.
fn is_test(name: &str, code: &[&TextFile]) -> bool {
    let parts = name.trim_end_matches(".rs").replace('/', "::");
    let parts = parts.trim_end_matches("::").trim_end_matches("::tests");
    let in_module = |file: &TextFile, module: &str| {
        let path = format!("/{}/", file.path().trim_end_matches(".rs").replace("/src/", "/"));
        path.contains(&format!("/{}/", module.replace("::", "/")))
    };
    let (module, test) = parts.rsplit_once("::").unwrap_or(("", parts));
    let head = test.strip_suffix('*').map_or_else(|| format!("fn {test}("), |begin| format!("fn {begin}"));
    code.iter().any(|file| in_module(file, parts) || (module.is_empty() || in_module(file, module)) && file.text().contains(&head))
}

/// Whether a document says what was so when it was written: what it names may be gone, or have another name.
fn is_of_its_time(path: &str) -> bool {
    path.starts_with("docs/decisions/") || path == "CHANGELOG.md"
}

fn names_document(span: &str) -> bool {
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    span.ends_with(".md") && span.bytes().all(is_path)
}

/// The anchors of a document's headings, as GitHub makes them: a heading that comes again has a number.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let letters = heading.trim().to_lowercase();
        let kept = letters.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expected: &[&str]) {
        let other = "# Other page\n## What holds, and why\n## Twice\n## Twice\n```\n# no heading\n```\n";
        let files = [TextFile::new("docs/a.md", page), TextFile::new("docs/design/b.md", other)];
        let is_there = |path: &str| ["docs/a.md", "docs/design/b.md", "docs/images/c.png", "docs/design", "README.md"].contains(&path);
        assert_eq!(violations(&files, is_there), expected, "{page}");
    }

    #[test]
    fn a_link_leads_to_what_is_there() {
        check("see [b](design/b.md), [this](#here), ![c](images/c.png) and [all](../README.md)\n# Here\n", &[]);
        check("[folder](design/) and [far](https://bodkin.invalid/x#y)", &[]);
        check("[b](b.md)", &["docs/a.md:1: leads to docs/b.md, which is not there"]);
        check("x\n[up](../../a.md)", &["docs/a.md:2: leads to a.md, which is not there"]);
    }

    #[test]
    fn a_link_leads_to_a_heading_that_is_there() {
        check("[b](design/b.md#what-holds-and-why) [2](design/b.md#twice-1)", &[]);
        check("[b](design/b.md#no-heading)", &["docs/a.md:1: leads to #no-heading of docs/design/b.md, which has no such heading"]);
        check("[this](#there)", &["docs/a.md:1: leads to #there of docs/a.md, which has no such heading"]);
        check("[c](images/c.png#x)", &["docs/a.md:1: leads to #x of docs/images/c.png, which is no document"]);
    }

    #[test]
    fn a_test_that_a_table_names_is_there() {
        let check_under = |head: &str, named: &str| {
            let other = "| what | why |\n| a | `c_d` |\n";
            let page = format!("`not_in_a_table`\n\n| what | {head} |\n|---|---|\n| `a_b` | {named} |\n\n{other}");
            let code = TextFile::new("crates/a/tests/pair/durable.rs", "#[test]\nfn nothing_is_lost() {\n}\n");
            violations(&[TextFile::new("a.md", &page), code], |_| true)
        };
        let check = |named: &str| check_under("tests", named);
        for there in [
            "`nothing_is_lost`",
            "`durable::nothing_is_lost`",
            "`pair::durable::`, simulator",
            "`tests/pair`; `durable::tests`",
            "`nothing_*`; `bodkin bench crash`",
        ] {
            assert_eq!(check(there), [""; 0], "{there}");
        }
        for missing in ["nothing_is", "pair::other::", "other::nothing_is_lost", "anything_*"] {
            assert_eq!(check(&format!("`{missing}`")), [format!("a.md:5: names the test {missing}, which is not there")]);
        }
        assert_eq!(check_under("test", "`nothing_is`"), ["a.md:5: names the test nothing_is, which is not there"]);
    }

    #[test]
    fn code_is_no_link_but_may_name_a_document() {
        check("`[b](b.md)` and [`b`](design/b.md)\n```\n[b](b.md)\n```\n", &[]);
        check("`docs/design/b.md`, `design/b.md`, `NAME.md or so`", &[]);
        check("`docs/design/c.md`", &["docs/a.md:1: names docs/design/c.md, which is not there"]);
    }
}
