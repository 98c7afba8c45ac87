/** `auth/providers` of the operator API, under both of its mounts. */
import { createPrivateKey } from "node:crypto"
import { Effect, Layer, Result } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import type { AuditAction } from "#rpc/audit"
import { CurrentEnvironment } from "#rpc/auth"
import { InvalidRequest } from "#rpc/errors/codes"
import type { Provider } from "#rpc/identities"
import type { EnvironmentId } from "#rpc/ids"
import type { AppleCredentials, ClientCredentials } from "#rpc/oauth/api"
import { Audit } from "../audit/service.ts"
import { clientIdOf, type Credentials, Providers } from "./providers.ts"

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
