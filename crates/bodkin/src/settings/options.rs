//! Every option of `bodkin up`, with its words and its default.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    time::Duration,
};

use bodkin_arrowhead::orchestrator::StoreKind;
use bodkin_host::{AUDIT_LIMITS, EventLogLimits, HostConfig, realtime::Scheduling};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::{DEFAULT_DATA, announced, fleet::FleetTable, pair, zmtp};
use crate::topic_file::TopicFile;

/// What the event log keeps by default.
const EVENT_LOG: EventLogLimits = EventLogLimits { bytes_max: 1 << 30, age_max: Duration::from_secs(7 * 24 * 3600) };

macro_rules! settings {
    ($($(#[doc = $help:literal])* $(@$kind:ident)? $name:ident: $type:ty = $env:literal,)*) => {
        /// What was typed: every option, present or not.
        #[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Settings {
            $(
                $(#[doc = $help])*
                #[arg(long, env = $env, hide_env_values = settings!(@hides $($kind)?), value_name = settings!(@value $($kind)?), num_args = settings!(@count $($kind)?), default_missing_value = settings!(@missing $($kind)?), value_delimiter = settings!(@delimiter $($kind)?))]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<$type>,
            )*
            /// What real-time topics count on; a table of the file only.
            #[arg(skip)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(super) platform: Option<toml::Value>,
            /// Which events go on to a fleet's stream; a table of the file only.
            #[arg(skip)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(super) fleet: Option<FleetTable>,
            /// Real-time topics; tables of the file only.
            #[arg(skip)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(super) topic: Option<toml::Value>,
            /// What both say.
            #[arg(skip)]
            #[serde(skip)]
            pub(super) declared: Option<TopicFile>,
        }

        impl Settings {
            /// Takes what is absent here from `other`.
            pub(super) fn or(self, other: Self) -> Self {
                // Topics were checked with the platform of their own file.
                let (platform, topic, declared) = match self.declared {
                    Some(_) => (self.platform, self.topic, self.declared),
                    None => (other.platform, other.topic, other.declared),
                };
                let fleet = self.fleet.or(other.fleet);
                Self { $($name: self.$name.or(other.$name),)* platform, fleet, topic, declared }
            }
        }
    };
    (@hides secret) => { true };
    (@hides $($kind:ident)?) => { false };
    (@value secret) => { "VALUE" };
    (@count secret) => { 1 };
    (@missing secret) => { "" };
    (@value flag) => { "true|false" };
    (@value list) => { "VALUE,..." };
    (@value) => { "VALUE" };
    (@delimiter list) => { ',' };
    (@delimiter $($other:ident)?) => { None::<char> };
    (@count list) => { 1 };
    (@missing list) => { "" };
    (@count flag) => { 0..=1 };
    (@count) => { 1 };
    (@missing flag) => { "true" };
    (@missing) => { "" };
}

settings! {
    /// Serve without certificates and access control. On loopback, unless --listen says otherwise
    @flag insecure: bool = "BODKIN_INSECURE",
    /// Directory of the database and other state
    data: PathBuf = "BODKIN_DATA",
    /// Database that several nodes of one cloud share: postgres://USER:PASSWORD@HOST:PORT/DATABASE; empty: this node's own, in the data directory
    @secret database: String = "BODKIN_DATABASE",
    /// With a shared database: NATS, by which best-effort events go from node to node: nats://USER:PASSWORD@HOST:PORT,HOST:PORT (tls:// in TLS); empty: they do not
    @secret node_events: String = "BODKIN_NODE_EVENTS",
    /// Certificates (PEM) of the authorities that NATS between nodes is believed by, where it is tls://; empty: none
    node_events_trust_file: PathBuf = "BODKIN_NODE_EVENTS_TRUST_FILE",
    /// File with the seed of the key (an nkey) that NATS between nodes knows this one by, instead of a user in the URL; only its owner may read it. Empty: none
    node_events_key_file: PathBuf = "BODKIN_NODE_EVENTS_KEY_FILE",
    /// Client certificate (PEM) that this node presents to NATS servers in TLS, followed by those that lead to its CA; a renewed file is used for the next connection. Empty: none
    node_events_certificate_file: PathBuf = "BODKIN_NODE_EVENTS_CERTIFICATE_FILE",
    /// File with the private key (PEM, not encrypted) of that certificate; only its owner may read it. Empty: none
    node_events_certificate_key_file: PathBuf = "BODKIN_NODE_EVENTS_CERTIFICATE_KEY_FILE",
    /// Stream of JetStream that keeps events between nodes, so that a node or subscriber that was away gets what it has missed; empty: none, and events cross at most once
    node_events_stream: String = "BODKIN_NODE_EVENTS_STREAM",
    /// Servers that have that stream where it is not there and is made, 1 to 5; 0: somebody else makes it
    node_events_replicas: u8 = "BODKIN_NODE_EVENTS_REPLICAS",
    /// Bytes that it may have then; its oldest messages go first
    node_events_bytes_max: u64 = "BODKIN_NODE_EVENTS_BYTES_MAX",
    /// How long it keeps a message then, in seconds
    node_events_age_max_s: u64 = "BODKIN_NODE_EVENTS_AGE_MAX_S",
    /// With a shared database: the Service Registries (HOST:PORT) of the reliable pair that serves this plant's real-time topics and graphs, to which clients are sent
    @list realtime_at: Vec<String> = "BODKIN_REALTIME_AT",
    /// Take data over that was written in the other mode, secure or insecure, as it is
    @flag adopt_data: bool = "BODKIN_ADOPT_DATA",
    /// Directory of certificates and keys, filled if it is not there; empty: trust in the data directory
    trust: PathBuf = "BODKIN_TRUST",
    /// Folder of the core systems' existing key stores, NAME.p12 each, to be used instead; empty: none
    key_stores: PathBuf = "BODKIN_KEY_STORES",
    /// Key store with the certificate of the cloud's authority, to be used with them
    trust_store: PathBuf = "BODKIN_TRUST_STORE",
    /// File with the password of all of them, readable to its owner only
    key_store_password_file: PathBuf = "BODKIN_KEY_STORE_PASSWORD_FILE",
    /// File whose first line opens the authority's key where that is encrypted; only its owner may read it. Empty: the variable BODKIN_CA_PASSPHRASE
    passphrase_file: PathBuf = "BODKIN_CA_PASSPHRASE_FILE",
    /// Certificates (PEM) of authorities for devices, which may come to a certificate by onboarding; empty: none
    device_authorities: PathBuf = "BODKIN_DEVICE_AUTHORITIES",
    /// The cloud's name in its certificates, <cloud>.<operator>.arrowhead.eu; empty: the one they have, in new ones "local"
    cloud: String = "BODKIN_CLOUD",
    /// Who runs the cloud, in the same place; empty: the one they have, in new ones "bodkin"
    operator: String = "BODKIN_OPERATOR",
    /// Subscribers' certificates must be made out for the address that they registered (Arrowhead's disable.hostname.verifier is the contrary)
    @flag verify_host_names: bool = "BODKIN_VERIFY_HOST_NAMES",
    /// Every system may end the subscriptions of other systems, as in the Java cloud; otherwise only the subscriber and the operator. In secure mode
    @flag unsubscribe_by_any: bool = "BODKIN_UNSUBSCRIBE_BY_ANY",
    /// IP address to listen on
    listen: IpAddr = "BODKIN_LISTEN",
    /// Host name or IP address under which the core systems are registered; empty: the listening address
    domain_name: String = "BODKIN_DOMAIN_NAME",
    /// Further names, separated by commas, under which clients call; addresses and names without a dot need none, * takes all
    @list host_names: Vec<String> = "BODKIN_HOST_NAMES",
    /// Origins, separated by commas, whose web pages may call, such as http://localhost:3000; the own dashboard always may
    @list cors_origins: Vec<String> = "BODKIN_CORS_ORIGINS",
    /// The origin of Arrowhead's management web tool, whose pages may call as well; empty: none
    management_tool_origin: String = "BODKIN_MANAGEMENT_TOOL_ORIGIN",
    /// Added to every standard port (8443 Service Registry, 8445 Authorization, 8441 Orchestrator, 8455 Event Handler, 8440 health and metrics, 5570 ZMTP)
    port_offset: u16 = "BODKIN_PORT_OFFSET",
    /// Let the system choose every port
    @flag any_port: bool = "BODKIN_ANY_PORT",
    /// Serve ZMTP on port 5570, and on the path of zmtp_ipc
    @flag zmtp: bool = "BODKIN_ZMTP",
    /// The system as which ZMTP peers publish that do not say who they are: PUB, PUSH, and REQ without a routing id; empty: they may not
    zmtp_system: String = "BODKIN_ZMTP_SYSTEM",
    /// Unix socket on which ZMTP is spoken as on the port (ipc://PATH); auto: zmtp.ipc in the data directory; empty: none
    zmtp_ipc: String = "BODKIN_ZMTP_IPC",
    /// Who may come there: owner, processes of Bodkin's user, or group, those of its group as well
    zmtp_ipc_access: String = "BODKIN_ZMTP_IPC_ACCESS",
    /// IP address and port of a relay inside this cloud, where it and the clouds that it knows meet, such as 0.0.0.0:5573; empty: there is none. In secure mode
    relay_listen: String = "BODKIN_RELAY_LISTEN",
    /// File with a line HOST:PORT NAME PASSCODE for each relay that asks for them, readable to its owner only; empty: none
    relay_logins: PathBuf = "BODKIN_RELAY_LOGINS",
    /// Service definitions must be 1 to 63 letters, digits and dashes
    @flag use_strict_service_definition_verifier: bool = "BODKIN_USE_STRICT_SERVICE_DEFINITION_VERIFIER",
    /// Interface names must be HTTP or HTTPS with JSON or XML
    @flag use_strict_service_intf_name_verifier: bool = "BODKIN_USE_STRICT_SERVICE_INTF_NAME_VERIFIER",
    /// Systems may register 127.x, ::1, localhost and loopback
    @flag allow_self_addressing: bool = "BODKIN_ALLOW_SELF_ADDRESSING",
    /// Systems may register 169.254.x and fe80::
    @flag allow_non_routable_addressing: bool = "BODKIN_ALLOW_NON_ROUTABLE_ADDRESSING",
    /// Systems that register without a valid address get that of their connection
    @flag use_network_address_detector: bool = "BODKIN_USE_NETWORK_ADDRESS_DETECTOR",
    /// IP addresses of proxies, separated by commas, whose Forwarded and X-Forwarded-For headers tell that address
    @list filter_proxy_addresses: Vec<String> = "BODKIN_FILTER_PROXY_ADDRESSES",
    /// Remove services past their end of validity
    @flag ttl_scheduled: bool = "BODKIN_TTL_SCHEDULED",
    /// Minutes between two looks for them
    ttl_interval_min: u64 = "BODKIN_TTL_INTERVAL_MIN",
    /// Connect to every provider now and then, and remove the services of those that do not accept
    @flag ping_scheduled: bool = "BODKIN_PING_SCHEDULED",
    /// Minutes between two connections to the same provider
    ping_interval_min: u64 = "BODKIN_PING_INTERVAL_MIN",
    /// Connect as well, but only to show who does not accept
    @flag probe_services: bool = "BODKIN_PROBE_SERVICES",
    /// Seconds after which services are removed that are past their end of validity or do not accept; 0: never
    deregister_after_s: u64 = "BODKIN_DEREGISTER_AFTER_S",
    /// Remove subscriptions past their end date
    @flag event_handler_ttl_scheduled: bool = "BODKIN_EVENT_HANDLER_TTL_SCHEDULED",
    /// Minutes between two looks for them
    event_handler_ttl_interval_min: u64 = "BODKIN_EVENT_HANDLER_TTL_INTERVAL_MIN",
    /// Milliseconds a pinged provider may take to accept a connection
    ping_timeout_ms: u64 = "BODKIN_PING_TIMEOUT_MS",
    /// Serve the Orchestrator's flexible store in place of its plain one
    @flag use_flexible_store: bool = "BODKIN_USE_FLEXIBLE_STORE",
    /// Measure how fast and how reliably providers answer, and heed what orchestrations require of that
    @flag enable_qos: bool = "BODKIN_ENABLE_QOS",
    /// Seconds between two measurements of a provider
    qos_measurement_interval_s: u64 = "BODKIN_QOS_MEASUREMENT_INTERVAL_S",
    /// Seconds between two removals of reservations that are over
    qos_reservation_check_interval_s: u64 = "BODKIN_QOS_RESERVATION_CHECK_INTERVAL_S",
    /// Seconds a provider is held while a consumer chooses one of several
    qos_reservation_temp_lock_duration_s: u64 = "BODKIN_QOS_RESERVATION_TEMP_LOCK_DURATION_S",
    /// Seconds a reservation lasts at the most
    qos_maximum_reservation_duration_s: u64 = "BODKIN_QOS_MAXIMUM_RESERVATION_DURATION_S",
    /// Minutes for which tokens count, those of orchestrations and those for which no time is asked
    auth_token_ttl_in_minutes: u64 = "BODKIN_AUTH_TOKEN_TTL_IN_MINUTES",
    /// Minutes for which tokens count at the most, whatever time is asked for
    auth_token_ttl_max_in_minutes: u64 = "BODKIN_AUTH_TOKEN_TTL_MAX_IN_MINUTES",
    /// Providers, by system name and separated by commas, whose tokens have no expiry, because they refuse tokens that have one (Kalix)
    @list tokens_without_expiry_for: Vec<String> = "BODKIN_TOKENS_WITHOUT_EXPIRY_FOR",
    /// Open connections, on the Event Handler's port, on the ZMTP port and on all others; one more is answered 503, or closed
    connections_max: usize = "BODKIN_CONNECTIONS_MAX",
    /// Open connections of one client in each of these groups: of a certificate, or of an address without one; 0: half of them
    client_connections_max: usize = "BODKIN_CLIENT_CONNECTIONS_MAX",
    /// Systems, services and subscriptions that one system registers itself; one more is answered 503
    owner_rows_max: u64 = "BODKIN_OWNER_ROWS_MAX",
    /// Bytes of what one system registers itself
    owner_bytes_max: u64 = "BODKIN_OWNER_BYTES_MAX",
    /// Milliseconds a client may take for its part of a TLS handshake
    handshake_timeout_ms: u64 = "BODKIN_HANDSHAKE_TIMEOUT_MS",
    /// Milliseconds from a request's first byte to the end of its headers
    header_timeout_ms: u64 = "BODKIN_HEADER_TIMEOUT_MS",
    /// Further milliseconds, behind those of the headers, to the end of a request's body
    body_timeout_ms: u64 = "BODKIN_BODY_TIMEOUT_MS",
    /// Milliseconds an open connection may stay without a request
    idle_timeout_ms: u64 = "BODKIN_IDLE_TIMEOUT_MS",
    /// Milliseconds a client may take to accept an answer
    send_timeout_ms: u64 = "BODKIN_SEND_TIMEOUT_MS",
    /// Milliseconds an event stream's client may take nothing of what is queued for it
    stream_stall_timeout_ms: u64 = "BODKIN_STREAM_STALL_TIMEOUT_MS",
    /// Milliseconds without anything sent on an event stream before a heartbeat is
    heartbeat_ms: u64 = "BODKIN_HEARTBEAT_MS",
    /// Bytes of a request's body
    body_bytes_max: usize = "BODKIN_BODY_BYTES_MAX",
    /// Bytes of the body of a request to the Event Handler
    event_bytes_max: usize = "BODKIN_EVENT_BYTES_MAX",
    /// Event streams and topics that ZMTP subscribers hear, and as many subscriptions by push
    subscriptions_max: usize = "BODKIN_SUBSCRIPTIONS_MAX",
    /// Event types in use; a new one replaces one without subscriptions, and is answered 503 if there is none
    event_types_max: usize = "BODKIN_EVENT_TYPES_MAX",
    /// Keep every accepted event in a log, so that who was away can have what it missed
    @flag event_log: bool = "BODKIN_EVENT_LOG",
    /// Bytes the event log keeps; beyond, the oldest events go
    event_log_bytes_max: u64 = "BODKIN_EVENT_LOG_BYTES_MAX",
    /// Seconds the event log keeps an event
    event_log_age_max_s: u64 = "BODKIN_EVENT_LOG_AGE_MAX_S",
    /// Event types, separated by commas, whose publishers are answered when the event is synced to the disk
    @list durable_event_types: Vec<String> = "BODKIN_DURABLE_EVENT_TYPES",
    /// Bytes the audit log keeps; beyond, the oldest entries go
    audit_bytes_max: u64 = "BODKIN_AUDIT_BYTES_MAX",
    /// Seconds the audit log keeps an entry
    audit_age_max_s: u64 = "BODKIN_AUDIT_AGE_MAX_S",
    /// Log entries that are kept for /mgmt/logs; beyond, the oldest go
    log_entries_max: u64 = "BODKIN_LOG_ENTRIES_MAX",
    /// Services announced by multicast DNS where the cloud listens (DNS-SD, type _arrowhead._tcp): off, cloud, those of the core systems, or services, all
    dns_sd: String = "BODKIN_DNS_SD",
    /// Collector that is told of traces by OTLP/HTTP in JSON, such as http://127.0.0.1:4318; empty: none, and traces are handed on only
    otlp_url: String = "BODKIN_OTLP_URL",
    /// Of requests that name no trace, one in so many begins one; 0: none does
    trace_one_in: u64 = "BODKIN_TRACE_ONE_IN",
    /// Bytes queued for a subscriber, for all topics of a ZMTP one; events beyond are lost, counted and told
    subscriber_queue_bytes_max: u64 = "BODKIN_SUBSCRIBER_QUEUE_BYTES_MAX",
    /// Milliseconds a subscriber may take to accept a pushed event
    push_timeout_ms: u64 = "BODKIN_PUSH_TIMEOUT_MS",
    /// Milliseconds another cloud's gatekeeper may take for each step of a dialogue
    neighbor_timeout_ms: u64 = "BODKIN_NEIGHBOR_TIMEOUT_MS",
    /// Let consumers of other clouds reach providers of this one by tunnels of gateways only
    @flag gateway_is_mandatory: bool = "BODKIN_GATEWAY_IS_MANDATORY",
    /// First port at which consumers of this cloud reach tunnels; moved by --port-offset
    gateway_min_port: u16 = "BODKIN_GATEWAY_MIN_PORT",
    /// Last of them: as many tunnels may be open at a time
    gateway_max_port: u16 = "BODKIN_GATEWAY_MAX_PORT",
    /// Maximum number of these ports that one consumer holds; 0: half of them
    gateway_ports_per_consumer: usize = "BODKIN_GATEWAY_PORTS_PER_CONSUMER",
    /// Milliseconds without a connection after which a tunnel is closed; with one, the other gateway may be silent for half of it
    gateway_idle_timeout_ms: u64 = "BODKIN_GATEWAY_IDLE_TIMEOUT_MS",
    /// For measurements: JSON file with what other clouds are answered whatever they ask, by what it is about: gsd_poll, icn_proposal; empty: none
    fixed_answers: PathBuf = "BODKIN_FIXED_ANSWERS",
    /// Refusals (4xx) after which a pushed event is a dead letter
    push_attempts_max: u32 = "BODKIN_PUSH_ATTEMPTS_MAX",
    /// Failures in a row after which a subscriber is only probed now and then
    push_breaker_failures: u32 = "BODKIN_PUSH_BREAKER_FAILURES",
    /// Milliseconds, at the most, behind a first failure; doubled with each further one
    push_backoff_min_ms: u64 = "BODKIN_PUSH_BACKOFF_MIN_MS",
    /// Milliseconds, at the most, behind any failure
    push_backoff_max_ms: u64 = "BODKIN_PUSH_BACKOFF_MAX_MS",
    /// Seconds of trying without a success after which what waits for a subscriber is dead letters
    push_give_up_s: u64 = "BODKIN_PUSH_GIVE_UP_S",
    /// Rows of dead letters that are kept; beyond, the oldest go
    dead_letters_max: usize = "BODKIN_DEAD_LETTERS_MAX",
    /// Which node of a reliable pair this is, primary or backup; empty: a cloud by itself
    role: String = "BODKIN_ROLE",
    /// Primary: HOST:PORT where the Backup listens for it
    peer: String = "BODKIN_PEER",
    /// HOST:PORT where the pair's witness listens; empty: there is none, and the Primary leads whenever it runs
    witness: String = "BODKIN_WITNESS",
    /// Backup: IP address and port where it listens for the Primary
    pair_listen: String = "BODKIN_PAIR_LISTEN",
    /// When events go to the Backup: lazy, as late as their topics allow; for measurements eager, at once, or periodic, which keeps no bound on losses
    replication: String = "BODKIN_REPLICATION",
    /// Milliseconds between two rounds of periodic replication
    replication_period_ms: u64 = "BODKIN_REPLICATION_PERIOD_MS",
    /// For measurements: events of each publisher and topic that the Backup keeps although they are covered, and hands over again when it leads
    backup_keeps: u32 = "BODKIN_BACKUP_KEEPS",
    /// Graph files, separated by commas, whose event-processing graphs run from the start
    @list graphs: Vec<String> = "BODKIN_GRAPHS",
    /// Directory with the keys that operators of graphs name, NAME.key each: 32 bytes, readable to their owner only; empty: none
    graph_keys: PathBuf = "BODKIN_GRAPH_KEYS",
    /// What this host is called in graph files over several hosts, of which it runs its part; empty: it has none
    edge: String = "BODKIN_EDGE",
    /// Where other edges of graph files over several hosts speak ZMTP, separated by commas: NAME=ADDRESS:PORT, of a pair NAME=ADDRESS:PORT+ADDRESS:PORT, in secure mode followed by a space and the public key of the port
    @list edges: Vec<String> = "BODKIN_EDGES",
    /// File with the own pair of CURVE keys, with which other edges in secure mode are asked for what graphs need from there; empty: none
    edge_curve: PathBuf = "BODKIN_EDGE_CURVE",
    /// How threads of the data plane run: auto (real-time threads, SCHED_FIFO, where allowed and measured to be woken sooner), fifo (where allowed), default
    scheduling: Scheduling = "BODKIN_SCHEDULING",
    /// Cores, separated by commas, to which they are pinned; none: any core
    @list pin_cores: Vec<usize> = "BODKIN_PIN_CORES",
    /// Keep all memory in memory, where that is allowed without a limit
    @flag lock_memory: bool = "BODKIN_LOCK_MEMORY",
}

impl Settings {
    /// The defaults, every option present.
    pub fn defaults() -> Self {
        let host = HostConfig::on_loopback(DEFAULT_DATA);
        let (limits, naming, orchestrator, tokens) = (host.limits, host.naming, host.orchestrator, host.token_lifetimes);
        let ms = |duration: Duration| Some(u64::try_from(duration.as_millis()).expect("a default is short"));
        Self {
            insecure: Some(false),
            data: Some(DEFAULT_DATA.into()),
            database: Some(String::new()),
            node_events: Some(String::new()),
            node_events_trust_file: Some(PathBuf::new()),
            node_events_key_file: Some(PathBuf::new()),
            node_events_certificate_file: Some(PathBuf::new()),
            node_events_certificate_key_file: Some(PathBuf::new()),
            node_events_stream: Some(String::new()),
            node_events_replicas: Some(0),
            node_events_bytes_max: Some(EVENT_LOG.bytes_max),
            node_events_age_max_s: Some(EVENT_LOG.age_max.as_secs()),
            realtime_at: Some(Vec::new()),
            adopt_data: Some(false),
            trust: Some(PathBuf::new()),
            key_stores: Some(PathBuf::new()),
            trust_store: Some(PathBuf::new()),
            key_store_password_file: Some(PathBuf::new()),
            passphrase_file: Some(PathBuf::new()),
            device_authorities: Some(PathBuf::new()),
            cloud: Some(String::new()),
            operator: Some(String::new()),
            verify_host_names: Some(true),
            unsubscribe_by_any: Some(host.unsubscribe_by_any),
            listen: Some(Ipv4Addr::LOCALHOST.into()),
            domain_name: Some(String::new()),
            host_names: Some(Vec::new()),
            cors_origins: Some(Vec::new()),
            management_tool_origin: Some(String::new()),
            port_offset: Some(0),
            any_port: Some(false),
            zmtp: Some(true),
            zmtp_system: Some(String::new()),
            zmtp_ipc: Some(zmtp::AUTO.into()),
            zmtp_ipc_access: Some(zmtp::OWNER.into()),
            relay_listen: Some(String::new()),
            relay_logins: Some(PathBuf::new()),
            use_strict_service_definition_verifier: Some(naming.strict_service_definition),
            use_strict_service_intf_name_verifier: Some(naming.strict_interface_name),
            allow_self_addressing: Some(naming.allow_self_addressing),
            allow_non_routable_addressing: Some(naming.allow_non_routable_addressing),
            use_network_address_detector: Some(false),
            filter_proxy_addresses: Some(Vec::new()),
            ttl_scheduled: Some(false),
            ttl_interval_min: Some(10),
            ping_scheduled: Some(false),
            ping_interval_min: Some(60),
            probe_services: Some(false),
            deregister_after_s: Some(0),
            event_handler_ttl_scheduled: Some(false),
            event_handler_ttl_interval_min: Some(60),
            ping_timeout_ms: ms(host.ping_timeout),
            use_flexible_store: Some(orchestrator.store == StoreKind::Flexible),
            enable_qos: Some(orchestrator.quality_interval.is_some()),
            qos_measurement_interval_s: Some(30),
            qos_reservation_check_interval_s: Some(orchestrator.reservation_check_interval.as_secs()),
            qos_reservation_temp_lock_duration_s: Some(orchestrator.reservations.lock.as_secs()),
            qos_maximum_reservation_duration_s: Some(orchestrator.reservations.maximum.as_secs()),
            auth_token_ttl_in_minutes: Some(tokens.default.as_secs() / 60),
            auth_token_ttl_max_in_minutes: Some(tokens.maximum.as_secs() / 60),
            tokens_without_expiry_for: Some(Vec::new()),
            connections_max: Some(limits.connections_max),
            client_connections_max: Some(limits.client_connections_max),
            owner_rows_max: Some(limits.owner_rows_max),
            owner_bytes_max: Some(limits.owner_bytes_max),
            handshake_timeout_ms: ms(limits.handshake_timeout),
            header_timeout_ms: ms(limits.header_timeout),
            body_timeout_ms: ms(limits.body_timeout),
            idle_timeout_ms: ms(limits.idle_timeout),
            send_timeout_ms: ms(limits.send_timeout),
            stream_stall_timeout_ms: ms(limits.stream_stall_timeout),
            heartbeat_ms: ms(limits.heartbeat),
            body_bytes_max: Some(limits.body_bytes_max),
            event_bytes_max: Some(limits.event_bytes_max),
            subscriptions_max: Some(limits.subscriptions_max),
            event_types_max: Some(limits.event_types_max),
            event_log: Some(true),
            event_log_bytes_max: Some(EVENT_LOG.bytes_max),
            event_log_age_max_s: Some(EVENT_LOG.age_max.as_secs()),
            durable_event_types: Some(Vec::new()),
            audit_bytes_max: Some(AUDIT_LIMITS.bytes_max),
            audit_age_max_s: Some(AUDIT_LIMITS.age_max.as_secs()),
            log_entries_max: Some(host.log_entries_max),
            dns_sd: Some(announced::OFF.into()),
            otlp_url: Some(String::new()),
            trace_one_in: Some(0),
            subscriber_queue_bytes_max: Some(limits.subscriber_queue_bytes_max),
            push_timeout_ms: ms(limits.push_timeout),
            neighbor_timeout_ms: ms(limits.neighbor_timeout),
            gateway_is_mandatory: Some(host.gateway_is_mandatory),
            gateway_min_port: Some(8000),
            gateway_max_port: Some(8100),
            gateway_ports_per_consumer: Some(0),
            gateway_idle_timeout_ms: ms(limits.tunnel_idle_timeout),
            fixed_answers: Some(PathBuf::new()),
            push_attempts_max: Some(limits.delivery.attempts_max),
            push_breaker_failures: Some(limits.delivery.breaker_failures),
            push_backoff_min_ms: ms(limits.delivery.backoff_min),
            push_backoff_max_ms: ms(limits.delivery.backoff_max),
            push_give_up_s: Some(limits.delivery.give_up.as_secs()),
            dead_letters_max: Some(limits.dead_letters_max),
            role: Some(String::new()),
            peer: Some(String::new()),
            witness: Some(String::new()),
            pair_listen: Some(pair::PAIR_LISTEN.into()),
            replication: Some(pair::LAZY.into()),
            replication_period_ms: Some(25),
            backup_keeps: Some(0),
            graphs: Some(Vec::new()),
            graph_keys: Some(PathBuf::new()),
            edge: Some(String::new()),
            edges: Some(Vec::new()),
            edge_curve: Some(PathBuf::new()),
            scheduling: Some(Scheduling::Auto),
            pin_cores: Some(Vec::new()),
            lock_memory: Some(true),
            platform: None,
            fleet: None,
            topic: None,
            declared: None,
        }
    }
}
