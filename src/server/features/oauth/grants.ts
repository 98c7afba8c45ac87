/**
 * Refresh tokens of providers, stored sealed with the identity. Apple requires their revocation when an
 * account is deleted. Collect the tokens before deleting a player or an identity, and revoke them after
 * the commit. A failed revocation writes a log line and has no other effect.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import type { Method, Provider } from "#rpc/identities"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { IdentityRepository } from "#sql/identities"
import { type SecretError, Secrets } from "#server/platform/secrets"
import { ProviderClients, type RevocableToken } from "./clients.ts"
import { ProviderError } from "./provider-http.ts"
import { Providers } from "./providers.ts"

/** A sealed provider token of one identity. */
export interface SealedGrant {
  readonly environmentId: EnvironmentId
  readonly provider: Provider
  readonly sealed: string
}

const RevocableTokenText = Schema.fromJsonString(
  Schema.Struct({ clientId: Schema.String, token: Schema.String })
)

const purposeOf = (environmentId: EnvironmentId, provider: Provider) =>
  `${provider} grant ${environmentId}`

const reasonOf = (error: ProviderError | SecretError): string =>
  error._tag === "ProviderError" ? error.reason : error.message

/** Seals, collects and revokes provider tokens. */
export class ProviderGrants extends Context.Service<
  ProviderGrants,
  {
    /** Seals a token for storage with the identity; null without a token. */
    readonly seal: (
      environmentId: EnvironmentId,
      provider: Provider,
      revocableToken: RevocableToken | undefined
    ) => Effect.Effect<string | null>
    /** Returns the sealed tokens of a player, or of one of its identities. */
    readonly collect: (
      environmentId: EnvironmentId,
      playerId: PlayerId,
      method?: Method
    ) => Effect.Effect<ReadonlyArray<SealedGrant>>
    /** Revokes tokens at their providers. Logs failures and never fails. */
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
            return yield* new ProviderError({ reason: "The provider has no credentials any more" })
          }
          const text = yield* secrets.open(sealed, purposeOf(environmentId, provider))
          const token = yield* Effect.orDie(Schema.decodeEffect(RevocableTokenText)(text))
          yield* clients.revoke(provider, credentials.value, token)
        },
        (revocation, { environmentId, provider }) =>
          Effect.catch(revocation, (error) =>
            Effect.logWarning("Failed to revoke a provider token", reasonOf(error)).pipe(
              Effect.annotateLogs({ environmentId, provider })
            )
          )
      )

      return ProviderGrants.of({
        seal: Effect.fnUntraced(function* (environmentId, provider, revocableToken) {
          if (revocableToken === undefined) return null
          const text = yield* Effect.orDie(Schema.encodeEffect(RevocableTokenText)(revocableToken))
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
