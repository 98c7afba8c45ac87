/**
 * Client credentials of sign-in providers, per environment. Operators write them. The service seals
 * them under the master key, and no API returns them.
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

/** Returns the callback URL, which operators register at the provider. */
export const callbackUrlOf = (baseUrl: string, provider: Provider): string =>
  `${baseUrl}/v1/auth/oauth/${provider}/callback`

export const clientIdOf = (credentials: Credentials): string =>
  "servicesId" in credentials ? credentials.servicesId : credentials.clientId

const purposeOf = (environmentId: EnvironmentId, provider: Provider) =>
  `${provider} credentials ${environmentId}`

/** Provider credentials and whether the config enables a provider. */
export class Providers extends Context.Service<
  Providers,
  {
    /** Returns the opened credentials; none if the environment has none for this provider. */
    readonly credentials: (
      environmentId: EnvironmentId,
      provider: Provider
    ) => Effect.Effect<Option.Option<Credentials>>
    /** Fails for a provider that the config does not enable. */
    readonly requireEnabled: (
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
    /** Deletes the credentials; false if the environment has none. */
    readonly delete: (environmentId: EnvironmentId, provider: Provider) => Effect.Effect<boolean>
  }
>()("server/features/oauth/providers/Providers") {
  static readonly layer = Layer.effect(
    Providers,
    Effect.gen(function* () {
      const repository = yield* ProviderRepository
      const secrets = yield* Secrets
      const configs = yield* Configs
      const { baseUrl } = yield* Settings
      const isEnabled = (environmentId: EnvironmentId, provider: Provider) =>
        Effect.map(
          configs.current(environmentId),
          ({ config }) => config.auth.providers?.[provider]?.enabled ?? false
        )
      return Providers.of({
        requireEnabled: Effect.fnUntraced(function* (environmentId, provider) {
          if (!(yield* isEnabled(environmentId, provider))) return yield* new ProviderDisabled()
        }),
        credentials: Effect.fnUntraced(function* (environmentId, provider) {
          const found = yield* repository.find(environmentId, provider)
          if (Option.isNone(found)) return Option.none()
          const open = secrets.open(found.value.sealed, purposeOf(environmentId, provider))
          const text = yield* Effect.orDie(open)
          const decoded = Schema.decodeEffect(CredentialsText)(text)
          return Option.some(yield* Effect.orDie(decoded))
        }),
        state: Effect.fnUntraced(function* (environmentId, provider) {
          const found = Option.getOrUndefined(yield* repository.find(environmentId, provider))
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
          yield* repository.put({
            environmentId,
            provider,
            clientId: clientIdOf(credentials),
            sealed: yield* secrets.seal(text, purposeOf(environmentId, provider)),
            updatedAt: yield* DateTime.now
          })
        }),
        delete: repository.delete
      })
    })
  )
}
