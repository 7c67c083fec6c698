//! Operations of Bodkin's own port (`docs/formats/monitor.md`).

use super::description::{Content, Description, Tag::Bodkin, act, delete, get, post};

/// A row each.
pub const OPERATIONS: &[Description] = &[
    get(Bodkin, "healthz", "", "Whether the process answers.").saying(Content::Text),
    get(Bodkin, "readyz", "", "Whether every listener answers and, of a node of a reliable pair, whether it leads.").saying(Content::Text),
    get(Bodkin, "metrics", "", "Prometheus's text form.").saying(Content::Text),
    get(Bodkin, "asyncapi.json", "any", "Which events can be published and heard, and how: AsyncAPI 3.0, made of the topics as they are."),
    get(Bodkin, "api/v1/overview", "Overview", "This node at a glance, and what it measures."),
    get(Bodkin, "api/v1/live", "", "What has changed of some lists, as events: each part at the begin, and again when it is another.")
        .asking(&["of text - paths of the parts, with commas between them"])
        .saying(Content::Events),
    get(Bodkin, "api/v1/stages", "Stages", "Histograms of the stages of an answer's making."),
    get(Bodkin, "api/v1/stages/fits", "StageFits", "Laws fitted to what a stage has taken since the start.")
        .asking(&["system text - a core system, as in /api/v1/stages", "stage text"]),
    get(Bodkin, "api/v1/reports", "Page[ShelfFile]", "Reports of measurements in the data directory's folder reports, the newest first."),
    get(Bodkin, "api/v1/reports/{name}", "any", "A report, as it was written."),
    get(
        Bodkin,
        "api/v1/models",
        "Page[ShelfFile]",
        "Files of nets and predictions in the data directory's folder models, the newest first.",
    ),
    get(Bodkin, "api/v1/models/{name}", "any", "A file of a net or of predictions, as it was written."),
    get(Bodkin, "api/v1/models/{name}/drawing", "", "A net, drawn.").saying(Content::Drawing),
    get(Bodkin, "api/v1/platform", "Platform", "What deadlines and leases count on, and what this machine shows of it."),
    get(
        Bodkin,
        "api/v1/nodes",
        "Page[NodeState]",
        "The nodes that serve this cloud from a database that they share; none of a cloud with a database of its own.",
    ),
    get(Bodkin, "api/v1/nodes/events", "NodeEvents", "Whether events go from node to node by the stream that keeps them.")
        .absent("Events between nodes go by no stream."),
    act("api/v1/pair/hand-over", "HandedOver", "Has the other node of a reliable pair lead; answers when it does."),
    get(Bodkin, "api/v1/event-log", "EventLog", "What the event log holds."),
    get(Bodkin, "api/v1/services", "Page[ServiceLife]", "Which services may still be there.")
        .asking(&["page? int - from 0; together with item_per_page", "item_per_page? int - below 1: all"]),
    get(
        Bodkin,
        "api/v1/quality",
        "Page[ServiceQuality]",
        "How good services and their providers were measured to be, where quality of service is managed.",
    )
    .asking(&["page? int - from 0; together with item_per_page", "item_per_page? int - below 1: all"]),
    post(Bodkin, "api/v1/services/query", "ServiceQueryForm", "ServiceQueryResult", "Which services fit, whoever may use them."),
    get(Bodkin, "api/v1/subscriptions", "Page[Delivery]", "How the delivery to each pushed subscription goes."),
    get(Bodkin, "api/v1/subscriptions/{id}", "Delivery", "How the delivery to a pushed subscription goes."),
    act("api/v1/subscriptions/{id}/pause", "Delivery", "Holds a subscription's events back."),
    act("api/v1/subscriptions/{id}/resume", "Delivery", "Lets a subscription's events go."),
    get(Bodkin, "api/v1/dead-letters", "Page[DeadLetter]", "Pushed events that were given up.").asking(&[
        "subscription? id",
        "page? int",
        "item_per_page? int - 100 if absent, 10000 at the most",
    ]),
    delete(Bodkin, "api/v1/dead-letters", "Removes dead letters.")
        .asking(&["subscription? id - of all, if absent"])
        .saying(Content::Json("Removed")),
    act("api/v1/dead-letters/replay", "Replayed", "Delivers dead letters once more.")
        .asking(&["subscription? id - of all that are not paused, if absent"]),
    get(Bodkin, "api/v1/authorization/explain", "Explanation", "Why a consumer may or may not use a service.").asking(&[
        "consumer? name - or id; either it or cloud is given",
        "cloud? name - OPERATOR/NAME of another cloud",
        "service name",
        "interface? [name] - one or several",
        "provider? name - or id",
    ]),
    post(Bodkin, "api/v1/orchestration", "OrchestrationForm", "ExplainedOrchestration", "What a consumer would be given, and why.")
        .asking(&["explain? bool"]),
    get(Bodkin, "api/v1/access/explain", "AccessExplanation", "Whether a caller may make a request, rule by rule.").asking(&[
        "caller name - a system's, or a whole common name",
        "path name",
        "method? GET|POST|PUT|PATCH|DELETE - GET if absent",
        "system? name - in whose name the request is",
        "service? name - the service definition it is about",
        "external? bool - on behalf of another cloud",
    ]),
    post(Bodkin, "api/v1/onboarding", "OnboardingForm", "Onboarded", "Gives a new system the certificate that a grant allows.")
        .created()
        .needing_keys(),
    get(Bodkin, "api/v1/onboarding/grants", "Page[OnboardingGrant]", "Who may come to a certificate.").needing_keys(),
    post(Bodkin, "api/v1/onboarding/grants", "OnboardingGrantForm", "OnboardingGrant", "Grants certificates to new systems.")
        .created()
        .needing_keys(),
    delete(Bodkin, "api/v1/onboarding/grants/{id}", "Takes a grant back.").needing_keys(),
    get(Bodkin, "api/v1/clouds/introduction", "Introduction", "What another cloud's operator needs to know of this one.").needing_keys(),
    get(Bodkin, "api/v1/clouds/relays", "Page[RelayState]", "How it is with the connections to relays.").needing_keys(),
    get(
        Bodkin,
        "api/v1/clouds/heard-events",
        "Page[HeardEvents]",
        "Which event types are accepted of other clouds, and what has come of what they share.",
    )
    .needing_keys(),
    post(
        Bodkin,
        "api/v1/clouds/{id}/shared-events",
        "ShareForm",
        "Share",
        "Shares an event type with another cloud: a subscription whose events go there by the relay.",
    )
    .created()
    .needing_keys(),
    post(
        Bodkin,
        "api/v1/clouds/{id}/accepted-events",
        "AcceptForm",
        "Accepted",
        "Takes events of a type that another cloud shares with this one; what is not accepted is refused.",
    )
    .created()
    .needing_keys(),
    delete(Bodkin, "api/v1/clouds/{id}/accepted-events", "Takes events of a type from another cloud no more.")
        .asking(&["event_type text"])
        .needing_keys(),
    act("api/v1/clouds/{id}/ping", "PingedCloud", "Asks another cloud's gatekeeper whether it is there.").needing_keys(),
    act(
        "api/v1/clouds/{id}/relay-test",
        "RelayTestReport",
        "Tests a relay together with another cloud: messages there and back, of each side.",
    )
    .asking(&["relay? int - id of a relay that both clouds know; one by which the other cloud's gatekeeper is called if absent"])
    .needing_keys(),
    get(Bodkin, "api/v1/certificates", "Page[IssuedCertificate]", "What the cloud's authority has issued, the newest first.")
        .asking(&["state? valid|expired|revoked", "page? int - from 0", "item_per_page? int - 1000 if absent, 10000 at the most"])
        .needing_keys(),
    act("api/v1/certificates/{serial}/revoke", "IssuedCertificate", "Revokes a certificate.").needing_keys(),
    get(Bodkin, "api/v1/clouds", "Page[NeighbourCloud]", "This cloud, and others that it knows."),
    get(
        Bodkin,
        "api/v1/gateway-sessions",
        "Page[GatewaySession]",
        "Tunnels to and from other clouds, those that have ended last among them.",
    ),
    get(Bodkin, "api/v1/relays", "Page[RelayRow]", "Where clouds meet."),
    get(Bodkin, "api/v1/audit", "AuditLog", "Entries of the audit log: the newest, or those from a number on.").asking(&[
        "from? int - number of the first entry",
        "since? time - not earlier",
        "until? time - not later",
        "kind? start|stop|change|denial|certificate|token|orchestration|torn|damaged|truncated|gap|removed",
        "caller? text - a part of the caller's name",
        "count? int - 100 if absent, 1000 at the most",
        "node? text - of nodes that share a database, the newest entries of this one's log, or of all (all), in the order of their times; not with from",
    ]),
    get(Bodkin, "api/v1/audit/chains", "Page[AuditChain]", "Of nodes that share a database: whether the log of each is whole, as far as it was copied into it.")
        .at_odds("This node has a database of its own."),
    get(Bodkin, "api/v1/topics", "Page[RealTimeTopic]", "Event types that are real-time topics."),
    post(Bodkin, "api/v1/topics", "TopicDeclaration", "RealTimeTopic", "Makes an event type a real-time topic, if it fits.").created(),
    delete(Bodkin, "api/v1/topics", "Takes the promises of an event type back.").asking(&["event_type text"]),
    get(Bodkin, "api/v1/graphs", "Page[GraphState]", "Event-processing graphs that run."),
    post(Bodkin, "api/v1/graphs", "GraphForm", "GraphState", "Has a graph run, in the place of the one of its name, if it fits.")
        .created()
        .at_odds("It does not fit, or an operator of the graph that runs is between two edges. The message says why."),
    post(
        Bodkin,
        "api/v1/graphs/move",
        "MoveForm",
        "GraphMove",
        "A step of the move of an operator to another edge, as far as this edge has to do with it.",
    )
    .absent("There is no graph of this name.")
    .at_odds("It cannot go there, or not now. The message says why."),
    delete(Bodkin, "api/v1/graphs", "Has a graph run no more.")
        .asking(&["name text", "force? bool - even if an operator of it is between two edges, and is lost by that; false if absent"])
        .absent("There is no graph of this name.")
        .at_odds("It is named in the configuration, or an operator of it is between two edges. The message says why."),
    get(Bodkin, "dashboard/enter", "", "Signs a browser on the cloud's own machine in as the operator, by a link that works once.")
        .asking(&["token text"])
        .saying(Content::Page)
        .needing_keys(),
    post(Bodkin, "api/v1/dashboard/links", "SignInLinkForm", "SignInLink", "Makes a link that signs the operator's browser in to the dashboard.")
        .created()
        .needing_keys(),
    delete(Bodkin, "api/v1/dashboard/sessions", "Ends every session of the dashboard, and withdraws every pending link.")
        .saying(Content::Json("EndedSessions"))
        .needing_keys(),
    get(Bodkin, "api/v1/event-types", "Page[EventTypeState]", "Every event type since the start."),
    get(Bodkin, "api/v1/fleet", "Fleet", "Whether events reach the fleet's stream, what waits for it, and what comes from there.")
        .absent("There is no fleet."),
    act("api/v1/fleet/adopt", "AdoptedLane", "Has a stopped lane continue behind another process's batch.")
        .asking(&["lane text"])
        .absent("There is no such lane.")
        .at_odds("The lane does not stand."),
    get(Bodkin, "api/v1/streams", "Page[StreamState]", "Who hears events on a connection of its own, the first 1,000 of them."),
];
