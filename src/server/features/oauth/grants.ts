/**
 * Permissions that providers gave with a sign-in and want back when the player goes (decisions 3.2.7):
 * of Apple, which demands it. They are kept sealed beside the identity. Whoever deletes a player or
 * unlinks an identity collects them before, and revokes them after; that may fail without consequences.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import type { Method, Provider } from "#rpc/identities"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { IdentityRepository } from "#sql/identities"
import { type SecretError, Secrets } from "#server/platform/secrets"
import { type RevocableToken, ProviderClients } from "./clients.ts"
import { ProviderError } from "./provider-http.ts"
import { Providers } from "./providers.ts"

/** A sealed permission. */
export interface SealedGrant {
  readonly environmentId: EnvironmentId
  readonly provider: Provider
  readonly sealed: string
}

const PermissionText = Schema.fromJsonString(
  Schema.Struct({ clientId: Schema.String, token: Schema.String })
)

const purposeOf = (environmentId: EnvironmentId, provider: Provider) =>
  `${provider} grant ${environmentId}`

const reasonOf = (error: ProviderError | SecretError): string =>
  error._tag === "ProviderError" ? error.reason : error.message

/** The permissions of players. */
export class ProviderGrants extends Context.Service<
  ProviderGrants,
  {
    /** A permission as it is stored with the identity. */
    readonly seal: (
      environmentId: EnvironmentId,
      provider: Provider,
      permission: RevocableToken | undefined
    ) => Effect.Effect<string | null>
    /** What would have to be given back for a player, or for one way to sign in of it. */
    readonly collect: (
      environmentId: EnvironmentId,
      playerId: PlayerId,
      method?: Method
    ) => Effect.Effect<ReadonlyArray<SealedGrant>>
    /** Gives it back, within seconds; what cannot be given back is told to the log. */
    readonly revoke: (grants: ReadonlyArray<SealedGrant>) => Effect.Effect<void>
  }
>()("server/features/oauth/grants/ProviderGrants") {
  static readonly layer = Layer.effect(
    ProviderGrants,
    Effect.gen(function* () {
      const clients = yield* ProviderClients
      const identities = yield* IdentityRepository
      const providers = yield* Providers
      const secrets = yield* Secrets

      const revokeOne = Effect.fnUntraced(
        function* ({ environmentId, provider, sealed }: SealedGrant) {
          const credentials = yield* providers.credentials(environmentId, provider)
          if (Option.isNone(credentials)) {
            return yield* new ProviderError({ reason: "It has no credentials any more" })
          }
          const text = yield* secrets.open(sealed, purposeOf(environmentId, provider))
          const permission = yield* Effect.orDie(Schema.decodeEffect(PermissionText)(text))
          yield* clients.revoke(provider, credentials.value, permission)
        },
        (revoked, { environmentId, provider }) =>
          Effect.catch(revoked, (error) =>
            Effect.logWarning("A permission was not given back", reasonOf(error)).pipe(
              Effect.annotateLogs({ environmentId, provider })
            )
          )
      )

      return ProviderGrants.of({
        seal: Effect.fnUntraced(function* (environmentId, provider, permission) {
          if (permission === undefined) return null
          const text = yield* Effect.orDie(Schema.encodeEffect(PermissionText)(permission))
          return yield* secrets.seal(text, purposeOf(environmentId, provider))
        }),
        collect: Effect.fnUntraced(function* (environmentId, playerId, method) {
          const rows = yield* identities.ofPlayer({ environmentId, playerId })
          return rows.flatMap(({ grantSealed, provider }) => {
            if (grantSealed === null || provider === "email") return []
            if (method !== undefined && method !== provider) return []
            return [{ environmentId, provider, sealed: grantSealed }]
          })
        }),
        revoke: (grants) => Effect.forEach(grants, revokeOne, { discard: true })
      })
    })
  )
}
