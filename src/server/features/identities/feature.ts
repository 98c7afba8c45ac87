/** Identities, as the service composes them. */
import { IdentityRepository } from "#sql/identities"
import { IdentitiesHttp } from "./handlers.ts"

export const identities = { repositories: IdentityRepository.layer, routes: IdentitiesHttp }
