/** The authorization rule that is made of what somebody has chosen. */

import type { RegisteredService } from "./forms";

/** A rule as the management of Authorization takes it. */
export interface NewRule {
    consumerId: number;
    providerIds: number[];
    serviceDefinitionIds: number[];
    interfaceIds: number[];
}

/** What a service is chosen by: two providers may offer the same, and one over many interfaces. */
export const serviceLabel = ({ serviceDefinition, provider, interfaces }: RegisteredService): string =>
    `${serviceDefinition.serviceDefinition} of ${provider.systemName} (${interfaces.map((one) => one.interfaceName).join(", ")})`;

/** The rule by which a consumer may use a service over all of its interfaces. */
export const ruleFor = (consumerId: number, { provider, serviceDefinition, interfaces }: RegisteredService): NewRule => ({
    consumerId,
    providerIds: [provider.id],
    serviceDefinitionIds: [serviceDefinition.id],
    interfaceIds: interfaces.map(({ id }) => id),
});
