/**
 * How the service talks to sign-in providers: the requests of `oauth4webapi` and `jose` go through
 * `Outgoing`, bounded in time and size. What goes wrong is told by its reason, for the log, never with
 * a code, a token or a secret.
 */
import { Clock, Data, Effect, Record } from "effect"
import { importPKCS8, SignJWT } from "jose"
import * as oauth from "oauth4webapi"
import type { Provider } from "#rpc/identities"
import { oauth as limits } from "#rpc/limits"
import { Outgoing, type Reach } from "#server/platform/outgoing"
import { Settings } from "#server/platform/settings/settings"
import { definitionOf } from "./definitions.ts"
import type { Credentials } from "./providers.ts"

/** The provider cannot be asked, or what came from it is not as it should be. */
export class ProviderError extends Data.TaggedError("ProviderError")<{
  readonly reason: string
}> {}

/** The one algorithm that the OpenID providers sign with; no other is looked at. */
export const idTokenAlgorithm = "RS256"

const secretSeconds = 300

/** The messages of the libraries are fixed texts; what they are about stands elsewhere in the error. */
const failed = (cause: unknown): ProviderError =>
  new ProviderError({
    reason:
      cause instanceof oauth.ResponseBodyError
        ? `${cause.status} ${cause.error}`
        : cause instanceof Error
          ? cause.message
          : "unknown"
  })

/** A promise of one of the libraries. */
export const tryLibrary = <A>(run: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: failed })

interface FetchOptions {
  readonly method: string
  readonly headers: ConstructorParameters<typeof Headers>[0]
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/** `fetch` as the libraries want it. */
const makeFetch = Effect.gen(function* () {
  const outgoing = yield* Outgoing
  const runPromise = Effect.runPromiseWith(yield* Effect.context())
  return (reach: Reach) =>
    (url: string, { body, headers, method, signal }: FetchOptions): Promise<Response> => {
      const answer = outgoing.request({
        url,
        method: method === "POST" ? "POST" : "GET",
        body: body instanceof URLSearchParams ? body.toString() : undefined,
        headers: Object.fromEntries(new Headers(headers)),
        timeoutMillis: limits.requestMillis,
        answerMaxBytes: limits.answerMaxBytes,
        reach
      })
      const response = Effect.map(
        answer,
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

/** What all requests to providers share. */
export const makeProviderHttp = Effect.gen(function* () {
  const outgoing = yield* Outgoing
  const { baseUrl, providerUrls } = yield* Settings
  const fetchWithin = yield* makeFetch
  const shapes = Record.map(providerUrls, (base, provider) => definitionOf(provider, base))
  return { baseUrl, fetchWithin, outgoing, shapes }
})
export type ProviderHttp = Effect.Success<typeof makeProviderHttp>

/** What a client proves itself with; of Apple a short token that the key of the team signs. */
const secretOf = Effect.fnUntraced(function* (
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
      .setExpirationTime(now + secretSeconds)
      .sign(await importPKCS8(privateKey, "ES256"))
  )
})

/**
 * HTTP Basic as providers read it: RFC 6749 has `-` and `_` escaped, too, as the library does, and X
 * does not know its own secrets again then.
 */
const basic =
  (secret: string): oauth.ClientAuth =>
  (_, { client_id: id }, _body, headers) => {
    const pair = `${encodeURIComponent(id)}:${encodeURIComponent(secret)}`
    headers.set("authorization", `Basic ${Buffer.from(pair).toString("base64")}`)
  }

/** One of our clients and its provider, as `oauth4webapi` takes them. */
export const oauthClientOf = Effect.fnUntraced(function* (
  { fetchWithin, shapes }: ProviderHttp,
  provider: Provider,
  credentials: Credentials,
  clientId: string
) {
  const { clientAuth, insecure, reach, revoke, tells, token } = shapes[provider]
  const issuer = tells.by === "token" ? tells.issuer : new URL(token).origin
  const secret = yield* secretOf(credentials, clientId, issuer)
  const server: oauth.AuthorizationServer = {
    issuer,
    token_endpoint: token,
    ...(revoke === undefined ? {} : { revocation_endpoint: revoke })
  }
  const client: oauth.Client = {
    client_id: clientId,
    id_token_signed_response_alg: idTokenAlgorithm
  }
  const auth = clientAuth === "basic" ? basic(secret) : oauth.ClientSecretPost(secret)
  const options = (signal: AbortSignal) => ({
    signal,
    [oauth.customFetch]: fetchWithin(reach),
    [oauth.allowInsecureRequests]: insecure
  })
  return { auth, client, options, server }
})
