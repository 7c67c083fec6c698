//! `bodkin auth test`, `explain` and `access`: who may use what, and why or why not.

use bodkin_client::Monitor;
use clap::Args;

use crate::{
    DONE,
    cli::{DENIED, explanation, printer::Printer},
};

/// What is asked of Authorization.
#[derive(Args, Clone, Debug)]
pub struct Inquiry {
    /// Name or id of the system that would consume
    #[arg(long, value_name = "SYSTEM")]
    consumer: String,
    /// The service definition
    #[arg(long, value_name = "SERVICE")]
    service: String,
    /// Name or id of the system that offers it [default: all that do]
    #[arg(long, value_name = "SYSTEM")]
    provider: Option<String>,
    /// Over this interface; may be repeated [default: any]
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
}

impl Inquiry {
    async fn ask(&self, monitor: &Monitor) -> anyhow::Result<bodkin_client::answer::Explanation> {
        let provider = self.provider.iter().map(|provider| ("provider", provider.as_str()));
        let interfaces = self.interfaces.iter().map(|interface| ("interface", interface.as_str()));
        let further: Vec<_> = provider.chain(interfaces).collect();
        Ok(monitor.explain_authorization(&self.consumer, &self.service, &further).await?)
    }

    fn remedy(&self) -> String {
        format!("auth add --consumer {}", self.consumer)
    }
}

/// What is asked of the rules of access.
#[derive(Args, Clone, Debug)]
pub struct AccessInquiry {
    /// Name of the system that would ask, or the whole common name in its certificate
    #[arg(long, value_name = "NAME")]
    caller: String,
    /// What it would ask, for example /serviceregistry/query
    #[arg(long, value_name = "PATH")]
    path: String,
    /// How
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// The system that the request would name as its sender
    #[arg(long, value_name = "SYSTEM")]
    system: Option<String>,
    /// The service definition that it would be about
    #[arg(long, value_name = "SERVICE")]
    service: Option<String>,
    /// It would be on behalf of another cloud
    #[arg(long)]
    external: bool,
}

/// Prints what may be used; gives the exit code.
pub async fn test(monitor: &Monitor, inquiry: &Inquiry, printer: Printer) -> anyhow::Result<u8> {
    let answer = inquiry.ask(monitor).await?;
    explanation::print(&answer, &answer, &inquiry.remedy(), printer)?;
    Ok(explanation::exit_code(&answer))
}

/// Prints what may be used, and every step to it; gives the exit code.
pub async fn explain(monitor: &Monitor, inquiry: &Inquiry, printer: Printer) -> anyhow::Result<u8> {
    let answer = inquiry.ask(monitor).await?;
    explanation::print_steps(&answer, &answer, &inquiry.remedy(), printer)?;
    Ok(explanation::exit_code(&answer))
}

/// Prints whether a request may be made; gives the exit code.
pub async fn access(monitor: &Monitor, inquiry: &AccessInquiry, printer: Printer) -> anyhow::Result<u8> {
    let optional = [("system", inquiry.system.as_deref()), ("service", inquiry.service.as_deref())];
    let mut further = vec![("method", inquiry.method.as_str())];
    further.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    further.extend(inquiry.external.then_some(("external", "true")));
    let answer = monitor.explain_access(&inquiry.caller, &inquiry.path, &further).await?;
    let may = if answer.allowed { "may" } else { "may NOT" };
    let mode = if answer.enforced { "" } else { " (this cloud runs in insecure mode, and asks for none of it)" };
    printer.done(&answer, &format!("{} {may} {} {}{mode}", answer.caller, answer.method, answer.path))?;
    let mut table = explanation::steps_table();
    explanation::push_steps(&mut table, "the request", &answer.steps);
    printer.table(&table, "")?;
    Ok(if answer.allowed { DONE } else { DENIED })
}
