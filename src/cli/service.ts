/**
 * HTTP client of the CLI, with the secret key of one environment. It never follows redirects, because a
 * key belongs to one address, and it turns every error into a message.
 */
import { Duration, Effect, identity, Option, Redacted, Schema } from "effect"
import {
  FetchHttpClient,
  HttpClient,
  type HttpClientError,
  HttpClientRequest,
  type HttpClientResponse
} from "effect/http"
import { ConfigPushed, ConfigVersion, FeatureState } from "#rpc/config"
import { memberPath } from "#rpc/config-document/paths"
import { Issue } from "#rpc/errors/codes"
import { type ExitCode, exitCodes, Failure, usageFailure } from "./failures.ts"
import { withProgress } from "./output.ts"
import type { KeySource, Target } from "./target.ts"

/** Timeout of a request. */
const requestTimeout = Duration.seconds(20)

/** The error body of the service, as far as the CLI reads it. */
const WireError = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String,
    message: Schema.String,
    details: Schema.optionalKey(
      Schema.Struct({
        issues: Schema.optionalKey(Schema.Array(Issue)),
        feature: Schema.optionalKey(Schema.String),
        features: Schema.optionalKey(Schema.Array(Schema.String)),
        currentVersion: Schema.optionalKey(Schema.Finite)
      })
    )
  })
})

/** The current config of an environment. */
export interface CurrentConfig {
  readonly document: Schema.Json
  readonly version: number
}

const Features = Schema.Struct({ features: Schema.Array(FeatureState) })

/** Issue for a feature that the deployment does not offer. */
export const featureUnavailableIssue = (path: string): Issue => ({
  path,
  message: "is not offered by this service: remove it, or set it to false"
})

/** The service refused a push: for `problems` of the document, or because `currentVersion` is newer. */
export class PushRefused extends Schema.TaggedError<PushRefused>()("PushRefused", {
  code: Schema.String,
  message: Schema.String,
  problems: Schema.Array(Issue),
  currentVersion: Schema.optionalKey(Schema.Finite)
}) {}

const unreachable = (message: string, ...hints: ReadonlyArray<string>) =>
  new Failure({ exitCode: exitCodes.unreachable, code: "unreachable", message, hints })

const causes: Readonly<Record<string, string>> = {
  ECONNREFUSED: "no service listens at this address",
  ENOTFOUND: "the host does not exist",
  EAI_AGAIN: "the host name lookup failed",
  ETIMEDOUT: "the connection timed out",
  ECONNRESET: "the connection was closed"
}

/** Returns the reason of a failed connection, from the innermost cause. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return "the connection failed"
  if ("code" in error && typeof error.code === "string") return causes[error.code] ?? error.code
  return error.cause === undefined ? error.message : reasonOf(error.cause)
}

const notConnected = (url: string) => (error: HttpClientError.HttpClientError) =>
  unreachable(
    `Failed to reach ${url}: ${reasonOf(error)}.`,
    "Check that the service runs there. npm start starts one on this machine."
  )

interface RequestParts {
  readonly body?: object
  readonly query?: Readonly<Record<string, string | undefined>>
  /** Access token of the player who asks. */
  readonly token?: string
}

/** A request of `METHOD /path`. */
export const requestOf = (route: Route, { body, query = {}, token }: RequestParts = {}) => {
  const [method = "", path = ""] = route.split(" ")
  return HttpClientRequest.make(method as Method)(path).pipe(
    HttpClientRequest.setUrlParams(query),
    body === undefined ? identity : HttpClientRequest.bodyJsonUnsafe(body),
    token === undefined ? identity : HttpClientRequest.bearerToken(token)
  )
}

type Method = "DELETE" | "GET" | "POST" | "PUT"
export type Route = `${Method} /${string}`

/** Options of a request: how it is sent. */
interface SendOptions {
  readonly timeout?: Duration.Duration
  /** Shows no progress of its own. */
  readonly quiet?: boolean
  /** Message for a 404, where the user has named what the request is about. */
  readonly missing?: string
}

/** Sends a request and reads the response as text. */
export const send = Effect.fnUntraced(
  function* (
    url: string,
    request: HttpClientRequest.HttpClientRequest,
    { timeout = requestTimeout }: SendOptions = {}
  ) {
    const client = yield* HttpClient.HttpClient
    const { response, text } = yield* client.execute(request).pipe(
      Effect.flatMap((response) => Effect.map(response.text, (text) => ({ response, text }))),
      Effect.mapError(notConnected(url)),
      Effect.timeoutOrElse({
        duration: timeout,
        orElse: () =>
          Effect.fail(
            unreachable(
              `Failed to reach ${url}: no response within ${Duration.toSeconds(timeout)} seconds.`
            )
          )
      })
    )
    const to = response.headers["location"]
    if (response.status >= 300 && response.status < 400 && to !== undefined) {
      return yield* unreachable(`${url} redirects to ${to}.`, "Link that address instead.")
    }
    return { response, text }
  },
  Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" })
)

const unexpectedResponse = (url: string, status: number) =>
  unreachable(
    `${url} sent an unexpected response (status ${status}).`,
    "Check the address, and that the service is at least as new as this CLI."
  )

/** Decodes a response. */
export const read = Effect.fnUntraced(function* <A>(
  url: string,
  schema: Schema.Codec<A, unknown>,
  {
    response,
    text
  }: { readonly response: HttpClientResponse.HttpClientResponse; readonly text: string }
) {
  const value = Schema.decodeUnknownOption(Schema.fromJsonString(schema))(text)
  return yield* Effect.mapError(Effect.fromOption(value), () =>
    unexpectedResponse(url, response.status)
  )
})

/** The exit code for a refusal. Only of a busy or broken service a script may try the same again. */
const exitCodeOf = (status: number): ExitCode => {
  if (status === 401 || status === 403) return exitCodes.refused
  if (status === 429 || status >= 500) return exitCodes.unreachable
  return status === 400 ? exitCodes.usage : exitCodes.no
}

/** How to turn on what an error says is off. */
const switchOf = ({ code, details }: (typeof WireError.Type)["error"]): string | undefined => {
  const [, tool] = /^share_(\w+)_disabled$/.exec(code) ?? []
  if (tool !== undefined)
    return `Set share.${tool}.enabled to true in svc.config.json, then: svc config push`
  return code === "feature_disabled" && details?.feature !== undefined
    ? `svc feature on ${details.feature}   turns it on`
    : undefined
}

const requestRefused = (
  { keyFrom, url }: KeySource,
  status: number,
  { error }: typeof WireError.Type
) => {
  const way = switchOf(error)
  const isKey = exitCodeOf(status) === exitCodes.refused && way === undefined
  return new Failure({
    exitCode: exitCodeOf(status),
    code: error.code,
    message: `${url} refused the request: ${error.message} (${error.code})`,
    hints: [
      ...(error.details?.issues ?? []).map(({ message, path }) => `${path}: ${message}`),
      ...(way === undefined ? [] : [way]),
      ...(isKey ? [`The key came from ${keyFrom}.`] : [])
    ]
  })
}

/** Sends a request with the key of the target. Returns error bodies of the service as `error`. */
const sendRequest = Effect.fnUntraced(function* (
  target: KeySource,
  request: HttpClientRequest.HttpClientRequest,
  options: SendOptions = {}
) {
  const { secretKey, url } = target
  const sent = yield* request.pipe(
    HttpClientRequest.prependUrl(url),
    HttpClientRequest.acceptJson,
    HttpClientRequest.setHeader("x-svc-key", Redacted.value(secretKey)),
    (keyed) => send(url, keyed, options),
    (sent) => (options.quiet === true ? sent : withProgress(`Waiting for ${url}`, sent))
  )
  const { status } = sent.response
  if (status < 400) return { ...sent, error: Option.none() }
  const said = yield* read(url, WireError, sent)
  if (said.error.code === "not_found") {
    // Every path of the CLI exists: this means an older service, or another server.
    return yield* options.missing === undefined
      ? unexpectedResponse(url, status)
      : usageFailure(options.missing)
  }
  return { ...sent, error: Option.some(said) }
})

/** The same; fails when the service refuses the request. */
export const sendOk = Effect.fnUntraced(function* (
  target: KeySource,
  request: HttpClientRequest.HttpClientRequest,
  options: SendOptions = {}
) {
  const sent = yield* sendRequest(target, request, options)
  if (Option.isNone(sent.error)) return sent
  return yield* requestRefused(target, sent.response.status, sent.error.value)
})

/** Calls an endpoint that must succeed, and decodes its response. */
export const call = Effect.fnUntraced(function* <A>(
  target: KeySource,
  route: Route,
  schema: Schema.Codec<A, unknown>,
  options: RequestParts & SendOptions = {}
) {
  return yield* read(target.url, schema, yield* sendOk(target, requestOf(route, options), options))
})

/** `GET /v1/config`. */
export const readConfig = Effect.fnUntraced(function* (target: Target) {
  const sent = yield* sendOk(target, requestOf("GET /v1/config"))
  const document = yield* read(target.url, Schema.Json, sent)
  const version = Number(/^"(\d+)"$/.exec(sent.response.headers["etag"] ?? "")?.[1])
  if (!Number.isInteger(version)) return yield* unexpectedResponse(target.url, sent.response.status)
  const current: CurrentConfig = { document, version }
  return current
})

const Versions = Schema.Struct({ versions: Schema.Array(ConfigVersion) })

/** Number of past configs that a pull compares a file with. */
const recentMax = 10

/** Documents of the newest pushes, newest first. */
export const recentConfigs = Effect.fnUntraced(function* (target: Target) {
  const route = "GET /v1/config/versions"
  const { versions } = yield* call(target, route, Versions)
  return yield* Effect.forEach(versions.slice(0, recentMax), ({ configVersion }) =>
    call(target, `${route}/${configVersion}`, Schema.Json)
  )
})

/** Error codes of a push that concern the document, not the caller. */
const documentErrors = [
  "invalid_config",
  "config_conflict",
  "feature_unavailable",
  "payload_too_large"
]

/** `PUT /v1/config`, with `If-Match` unless `onto` is undefined. */
export const pushConfig = Effect.fnUntraced(function* (
  target: Target,
  document: Schema.Json,
  onto: number | undefined
) {
  const request = HttpClientRequest.put("/v1/config").pipe(
    HttpClientRequest.bodyJsonUnsafe(document),
    HttpClientRequest.setHeaders(onto === undefined ? {} : { "if-match": `"${onto}"` })
  )
  const sent = yield* sendRequest(target, request)
  if (Option.isNone(sent.error)) return yield* read(target.url, ConfigPushed, sent)
  const { code, details = {}, message } = sent.error.value.error
  if (!documentErrors.includes(code)) {
    return yield* requestRefused(target, sent.response.status, sent.error.value)
  }
  const { currentVersion, features = [], issues = [] } = details
  return yield* new PushRefused({
    code,
    message,
    problems: [
      ...issues,
      ...features.map((name) => featureUnavailableIssue(memberPath("features", name)))
    ],
    ...(currentVersion === undefined ? {} : { currentVersion })
  })
})

/** `GET /v1/admin/features`. */
export const readFeatures = (target: Target) =>
  Effect.map(call(target, "GET /v1/admin/features", Features), ({ features }) => features)

const Healthy = Schema.Struct({ status: Schema.Literal("ok") })

/** Fails unless this service answers at the address. */
export const probeService = Effect.fnUntraced(function* (url: string) {
  const request = HttpClientRequest.get(`${url}/healthz`)
  yield* read(url, Healthy, yield* withProgress(`Waiting for ${url}`, send(url, request)))
})
