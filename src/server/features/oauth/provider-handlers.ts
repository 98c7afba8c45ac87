/** Endpoints `auth/providers` of the operator API, under both of its mounts. */
import { createPrivateKey } from "node:crypto"
import { Effect, Result } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import type { Provider } from "#rpc/identities"
import type { EnvironmentId } from "#rpc/ids"

import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { invalidField } from "#server/platform/invalid-request"
import { Audit, type AuditedEndpoint } from "../audit/service.ts"
import { clientIdOf, type Credentials, Providers } from "./providers.ts"

/**
 * Whether a PEM is a P-256 key, as ES256 needs. A wrong key fails now instead of at the first sign-in.
 */
const isAppleKey = (pem: string): boolean =>
  Result.match(
    Result.try(() => createPrivateKey(pem)),
    {
      onFailure: () => false,
      onSuccess: ({ asymmetricKeyDetails, asymmetricKeyType }) =>
        asymmetricKeyType === "ec" && asymmetricKeyDetails?.namedCurve === "prime256v1"
    }
  )

const invalidAppleKey = invalidField("privateKey", "Expected the text of the .p8 file from Apple")

/** Handlers that both mounts share. */
const makeHandlers = Effect.gen(function* () {
  const providers = yield* Providers
  const audit = yield* Audit

  /** Changes credentials and records the change. The audit log gets the client id, never the secret. */
  const recordChange = Effect.fnUntraced(function* (
    endpoint: AuditedEndpoint,
    provider: Provider,
    after: string | null,
    change: (environmentId: EnvironmentId) => Effect.Effect<boolean>
  ) {
    const { environmentId } = yield* CurrentEnvironment
    const before = yield* providers.state(environmentId, provider)
    yield* audit.recordOperation(endpoint, change(environmentId), (isChanged) =>
      isChanged
        ? {
            target: { kind: "provider", id: provider },
            details: { clientId: { before: before.clientId, after } }
          }
        : undefined
    )
    return yield* providers.state(environmentId, provider)
  })

  const put = (endpoint: AuditedEndpoint, provider: Provider, credentials: Credentials) =>
    recordChange(endpoint, provider, clientIdOf(credentials), (id) =>
      Effect.as(providers.put(id, provider, credentials), true)
    )

  return {
    read: ({ params: { provider } }: RequestOf<"providers", "read">) =>
      Effect.flatMap(CurrentEnvironment, ({ environmentId }) =>
        providers.state(environmentId, provider)
      ),
    put: ({ endpoint, params, payload }: RequestOf<"providers", "put">) =>
      put(endpoint, params.provider, payload),
    putApple: ({ endpoint, payload }: RequestOf<"providers", "putApple">) =>
      isAppleKey(payload.privateKey)
        ? put(endpoint, "apple", payload)
        : Effect.fail(invalidAppleKey),
    delete: ({ endpoint, params: { provider } }: RequestOf<"providers", "delete">) =>
      recordChange(endpoint, provider, null, (id) => providers.delete(id, provider))
  }
})

export const ProvidersHttp = mounted(makeHandlers, (all) => [
  apiGroup(Api, "providers", (handlers) => handlers.handleAll(all)),
  apiGroup(Api, "projectProviders", (handlers) => handlers.handleAll(all))
])
