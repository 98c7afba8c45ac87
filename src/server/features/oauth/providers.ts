/**
 * The credentials of external sign-in (spec section 5, rules 9 to 11; decisions 3.2.10): an operator
 * enters them, they are sealed under the master key, and only the service itself opens them again.
 */
import { createPrivateKey } from "node:crypto"
import { Context, DateTime, Effect, Layer, Option, Result, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import type { AuditAction } from "#rpc/audit"
import { CurrentEnvironment } from "#rpc/auth"
import { InvalidRequest, ProviderDisabled } from "#rpc/errors/codes"
import type { Provider } from "#rpc/identities"
import type { EnvironmentId } from "#rpc/ids"
import { AppleCredentials, ClientCredentials, type ProviderState } from "#rpc/oauth/api"
import { ProviderRepository } from "#sql/oauth/providers"
import { Secrets } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { Audit } from "../audit/service.ts"
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

/** Apple signs with ES256: any other key would only be found out at the first sign-in. */
const isAppleKey = (pem: string): boolean =>
  Result.match(
    Result.try(() => createPrivateKey(pem)),
    {
      onFailure: () => false,
      onSuccess: ({ asymmetricKeyDetails, asymmetricKeyType }) =>
        asymmetricKeyType === "ec" && asymmetricKeyDetails?.namedCurve === "prime256v1"
    }
  )

const notAnAppleKey = new InvalidRequest({
  details: {
    issues: [{ path: "privateKey", message: "Expected the text of the .p8 file from Apple" }]
  }
})

interface Named {
  readonly params: { readonly provider: Provider }
}

/** One set of handlers for both mounts. */
const makeHandlers = Effect.gen(function* () {
  const providers = yield* Providers
  const audit = yield* Audit

  /** Changes the credentials of a provider; only the client's id is told to the log. */
  const changed = Effect.fnUntraced(function* (
    action: AuditAction,
    provider: Provider,
    after: string | null,
    change: (environmentId: EnvironmentId) => Effect.Effect<boolean>
  ) {
    const environment = yield* CurrentEnvironment
    const { environmentId } = environment
    const before = yield* providers.state(environmentId, provider)
    yield* audit.recordChange(environment, change(environmentId), (made) =>
      made
        ? {
            action,
            target: { kind: "provider", id: provider },
            details: { clientId: { before: before.clientId, after } }
          }
        : undefined
    )
    return yield* providers.state(environmentId, provider)
  })

  const put = (provider: Provider, credentials: Credentials) =>
    changed("provider.put", provider, clientIdOf(credentials), (id) =>
      Effect.as(providers.put(id, provider, credentials), true)
    )

  return {
    read: ({ params: { provider } }: Named) =>
      Effect.flatMap(CurrentEnvironment, ({ environmentId }) =>
        providers.state(environmentId, provider)
      ),
    put: ({ params, payload }: Named & { readonly payload: ClientCredentials }) =>
      put(params.provider, payload),
    putApple: ({ payload }: { readonly payload: AppleCredentials }) =>
      isAppleKey(payload.privateKey) ? put("apple", payload) : Effect.fail(notAnAppleKey),
    delete: ({ params: { provider } }: Named) =>
      changed("provider.delete", provider, null, (id) => providers.delete(id, provider))
  }
})

/** `auth/providers` under both mounts. */
export const ProvidersHttp = Layer.mergeAll(
  HttpApiBuilder.group(
    Api,
    "providers",
    Effect.fn(function* (handlers) {
      return handlers.handleAll(yield* makeHandlers)
    })
  ),
  HttpApiBuilder.group(
    Api,
    "projectProviders",
    Effect.fn(function* (handlers) {
      return handlers.handleAll(yield* makeHandlers)
    })
  )
)
