//! What is asked of the Orchestrator, checked.

use std::{collections::BTreeMap, time::Duration};

use super::{elsewhere::Elsewhere, quality::Quality};
use crate::{
    access::EXTERNAL_SERVICE_REQUEST,
    address::AddressKind,
    caller::Authorized,
    common_name::CloudCommonName,
    error::ArrowheadError,
    form::{CloudRequest, OrchestrationForm, PreferredProvider, ServiceQueryForm},
    metadata::Metadata,
    name::{CloudName, SystemName},
    record::System,
    service_registry::Query,
    system::{SystemKey, SystemReference},
};

/// What a consumer asks for, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Orchestration {
    pub(super) requester: SystemReference,
    pub(super) kind: Kind,
    /// Whether only providers are wanted that authorization rules grant.
    pub(super) asks_rules: bool,
    pub(super) matchmaking: bool,
    pub(super) preferred: Vec<SystemKey>,
    pub(super) only_preferred: bool,
    /// What is required of the provider, where quality of service is managed and asked for.
    pub(super) quality: Option<Quality>,
    /// The cloud that the requester is of, if it is another one, which its Gatekeeper has shown to be.
    pub(super) requester_cloud: Option<CloudCommonName>,
    /// Who consumes in the requester's place, and whom tokens are for: the own Gateway, where the service is reached by a tunnel.
    pub(super) deputy: Option<SystemName>,
    /// What other clouds may be asked for it.
    pub elsewhere: Option<Elsewhere>,
    /// Whether only candidates are wanted that accept a TCP connection now; connecting is the host's part.
    pub ping_providers: bool,
}

/// Where the candidates come from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Other clouds only (flag `triggerInterCloud`), for the service of this name: here there are none.
    OtherClouds(String),
    /// The registry (flag `overrideStore`).
    Dynamic(Query),
    /// The orchestration store, for one service over one interface.
    StoredService { query: Query, interface: String },
    /// All entries of priority 1 in the orchestration store, of these kinds of addresses; none is any.
    StoredTops(Vec<AddressKind>),
    /// The flexible store; its rules narrow the form. The metadata is what the request says of the requester.
    Flexible { form: ServiceQueryForm, requester_metadata: Metadata },
}

/// Who sends an orchestration form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The requester itself.
    Requester,
    /// A core system on the requester's behalf.
    Proxy,
}

impl Sender {
    /// Path of the operation, as errors name it.
    pub fn origin(self) -> &'static str {
        match self {
            Self::Requester => "/orchestrator/orchestration",
            Self::Proxy => "/orchestrator/orchestration-by-proxy",
        }
    }
}

/// Which store is asked when the registry is not to be asked directly (option `use_flexible_store`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// Entries by consumer, service and interface with priorities.
    #[default]
    Plain,
    /// Rules by names and metadata.
    Flexible,
}

/// Those of a form, by name.
pub(super) struct Flags(pub(super) BTreeMap<String, Option<bool>>);

impl Flags {
    pub(super) fn set(&self, name: &str) -> bool {
        self.0.get(name).copied().flatten().unwrap_or(false)
    }

    /// The kinds of addresses asked for; none is any.
    fn address_kinds(&self) -> Vec<AddressKind> {
        let kinds = [
            ("onlyIPAddressResponse", &[AddressKind::Ipv4, AddressKind::Ipv6][..]),
            ("onlyIPv4AddressResponse", &[AddressKind::Ipv4]),
            ("onlyIPv6AddressResponse", &[AddressKind::Ipv6]),
        ];
        kinds.into_iter().filter(|(flag, _)| self.set(flag)).flat_map(|(_, kinds)| kinds).copied().collect()
    }
}

impl Orchestration {
    /// Checks a form in upstream's order (reference 5.1). `exclusivity_max` is for how long a provider may be kept for one consumer, where quality of
    /// service is managed (option `enable_qos`); other clouds are asked where there is a Gatekeeper.
    pub fn parse(
        form: Authorized<OrchestrationForm>,
        sender: Sender,
        store: StoreKind,
        exclusivity_max: Option<Duration>,
        has_gatekeeper: bool,
    ) -> Result<Self, ArrowheadError> {
        let mut form = form.into_inner();
        let origin = sender.origin();
        let refused = |message: &str| ArrowheadError::bad_payload(message, origin);
        let flags = Flags(form.orchestration_flags.take().unwrap_or_default());
        let requester = SystemReference::parse(form.requester_system.as_ref(), "Requester system", origin)?;
        if form.requested_service.is_none() && (flags.set("overrideStore") || flags.set("triggerInterCloud")) {
            return Err(refused("Requested service can not be null when flag overrideStore or triggerInterCloud is set."));
        }
        let preferred = parse_preferred(form.preferred_providers.as_deref().unwrap_or_default(), origin)?;
        let (local, other_clouds): (Vec<_>, Vec<_>) = preferred.into_iter().partition(|(_, is_local)| *is_local);
        let asks_elsewhere = flags.set("enableInterCloud") || flags.set("triggerInterCloud");
        let preferred_elsewhere = asks_elsewhere && !other_clouds.is_empty();
        if flags.set("onlyPreferred") && local.is_empty() && !preferred_elsewhere {
            return Err(refused("There is no valid preferred provider, but flag onlyPreferred is set."));
        }
        if flags.set("enableQoS")
            && !flags.set("matchmaking")
            && form.commands.as_ref().is_some_and(|commands| commands.contains_key("qosExclusivity"))
        {
            return Err(refused("Command qosExclusivity needs flag matchmaking."));
        }
        let quality = exclusivity_max
            .filter(|_| flags.set("enableQoS"))
            .map(|longest| Quality::parse(form.qos_requirements.as_ref(), form.commands.as_ref(), longest))
            .transpose()?;
        // Upstream's proxies make no external requests: the flag says nothing there.
        let external = flags.set(EXTERNAL_SERVICE_REQUEST) && sender != Sender::Proxy;
        if !has_gatekeeper && (external || flags.set("triggerInterCloud")) {
            return Err(refused("Inter-cloud orchestration is not available: Orchestrator runs in NO GATEKEEPER mode."));
        }
        let requester_cloud = external.then(|| parse_requester_cloud(form.requester_cloud.as_ref(), origin)).transpose()?;
        let elsewhere = (has_gatekeeper && !external).then(|| Elsewhere::parse(&form, &flags, store, quality.as_ref())).flatten();
        let kind = match store {
            _ if external => Kind::Dynamic(Query::parse(&service_form(form, &flags), origin)?),
            _ if flags.set("triggerInterCloud") => Kind::OtherClouds(Query::parse(&service_form(form, &flags), origin)?.definition),
            _ if flags.set("overrideStore") => Kind::Dynamic(Query::parse(&service_form(form, &flags), origin)?),
            StoreKind::Plain => plain_store(form, &flags, origin)?,
            StoreKind::Flexible => flexible_store(form, &flags, origin)?,
        };
        Ok(Self {
            requester,
            asks_rules: match kind {
                Kind::Dynamic(_) | Kind::OtherClouds(_) => sender != Sender::Proxy,
                Kind::StoredService { .. } | Kind::StoredTops(_) => true,
                Kind::Flexible { .. } => false,
            },
            kind,
            matchmaking: flags.set("matchmaking"),
            preferred: local.into_iter().map(|(key, _)| key).collect(),
            only_preferred: flags.set("onlyPreferred"),
            quality,
            requester_cloud,
            deputy: None,
            elsewhere,
            ping_providers: flags.set("pingProviders"),
        })
    }

    /// The same, of which a system of the own cloud carries what is said: whether it is allowed is asked of the requester's cloud, and tokens name that system.
    pub fn carried_by(self, deputy: SystemName) -> Self {
        Self { deputy: Some(deputy), ..self }
    }

    /// All entries of priority 1 of a registered consumer (`GET /orchestration/{id}`).
    pub fn stored_tops(consumer: &System) -> Self {
        Self {
            requester: SystemReference {
                name: consumer.system_name.to_string(),
                address: consumer.address.as_str().to_owned(),
                port: consumer.port,
                key: SystemKey::of(consumer),
            },
            kind: Kind::StoredTops(Vec::new()),
            asks_rules: true,
            matchmaking: false,
            preferred: Vec::new(),
            only_preferred: false,
            quality: None,
            requester_cloud: None,
            deputy: None,
            elsewhere: None,
            ping_providers: false,
        }
    }
}

/// The requested service as the flags have it.
pub(super) fn service_form(form: OrchestrationForm, flags: &Flags) -> ServiceQueryForm {
    let mut service = form.requested_service.unwrap_or_default();
    if !flags.set("metadataSearch") {
        service.metadata_requirements = None;
    }
    service.ping_providers = Some(flags.set("pingProviders"));
    let kinds = flags.address_kinds();
    if !kinds.is_empty() {
        service.provider_address_type_requirements = Some(kinds.into_iter().map(Some).collect());
    }
    service
}

fn plain_store(form: OrchestrationForm, flags: &Flags, origin: &str) -> Result<Kind, ArrowheadError> {
    if form.requested_service.is_none() {
        return Ok(Kind::StoredTops(flags.address_kinds()));
    }
    let service = service_form(form, flags);
    let query = Query::parse(&service, origin)?;
    let mut interfaces = service.interface_requirements.unwrap_or_default();
    if interfaces.len() > 1 {
        return Err(ArrowheadError::invalid_parameter("Exactly one interface requirement is allowed in a store orchestration."));
    }
    let interface = interfaces.pop().flatten().filter(|text| !text.trim().is_empty());
    let interface = interface.ok_or_else(|| ArrowheadError::invalid_parameter("InterfaceRequirement  is null or blank."))?;
    Ok(Kind::StoredService { query, interface })
}

fn flexible_store(form: OrchestrationForm, flags: &Flags, origin: &str) -> Result<Kind, ArrowheadError> {
    let refused = |message: &str| Err(ArrowheadError::invalid_parameter(message));
    if flags.set("enableInterCloud") {
        return refused("The flexible store knows no other clouds: flag enableInterCloud is not allowed.");
    }
    if flags.set("enableQoS") {
        return refused("The flexible store knows no quality of service: flag enableQoS is not allowed.");
    }
    if form.requested_service.is_none() {
        return refused("Requested service is null; the flexible store is asked for one service.");
    }
    let requester_metadata = form.requester_system.as_ref().and_then(|system| system.metadata.as_ref());
    let pairs = requester_metadata.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
    let requester_metadata = Metadata::from(pairs.collect::<BTreeMap<_, _>>());
    let form = service_form(form, flags);
    // Checked here, so that a rule can only narrow what is right.
    Query::parse(&form, origin)?;
    Ok(Kind::Flexible { form, requester_metadata })
}

/// The cloud on behalf of which a Gatekeeper asks.
fn parse_requester_cloud(form: Option<&CloudRequest>, origin: &str) -> Result<CloudCommonName, ArrowheadError> {
    let form = form.ok_or_else(|| ArrowheadError::bad_payload("Requester cloud is null; an external request has one.", origin))?;
    let name = |text: &Option<String>, what: &str| {
        let refused = |error| ArrowheadError::bad_payload(format!("Requester cloud: {what} {error}"), origin);
        CloudName::parse(text.as_deref().unwrap_or_default()).map_err(refused)
    };
    Ok(CloudCommonName { operator: name(&form.operator, "operator")?, cloud: name(&form.name, "name")? })
}

/// Keys of the preferred providers, with whether each is of this cloud.
fn parse_preferred(forms: &[Option<PreferredProvider>], origin: &str) -> Result<Vec<(SystemKey, bool)>, ArrowheadError> {
    let parse = |form: &PreferredProvider| {
        let reference = SystemReference::parse(form.provider_system.as_ref(), "Preferred provider system", origin)?;
        Ok((reference.key, form.provider_cloud.is_none()))
    };
    forms.iter().flatten().map(parse).collect()
}
