/**
 * HTTP to sign-in providers. Requests of `oauth4webapi` and `jose` run through `Outgoing`, which bounds
 * their time and size. Errors carry a reason for the log, never a code, a token or a secret.
 */
import { Clock, Data, Effect } from "effect"
import { importPKCS8, SignJWT } from "jose"
import * as oauth from "oauth4webapi"
import { KiB } from "#rpc/units"
import { Outgoing, type TargetPolicy } from "#server/platform/outgoing"
import { Settings } from "#server/platform/settings/settings"
import { currentTenant } from "#server/platform/tenant"
import { providerDefinitions, type SignInProvider } from "./definitions.ts"
import type { Credentials } from "./providers.ts"

export const providerRequests = {
  /** Timeout of a request to a provider. */
  requestMillis: 5000,
  responseMaxBytes: 256 * KiB
} as const

/** Error: the provider is unreachable, or its response is invalid. */
export class ProviderError extends Data.TaggedError("ProviderError")<{
  readonly reason: string
}> {}

/** Signature algorithm of id tokens. The service accepts no other. */
export const idTokenAlgorithm = "RS256"

const appleSecretSeconds = 300

/**
 * Converts an error of either library. Their messages are fixed texts; the values are in other fields.
 */
const providerErrorOf = (cause: unknown): ProviderError =>
  new ProviderError({
    reason:
      cause instanceof oauth.ResponseBodyError
        ? `${cause.status} ${cause.error}`
        : cause instanceof Error
          ? cause.message
          : "unknown"
  })

/** Runs a promise of `oauth4webapi` or `jose`. Turns a rejection into a {@link ProviderError}. */
export const tryLibrary = <A>(run: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: providerErrorOf })

interface FetchOptions {
  readonly method: string
  readonly headers: ConstructorParameters<typeof Headers>[0]
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/** A `fetch` for the libraries that sends the requests of a tenant through `Outgoing`. */
const makeFetch = Effect.gen(function* () {
  const outgoing = yield* Outgoing
  const runPromise = Effect.runPromiseWith(yield* Effect.context())
  return (targets: TargetPolicy, tenant: string | undefined) =>
    (url: string, { body, headers, method, signal }: FetchOptions): Promise<Response> => {
      const sent = outgoing.request({
        purpose: "signIns",
        tenant,
        url,
        method: method === "POST" ? "POST" : "GET",
        body: body instanceof URLSearchParams ? body.toString() : undefined,
        headers: Object.fromEntries(new Headers(headers)),
        timeoutMillis: providerRequests.requestMillis,
        responseMaxBytes: providerRequests.responseMaxBytes,
        targets
      })
      const response = Effect.map(
        sent,
        ({ body: text, headers: { "content-type": type }, status }) => {
          return new Response(text === "" ? null : text, {
            status,
            headers: { "content-type": type ?? "" }
          })
        }
      )
      return runPromise(response, signal === undefined ? {} : { signal })
    }
})

/** Dependencies of all provider requests: definitions, `fetch` and the service's base URL. */
export const makeProviderHttp = Effect.gen(function* () {
  const outgoing = yield* Outgoing
  const { baseUrl } = yield* Settings
  const fetchWithin = yield* makeFetch
  const definitions = yield* providerDefinitions
  return { baseUrl, definitions, fetchWithin, outgoing }
})
export type ProviderHttp = Effect.Success<typeof makeProviderHttp>

/** Returns the client secret. For Apple, signs a five-minute JWT with the team's key. */
const clientSecretOf = Effect.fnUntraced(function* (
  credentials: Credentials,
  clientId: string,
  audience: string
) {
  if (!("servicesId" in credentials)) return credentials.clientSecret
  const { keyId, privateKey, teamId } = credentials
  const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  return yield* tryLibrary(async () =>
    new SignJWT()
      .setProtectedHeader({ alg: "ES256", kid: keyId })
      .setIssuer(teamId)
      .setSubject(clientId)
      .setAudience(audience)
      .setIssuedAt(now)
      .setExpirationTime(now + appleSecretSeconds)
      .sign(await importPKCS8(privateKey, "ES256"))
  )
})

/**
 * Client authentication with HTTP Basic as X accepts it. RFC 6749 and `oauth4webapi` also escape `-`
 * and `_`; X then rejects its own secrets.
 */
const basicAuth =
  (secret: string): oauth.ClientAuth =>
  (_, { client_id: id }, _body, headers) => {
    const pair = `${encodeURIComponent(id)}:${encodeURIComponent(secret)}`
    headers.set("authorization", `Basic ${Buffer.from(pair).toString("base64")}`)
  }

/** Client at its provider, in the types of `oauth4webapi`. */
export const oauthClientOf = Effect.fnUntraced(function* (
  { definitions, fetchWithin }: ProviderHttp,
  provider: SignInProvider,
  credentials: Credentials,
  clientId: string
) {
  const { clientAuth, insecure, profile, targets, revoke, token } = definitions[provider]
  const fetchOfTenant = fetchWithin(targets, yield* currentTenant)
  const issuer = profile.issuer ?? new URL(token).origin
  const secret = yield* clientSecretOf(credentials, clientId, issuer)
  const server: oauth.AuthorizationServer = {
    issuer,
    token_endpoint: token,
    ...(revoke === undefined ? {} : { revocation_endpoint: revoke })
  }
  const client: oauth.Client = {
    client_id: clientId,
    id_token_signed_response_alg: idTokenAlgorithm
  }
  const auth = clientAuth === "basic" ? basicAuth(secret) : oauth.ClientSecretPost(secret)
  const options = (signal: AbortSignal) => ({
    signal,
    [oauth.customFetch]: fetchOfTenant,
    [oauth.allowInsecureRequests]: insecure
  })
  return { auth, client, options, server }
})
