/**
 * The service as the CLI asks it: with the secret key of one environment, never following a redirect
 * (a key is for the address it was given for), and with every refusal turned into words.
 */
import { Duration, Effect, Option, Redacted, Schema } from "effect"
import {
  FetchHttpClient,
  HttpClient,
  type HttpClientError,
  HttpClientRequest,
  type HttpClientResponse
} from "effect/http"
import { ConfigPushed, FeatureState } from "#rpc/config"
import { memberPath } from "#rpc/config-document/paths"
import { Issue } from "#rpc/errors/codes"
import { type ExitCode, exitCodes, Failure } from "./failures.ts"
import { withProgress } from "./output.ts"
import type { Target } from "./target.ts"

/** The longest that a request may take. */
const requestTimeout = Duration.seconds(20)

/** An error as the service says it (spec section 7), as far as the CLI reads it. */
const WireError = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String,
    message: Schema.String,
    details: Schema.optionalKey(
      Schema.Struct({
        issues: Schema.optionalKey(Schema.Array(Issue)),
        features: Schema.optionalKey(Schema.Array(Schema.String)),
        currentVersion: Schema.optionalKey(Schema.Finite)
      })
    )
  })
})

/** The config in force. */
export interface CurrentConfig {
  readonly document: Schema.Json
  readonly version: number
}

const Features = Schema.Struct({ features: Schema.Array(FeatureState) })

/** A switch that this service does not let turn on. */
export const featureUnavailableIssue = (path: string): Issue => ({
  path,
  message: "is not offered by this service: take it out, or set it to false"
})

/** A push that the service refused; `problems` stand in the document, `currentVersion` in its way. */
export class PushRefused extends Schema.TaggedError<PushRefused>()("PushRefused", {
  code: Schema.String,
  message: Schema.String,
  problems: Schema.Array(Issue),
  currentVersion: Schema.optionalKey(Schema.Finite)
}) {}

const unreachable = (message: string, ...hints: ReadonlyArray<string>) =>
  new Failure({ exitCode: exitCodes.unreachable, code: "unreachable", message, hints })

const causes: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "its name cannot be looked up",
  ETIMEDOUT: "the connection timed out",
  ECONNRESET: "the connection was closed"
}

/** Why a connection failed: the innermost cause knows. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return "the connection failed"
  if ("code" in error && typeof error.code === "string") return causes[error.code] ?? error.code
  return error.cause === undefined ? error.message : reasonOf(error.cause)
}

const notConnected = (url: string) => (error: HttpClientError.HttpClientError) =>
  unreachable(
    `${url} cannot be reached: ${reasonOf(error)}.`,
    "Is the service running there? npm start runs one on this machine."
  )

/** Sends a request; whatever the answer, it has a text. */
const send = Effect.fnUntraced(
  function* (url: string, request: HttpClientRequest.HttpClientRequest) {
    const client = yield* HttpClient.HttpClient
    const { response, text } = yield* client.execute(request).pipe(
      Effect.flatMap((response) => Effect.map(response.text, (text) => ({ response, text }))),
      Effect.mapError(notConnected(url)),
      Effect.timeoutOrElse({
        duration: requestTimeout,
        orElse: () =>
          Effect.fail(
            unreachable(`${url} did not answer in ${Duration.toSeconds(requestTimeout)} seconds.`)
          )
      })
    )
    const to = response.headers["location"]
    if (response.status >= 300 && response.status < 400 && to !== undefined) {
      return yield* unreachable(
        `${url} redirects to ${to}.`,
        "Link the address that it redirects to."
      )
    }
    return { response, text }
  },
  Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" })
)

const unexpectedResponse = (url: string, status: number) =>
  unreachable(
    `${url} answers (${status}), but not as this service does.`,
    "Is the address right, and the service as new as this CLI?"
  )

const read = Effect.fnUntraced(function* <A>(
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

const exitCodeOf = (status: number): ExitCode =>
  status === 401 || status === 403 ? exitCodes.refused : exitCodes.unreachable

const requestRefused = (
  { keyFrom, url }: Target,
  status: number,
  { error }: typeof WireError.Type
) =>
  new Failure({
    exitCode: exitCodeOf(status),
    code: error.code,
    message: `${url} refuses: ${error.message} (${error.code})`,
    hints: exitCodeOf(status) === exitCodes.refused ? [`The key is that of ${keyFrom}.`] : []
  })

/** Asks with the key of the target; an error of the service is a failure. */
const sendRequest = Effect.fnUntraced(function* (
  target: Target,
  request: HttpClientRequest.HttpClientRequest
) {
  const { secretKey, url } = target
  const answer = yield* request.pipe(
    HttpClientRequest.prependUrl(url),
    HttpClientRequest.acceptJson,
    HttpClientRequest.setHeader("x-svc-key", Redacted.value(secretKey)),
    (keyed) => withProgress(`Waiting for ${url}`, send(url, keyed))
  )
  const { status } = answer.response
  if (status < 400) return { ...answer, error: Option.none() }
  // The CLI asks for nothing that may be missing: this is an older service, or none.
  if (status === 404) return yield* unexpectedResponse(url, status)
  const said = yield* read(url, WireError, answer)
  return { ...answer, error: Option.some(said) }
})

const sendOk = Effect.fnUntraced(function* (
  target: Target,
  request: HttpClientRequest.HttpClientRequest
) {
  const answer = yield* sendRequest(target, request)
  if (Option.isNone(answer.error)) return answer
  return yield* requestRefused(target, answer.response.status, answer.error.value)
})

/** `GET /v1/config`. */
export const readConfig = Effect.fnUntraced(function* (target: Target) {
  const answer = yield* sendOk(target, HttpClientRequest.get("/v1/config"))
  const document = yield* read(target.url, Schema.Json, answer)
  const version = Number(/^"(\d+)"$/.exec(answer.response.headers["etag"] ?? "")?.[1])
  if (!Number.isInteger(version))
    return yield* unexpectedResponse(target.url, answer.response.status)
  const inForce: CurrentConfig = { document, version }
  return inForce
})

/** The codes of a push that are about the document, and not about the caller. */
const documentErrors = [
  "invalid_config",
  "config_conflict",
  "feature_unavailable",
  "payload_too_large"
]

/** `PUT /v1/config`, onto one version alone unless that is undefined. */
export const pushConfig = Effect.fnUntraced(function* (
  target: Target,
  document: Schema.Json,
  onto: number | undefined
) {
  const request = HttpClientRequest.put("/v1/config").pipe(
    HttpClientRequest.bodyJsonUnsafe(document),
    HttpClientRequest.setHeaders(onto === undefined ? {} : { "if-match": `"${onto}"` })
  )
  const answer = yield* sendRequest(target, request)
  if (Option.isNone(answer.error)) return yield* read(target.url, ConfigPushed, answer)
  const { code, details = {}, message } = answer.error.value.error
  if (!documentErrors.includes(code)) {
    return yield* requestRefused(target, answer.response.status, answer.error.value)
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
export const readFeatures = Effect.fnUntraced(function* (target: Target) {
  const answer = yield* sendOk(target, HttpClientRequest.get("/v1/admin/features"))
  const { features } = yield* read(target.url, Features, answer)
  return features
})

const Healthy = Schema.Struct({ status: Schema.Literal("ok") })

/** Fails unless this service answers at an address. */
export const meet = Effect.fnUntraced(function* (url: string) {
  const request = HttpClientRequest.get(`${url}/healthz`)
  yield* read(url, Healthy, yield* withProgress(`Waiting for ${url}`, send(url, request)))
})
