//! The operations of the core systems.

/// The operations of the core systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `Got it!`
    Echo,
    /// What the system logged.
    LogList,
    /// Service Registry: client operations.
    Register,
    /// Removes a service.
    Unregister,
    /// Finds services.
    Query,
    /// Answers several queries.
    QueryMulti,
    /// Core systems' questions: the system of an id.
    QuerySystemOfId,
    /// The system of a name, address and port.
    QuerySystem,
    /// All services.
    QueryAll,
    /// The services of a provider.
    QueryProvider,
    /// The services of several definitions.
    QueryDefinitions,
    /// All systems.
    PullSystems,
    /// The rules for names and addresses.
    PullConfig,
    /// Makes a system.
    RegisterSystem,
    /// Removes a system.
    UnregisterSystem,
    /// Management lists and rows of the registry.
    EntryList,
    /// Makes a service by management.
    EntryAdd,
    /// The services of a definition.
    EntryListOfDefinition,
    /// All services by system and by definition.
    EntryGroups,
    /// One service.
    EntryShow,
    /// Replaces a service.
    EntryReplace,
    /// Changes members of a service.
    EntryPatch,
    /// Removes a service by id.
    EntryRemove,
    /// All systems.
    SystemList,
    /// Makes a system by management.
    SystemAdd,
    /// One system.
    SystemShow,
    /// Replaces a system.
    SystemReplace,
    /// Changes members of a system.
    SystemPatch,
    /// Removes a system by id.
    SystemRemove,
    /// All service definitions.
    DefinitionList,
    /// Makes a service definition.
    DefinitionAdd,
    /// Renames a service definition.
    DefinitionRename,
    /// One service definition.
    DefinitionShow,
    /// Removes a service definition by id.
    DefinitionRemove,
    /// All interfaces.
    InterfaceList,
    /// Makes an interface.
    InterfaceAdd,
    /// Renames an interface.
    InterfaceRename,
    /// One interface.
    InterfaceShow,
    /// Removes an interface by id.
    InterfaceRemove,
    /// Authorization: the public key.
    PublicKey,
    /// All intracloud rules.
    RuleList,
    /// Makes intracloud rules.
    RuleAdd,
    /// One intracloud rule.
    RuleShow,
    /// Removes an intracloud rule by id.
    RuleRemove,
    /// All intercloud rules.
    InterCloudRuleList,
    /// Makes intercloud rules.
    InterCloudRuleAdd,
    /// One intercloud rule.
    InterCloudRuleShow,
    /// Removes an intercloud rule by id.
    InterCloudRuleRemove,
    /// May another cloud use providers?
    InterCloudCheck,
    /// May a consumer use providers?
    IntracloudCheck,
    /// Whom may a consumer hear?
    SubscriptionCheck,
    /// Makes tokens.
    Token,
    /// Makes tokens for several services.
    Tokens,
    /// Orchestrator: what should a consumer use?
    Orchestrate,
    /// The same, asked by a core system for the consumer.
    OrchestrateByProxy,
    /// What should a consumer use by the orchestration store?
    OrchestrateStored,
    /// All entries of the orchestration store.
    StoreEntryList,
    /// Makes entries of the orchestration store.
    StoreEntryAdd,
    /// One entry of the orchestration store.
    StoreEntryShow,
    /// Removes an entry of the orchestration store by id.
    StoreEntryRemove,
    /// All entries of the orchestration store with priority 1.
    StoreEntryTops,
    /// The entries of a consumer for a service.
    StoreEntrySearch,
    /// Gives the entries of a group new priorities.
    StoreEntryReorder,
    /// All rules of the flexible store.
    FlexibleRuleList,
    /// Makes rules of the flexible store by management.
    FlexibleRuleAdd,
    /// Removes a rule of the flexible store by id, by management.
    FlexibleRuleRemove,
    /// Makes rules of the flexible store.
    FlexibleRuleCreate,
    /// Removes a rule of the flexible store by id.
    FlexibleRuleDelete,
    /// Removes all rules of the flexible store.
    FlexibleStoreClear,
    /// All reservations.
    ReservationList,
    /// Keeps a provider for a consumer.
    ReservationConfirm,
    /// Holds providers while a consumer chooses.
    TemporaryLock,
    /// Whether quality of service is managed.
    QosEnabled,
    /// Event Handler: publishes an event.
    Publish,
    /// Says that a subscriber's rules have changed.
    AuthUpdate,
    /// Makes a subscription.
    Subscribe,
    /// Removes a subscription.
    Unsubscribe,
    /// All subscriptions.
    SubscriptionList,
    /// One subscription.
    SubscriptionShow,
    /// Makes a subscription another one.
    SubscriptionUpdate,
    /// Removes a subscription by id.
    SubscriptionRemove,
    /// An event stream; only the shard can serve it.
    EventStream,
    /// Gatekeeper: all clouds, with their relays.
    CloudList,
    /// Makes clouds known.
    CloudAdd,
    /// One cloud.
    CloudShow,
    /// Replaces what is known of a cloud.
    CloudReplace,
    /// Forgets a cloud by id.
    CloudRemove,
    /// Assigns further relays to a cloud.
    RelayAssign,
    /// All relays.
    RelayList,
    /// Makes relays known.
    RelayAdd,
    /// One relay.
    RelayShow,
    /// The relay at an address and port.
    RelayShowAt,
    /// Replaces what is known of a relay.
    RelayReplace,
    /// Forgets a relay by id.
    RelayRemove,
    /// Which other clouds offer a service?
    Discover,
    /// Which other clouds offer which of several services?
    DiscoverSeveral,
    /// What does another cloud grant a consumer of this one?
    Negotiate,
    /// All clouds, with the relays for tunnels to them.
    CloudPull,
    /// Where are the systems of another cloud?
    SystemAddressCollect,
    /// Are other clouds reached without a gateway?
    AccessTypeCollect,
    /// Asks another cloud to test a relay together.
    RelayTest,
    /// The cloud of an operator and name.
    CloudShowNamed,
    /// Gateway: the public key.
    GatewayKey,
    /// Opens the provider's end of a tunnel.
    ProviderConnect,
    /// Opens the consumer's end of a tunnel.
    ConsumerConnect,
    /// Ends the sessions of consumers' ports.
    SessionsClose,
    /// All sessions.
    SessionList,
    /// Ends a session, by management.
    SessionClose,
}
