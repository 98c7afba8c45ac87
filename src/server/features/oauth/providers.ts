/**
 * The credentials of external sign-in (spec section 5, rules 9 to 11; decisions 3.2.10): an operator
 * enters them, they are sealed under the master key, and only the service itself opens them again.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { ProviderDisabled } from "#rpc/errors/codes"
import type { Provider } from "#rpc/identities"
import type { EnvironmentId } from "#rpc/ids"
import { AppleCredentials, ClientCredentials, type ProviderState } from "#rpc/oauth/api"
import { ProviderRepository } from "#sql/oauth/providers"
import { Secrets } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "../config/service.ts"

const Credentials = Schema.Union([AppleCredentials, ClientCredentials])
export type Credentials = typeof Credentials.Type

const CredentialsText = Schema.fromJsonString(Credentials)

/** Where a provider returns to, as it is entered there. */
export const callbackUrlOf = (baseUrl: string, provider: Provider): string =>
  `${baseUrl}/v1/auth/oauth/${provider}/callback`

export const clientIdOf = (credentials: Credentials): string =>
  "servicesId" in credentials ? credentials.servicesId : credentials.clientId

const purposeOf = (environmentId: EnvironmentId, provider: Provider) =>
  `${provider} credentials ${environmentId}`

/** The credentials of all environments. */
export class Providers extends Context.Service<
  Providers,
  {
    /** For the service's own use with the provider; none while nothing is entered. */
    readonly credentials: (
      environmentId: EnvironmentId,
      provider: Provider
    ) => Effect.Effect<Option.Option<Credentials>>
    /** Refuses a provider that the config does not enable. */
    readonly enabled: (
      environmentId: EnvironmentId,
      provider: Provider
    ) => Effect.Effect<void, ProviderDisabled>
    readonly state: (
      environmentId: EnvironmentId,
      provider: Provider
    ) => Effect.Effect<ProviderState>
    readonly put: (
      environmentId: EnvironmentId,
      provider: Provider,
      credentials: Credentials
    ) => Effect.Effect<void>
    /** Forgets; false when there was nothing. */
    readonly delete: (environmentId: EnvironmentId, provider: Provider) => Effect.Effect<boolean>
  }
>()("server/features/oauth/providers/Providers") {
  static readonly layer = Layer.effect(
    Providers,
    Effect.gen(function* () {
      const rows = yield* ProviderRepository
      const secrets = yield* Secrets
      const configs = yield* Configs
      const { baseUrl } = yield* Settings
      const isEnabled = (environmentId: EnvironmentId, provider: Provider) =>
        Effect.map(
          configs.current(environmentId),
          ({ config }) => config.auth.providers?.[provider]?.enabled ?? false
        )
      return Providers.of({
        enabled: Effect.fnUntraced(function* (environmentId, provider) {
          if (!(yield* isEnabled(environmentId, provider))) return yield* new ProviderDisabled()
        }),
        credentials: Effect.fnUntraced(function* (environmentId, provider) {
          const found = yield* rows.find(environmentId, provider)
          if (Option.isNone(found)) return Option.none()
          const open = secrets.open(found.value.sealed, purposeOf(environmentId, provider))
          const text = yield* Effect.orDie(open)
          const decoded = Schema.decodeEffect(CredentialsText)(text)
          return Option.some(yield* Effect.orDie(decoded))
        }),
        state: Effect.fnUntraced(function* (environmentId, provider) {
          const found = Option.getOrUndefined(yield* rows.find(environmentId, provider))
          return {
            provider,
            configured: found !== undefined,
            enabled: yield* isEnabled(environmentId, provider),
            callbackUrl: callbackUrlOf(baseUrl, provider),
            clientId: found?.clientId ?? null
          }
        }),
        put: Effect.fn("Providers.put")(function* (environmentId, provider, credentials) {
          const text = yield* Effect.orDie(Schema.encodeEffect(CredentialsText)(credentials))
          yield* rows.put({
            environmentId,
            provider,
            clientId: clientIdOf(credentials),
            sealed: yield* secrets.seal(text, purposeOf(environmentId, provider)),
            updatedAt: yield* DateTime.now
          })
        }),
        delete: rows.delete
      })
    })
  )
}
