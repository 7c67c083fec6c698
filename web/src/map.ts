/** Who may use which service of whom: what the map draws. */

import type { InterCloudRule, IntraCloudRule, NeighbourCloud, ServiceLife, System } from "./forms";
import type { Edge, Thing } from "./layers";

export interface Known {
    services: readonly ServiceLife[];
    rules: readonly IntraCloudRule[];
    cloudRules: readonly InterCloudRule[];
    systems: readonly System[];
    clouds: readonly NeighbourCloud[];
}

export interface CloudMap {
    /** Consumers and clouds, services, providers. */
    columns: readonly (readonly Thing[])[];
    /** From consumers to services, and from these to providers. */
    edges: readonly Edge[];
}

/** What is drawn of what is known. */
export interface Wanted {
    /** Part of the name of a system or service; empty: everything. */
    text: string;
    /** Core systems too: their services are there in every cloud, and hide the plant's. */
    core: boolean;
}

interface Use {
    consumer: string;
    service: string;
    provider: string;
}

interface Offer {
    service: string;
    provider: string;
}

/** Systems that Bodkin is itself. */
const CORE = ["serviceregistry", "authorization", "orchestrator", "eventhandler", "gatekeeper", "gateway"];

export const isCore = (system: string): boolean => CORE.includes(system);

const cloudName = ({ operator, name }: { operator: string; name: string }): string => `cloud ${operator}/${name}`;
const serviceName = (definition: string, provider: string): string => `${definition} of ${provider}`;

/** A use for each rule, of this cloud's systems and of other clouds. */
const usesOf = ({ rules, cloudRules }: Known): Use[] => {
    const use = (consumer: string, definition: string, provider: string): Use => ({ consumer, service: serviceName(definition, provider), provider });
    return [
        ...rules.map((rule) => use(rule.consumerSystem.systemName, rule.serviceDefinition.serviceDefinition, rule.providerSystem.systemName)),
        ...cloudRules.map((rule) => use(cloudName(rule.cloud), rule.serviceDefinition.serviceDefinition, rule.provider.systemName)),
    ];
};

const offersOf = ({ services }: Known): Offer[] =>
    services.map(({ serviceDefinition, provider }) => ({ service: serviceName(serviceDefinition, provider.systemName), provider: provider.systemName }));

/** Systems and other clouds that have neither a rule nor a service: they are there all the same. */
const idleOf = ({ systems, clouds }: Known, uses: readonly Use[], offers: readonly Offer[]): string[] => {
    const busy = new Set([...uses.flatMap(({ consumer, provider }) => [consumer, provider]), ...offers.map(({ provider }) => provider)]);
    const all = [...systems.map(({ systemName }) => systemName), ...clouds.filter(({ own }) => !own).map(cloudName)];
    return all.filter((name) => !busy.has(name));
};

const things = (kind: string, names: readonly string[]): Thing[] =>
    [...new Set(names)].sort((a, b) => a.localeCompare(b)).map((name) => ({ id: `${kind} ${name}`, name }));

export const mapOf = (known: Known, { text, core }: Wanted): CloudMap => {
    const isShown = (system: string): boolean => core || !isCore(system);
    const fits = (name: string): boolean => name.toLowerCase().includes(text.toLowerCase());
    const [uses, offers] = [usesOf(known), offersOf(known)];
    const idle = idleOf(known, uses, offers).filter((name) => isShown(name) && fits(name));
    const used = uses.filter(({ consumer, service }) => fits(consumer) || fits(service));
    // Who looks for a consumer sees of whom it is what it uses.
    const kept = new Set(used.map(({ service }) => service));
    const offered = offers.filter(({ service, provider }) => isShown(provider) && (fits(service) || fits(provider) || kept.has(service)));
    return {
        columns: [
            things("consumer", [...used.map(({ consumer }) => consumer), ...idle]),
            things("service", offered.map(({ service }) => service)),
            things("provider", offered.map(({ provider }) => provider)),
        ],
        edges: [
            ...used.map(({ consumer, service }) => ({ from: `consumer ${consumer}`, to: `service ${service}` })),
            ...offered.map(({ service, provider }) => ({ from: `service ${service}`, to: `provider ${provider}` })),
        ],
    };
};
