//! Completions, manual pages, help, and mistakes that are made before a command begins.

use std::process::{Command, Output, Stdio};

use super::text;
use crate::support::cloud::BINARY;

fn bodkin(line: &str, environment: &[(&str, &str)]) -> Output {
    Command::new(BINARY).args(line.split_whitespace()).envs(environment.iter().copied()).output().expect("the binary starts")
}

#[test]
fn shells_are_told_every_command() {
    for (shell, named) in [("bash", "bodkin__subcmd__event"), ("zsh", "#compdef bodkin"), ("fish", "complete -c bodkin")] {
        let output = bodkin(&format!("completions {shell}"), &[]);
        assert!(output.status.success(), "{output:?}");
        let told = text(&output.stdout);
        assert!(told.contains(named) && told.contains("reconnect-max-s"), "{shell}: {told}");
    }
    assert_eq!(bodkin("completions nonsense", &[]).status.code(), Some(2));
}

#[test]
fn bash_takes_its_completions() {
    let completions = bodkin("completions bash", &[]).stdout;
    let mut bash = match Command::new("bash").args(["-n", "-s"]).stdin(Stdio::piped()).spawn() {
        Ok(bash) => bash,
        Err(error) => return crate::support::skip::note("bash_takes_its_completions", &format!("no bash: {error}")),
    };
    std::io::Write::write_all(&mut bash.stdin.take().expect("standard input is piped"), &completions).expect("bash reads");
    assert!(bash.wait().expect("bash ends").success());
}

#[test]
fn every_command_has_a_manual_page() {
    let page = text(&bodkin("man", &[]).stdout);
    assert!(page.contains(".TH bodkin 1") && page.contains("orchestrate"), "{page}");
    let page = text(&bodkin("man event dead replay", &[]).stdout);
    assert!(page.contains(".TH bodkin-event-dead-replay 1") && page.contains("subscription"), "{page}");
    let unknown = bodkin("man nonsense", &[]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("bodkin --help"));
}

#[test]
fn a_misspelt_variable_is_refused_with_the_nearest_name() {
    for (name, near) in [("BODKIN_PROT_OFFSET", "BODKIN_PORT_OFFSET"), ("BODKIN_SERVICE_REGISTERY", "BODKIN_SERVICE_REGISTRY")] {
        for line in ["up --print-config", "event list", "doctor"] {
            let output = bodkin(line, &[(name, "1")]);
            let told = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}: {told}");
            assert!(told.contains(name) && told.contains(near), "{line}: {told}");
        }
    }
    assert!(bodkin("up --print-config", &[("BODKIN_SERVICE_HOST", "10.0.0.1"), ("BODKIN_PORT", "tcp://10.0.0.1:8443")]).status.success());
}

#[test]
fn the_demo_refuses_a_form_it_does_not_have() {
    for output in [bodkin("demo --once --output json", &[]), bodkin("demo --once", &[("BODKIN_OUTPUT", "json")])] {
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains("--output json"), "{output:?}");
    }
}

#[test]
fn every_command_explains_itself() {
    for command in [
        "service",
        "service list",
        "service definition",
        "service interface",
        "service test",
        "system",
        "auth",
        "auth intercloud",
        "auth test",
        "rule",
        "rule move",
        "rule flexible",
        "orchestrate",
        "event",
        "event tail",
        "event replay",
        "event dead",
        "cert",
        "cert issue",
        "cert renew",
        "cert revoke",
        "audit",
        "audit tail",
        "audit verify",
        "audit export",
        "onboard",
        "onboard secret add",
        "onboard device add",
        "onboard join",
        "doctor",
        "completions",
        "man",
    ] {
        let output = bodkin(&format!("{command} --help"), &[]);
        assert!(output.status.success(), "{command}: {output:?}");
        assert!(text(&output.stdout).contains("Usage: bodkin"), "{command}");
    }
}
