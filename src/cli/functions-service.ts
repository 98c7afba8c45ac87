/** Calls of the CLI to the endpoints of Functions. */
import { Duration, Effect, Option, Redacted, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { type DeadLetter, DeadLetterId, DeadLetterPage } from "#rpc/functions/dead-letters"
import { FunctionsEntriesDeleted, FunctionsEntryPage } from "#rpc/functions/entries"
import { FunctionsDeployment, type NewFunctionsDeployment } from "#rpc/functions/deployment"
import {
  FunctionsLogLine,
  FunctionsSecretName,
  FunctionsSecrets,
  FunctionsStatus,
  MigrationResult,
  QueryResult
} from "#rpc/functions/responses"
import { exitCodes, Failure } from "./failures.ts"
import { read, sendAndRead, sendOk } from "./service.ts"
import { nameOf, type Target } from "./target.ts"

const base = "/v1/admin/functions"

const post = (path: string, body: unknown) =>
  HttpClientRequest.post(`${base}${path}`).pipe(HttpClientRequest.bodyJsonUnsafe(body))

/** A bundle of 10 MB on a slow line, and its start on a busy machine. */
const deployTimeout = Duration.minutes(5)

export const readStatus = (target: Target) =>
  sendAndRead(target, HttpClientRequest.get(base), FunctionsStatus)

export const enable = (target: Target) => sendAndRead(target, post("/enable", {}), FunctionsStatus)

export const disable = (target: Target) =>
  sendAndRead(target, post("/disable", {}), FunctionsStatus)

export const deploy = Effect.fnUntraced(function* (
  target: Target,
  deployment: NewFunctionsDeployment
) {
  const request = post("/deployments", deployment)
  const answer = yield* sendOk(target, request, { timeout: deployTimeout })
  return yield* read(target.url, FunctionsDeployment, answer)
})

export const activate = (target: Target, version: number) =>
  sendAndRead(target, post(`/deployments/${version}/activate`, {}), FunctionsDeployment)

const Page = Schema.Struct({ deployments: Schema.Array(FunctionsDeployment) })

/** The kept versions, newest first. */
export const listDeployments = Effect.fnUntraced(function* (target: Target) {
  const request = HttpClientRequest.get(`${base}/deployments?limit=100`)
  return (yield* sendAndRead(target, request, Page)).deployments
})

export const listSecrets = Effect.fnUntraced(function* (target: Target) {
  const request = HttpClientRequest.get(`${base}/secrets`)
  return (yield* sendAndRead(target, request, FunctionsSecrets)).secrets
})

const secretPath = (name: string): string => `${base}/secrets/${encodeURIComponent(name)}`

export const putSecret = (target: Target, name: string, value: string) =>
  sendAndRead(
    target,
    HttpClientRequest.put(secretPath(name)).pipe(HttpClientRequest.bodyJsonUnsafe({ value })),
    FunctionsSecretName
  )

export const deleteSecret = (target: Target, name: string) =>
  sendAndRead(target, HttpClientRequest.delete(secretPath(name)), FunctionsSecretName)

const unknownStore = (target: Target, binding: string) => ({
  missing: `The live version in ${nameOf(target)} does not bind ${binding} in this way: see svc.functions.json.`
})

export const query = (target: Target, binding: string, sql: string) =>
  sendAndRead(
    target,
    post(`/db/${encodeURIComponent(binding)}/query`, { sql }),
    QueryResult,
    unknownStore(target, binding)
  )

export const migrate = (
  target: Target,
  binding: string,
  migrations: ReadonlyArray<{ readonly name: string; readonly sql: string }>
) =>
  sendAndRead(
    target,
    post(`/db/${encodeURIComponent(binding)}/migrate`, { migrations }),
    MigrationResult,
    unknownStore(target, binding)
  )

/** Store of entries, as in the path of its endpoints. */
export type EntryKind = "files" | "kv"

type EntryQuery = Readonly<Record<string, string | undefined>>

const entriesPath = (kind: EntryKind, binding: string): string =>
  `${base}/${kind}/${encodeURIComponent(binding)}`

/** Lists the first page of keys or files. */
export const listEntries = (target: Target, kind: EntryKind, binding: string, query: EntryQuery) =>
  sendAndRead(
    target,
    HttpClientRequest.get(entriesPath(kind, binding)).pipe(HttpClientRequest.setUrlParams(query)),
    FunctionsEntryPage,
    unknownStore(target, binding)
  )

/** Deletes keys or files, page after page; returns how many. */
export const deleteEntries = Effect.fnUntraced(function* (
  target: Target,
  kind: EntryKind,
  binding: string,
  query: EntryQuery
) {
  const request = HttpClientRequest.delete(entriesPath(kind, binding)).pipe(
    HttpClientRequest.setUrlParams(query)
  )
  let deleted = 0
  for (;;) {
    const answer = yield* sendAndRead(
      target,
      request,
      FunctionsEntriesDeleted,
      unknownStore(target, binding)
    )
    deleted += answer.deleted
    if (!answer.more) return deleted
  }
})

const deadLetters = `${base}/dead-letters`

/**
 * Lists all dead letters, newest first. With the name of a queue or hook, it lists those of that
 * one.
 */
export const listDeadLetters = Effect.fnUntraced(function* (
  target: Target,
  name: string | undefined
) {
  const all: Array<DeadLetter> = []
  let cursor: string | null | undefined
  do {
    const request = HttpClientRequest.get(deadLetters).pipe(
      HttpClientRequest.setUrlParams({ name, cursor })
    )
    const page = yield* sendAndRead(target, request, DeadLetterPage)
    all.push(...page.deadLetters)
    cursor = page.nextCursor
  } while (cursor !== null)
  return all
})

const deadLetterPath = (id: string): string => `${deadLetters}/${encodeURIComponent(id)}`

const unknownDeadLetter = (target: Target, id: string) => ({
  missing: `There is no dead letter ${id} in ${nameOf(target)}. svc functions queues dead lists them.`
})

export const retryDeadLetter = (target: Target, id: string) => {
  const request = HttpClientRequest.post(`${deadLetterPath(id)}/retry`)
  return sendAndRead(target, request, DeadLetterId, unknownDeadLetter(target, id))
}

export const deleteDeadLetter = (target: Target, id: string) => {
  const request = HttpClientRequest.delete(deadLetterPath(id))
  return sendAndRead(target, request, DeadLetterId, unknownDeadLetter(target, id))
}

const decodeLine = Schema.decodeUnknownOption(Schema.fromJsonString(FunctionsLogLine))

const lost = (url: string) =>
  new Failure({
    exitCode: exitCodes.unreachable,
    code: "unreachable",
    message: `Lost the connection to ${url}.`
  })

/** Returns one response of log lines; with `follow` the response lasts a minute. */
export const streamLogs = (
  target: Target,
  options: { readonly after: string | undefined; readonly follow: boolean }
): Stream.Stream<FunctionsLogLine, Failure, HttpClient.HttpClient> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const client = yield* HttpClient.HttpClient
      const { after, follow } = options
      const request = HttpClientRequest.get(`${base}/logs`).pipe(
        HttpClientRequest.setUrlParams({ after, follow: follow ? "true" : "false" }),
        HttpClientRequest.prependUrl(target.url),
        HttpClientRequest.setHeader("x-svc-key", Redacted.value(target.secretKey))
      )
      const response = yield* client.execute(request)
      return response.stream.pipe(
        Stream.decodeText,
        Stream.splitLines,
        Stream.flatMap((line) => Stream.fromIterable(Option.toArray(decodeLine(line))))
      )
    })
  ).pipe(Stream.mapError(() => lost(target.url)))
