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
import { call, requestOf } from "./service.ts"
import { nameOf, type Target } from "./target.ts"

const base = "/v1/admin/functions"

/** A bundle of 10 MB on a slow line, and its start on a busy machine. */
const deployTimeout = Duration.minutes(5)

export const readStatus = (target: Target) => call(target, `GET ${base}`, FunctionsStatus)

export const enable = (target: Target) =>
  call(target, `POST ${base}/enable`, FunctionsStatus, { body: {} })

export const disable = (target: Target) =>
  call(target, `POST ${base}/disable`, FunctionsStatus, { body: {} })

export const deploy = (target: Target, body: NewFunctionsDeployment) =>
  call(target, `POST ${base}/deployments`, FunctionsDeployment, { body, timeout: deployTimeout })

export const activate = (target: Target, version: number) =>
  call(target, `POST ${base}/deployments/${version}/activate`, FunctionsDeployment, { body: {} })

const Page = Schema.Struct({ deployments: Schema.Array(FunctionsDeployment) })

/** The kept versions, newest first. */
export const listDeployments = (target: Target) =>
  Effect.map(call(target, `GET ${base}/deployments?limit=100`, Page), (page) => page.deployments)

export const listSecrets = (target: Target) =>
  Effect.map(call(target, `GET ${base}/secrets`, FunctionsSecrets), ({ secrets }) => secrets)

const secretPath = (name: string) => `${base}/secrets/${encodeURIComponent(name)}` as const

export const putSecret = (target: Target, name: string, value: string) =>
  call(target, `PUT ${secretPath(name)}`, FunctionsSecretName, { body: { value } })

export const deleteSecret = (target: Target, name: string) =>
  call(target, `DELETE ${secretPath(name)}`, FunctionsSecretName)

const unknownStore = (target: Target, binding: string) => ({
  missing: `The live version in ${nameOf(target)} does not bind ${binding} in this way: see svc.functions.json.`
})

export const query = (target: Target, binding: string, sql: string) =>
  call(target, `POST ${base}/db/${encodeURIComponent(binding)}/query`, QueryResult, {
    body: { sql },
    ...unknownStore(target, binding)
  })

export const migrate = (
  target: Target,
  binding: string,
  migrations: ReadonlyArray<{ readonly name: string; readonly sql: string }>
) =>
  call(target, `POST ${base}/db/${encodeURIComponent(binding)}/migrate`, MigrationResult, {
    body: { migrations },
    ...unknownStore(target, binding)
  })

/** Store of entries, as in the path of its endpoints. */
export type EntryKind = "files" | "kv"

type EntryQuery = Readonly<Record<string, string | undefined>>

const entriesPath = (kind: EntryKind, binding: string) =>
  `${base}/${kind}/${encodeURIComponent(binding)}` as const

/** Lists the first page of keys or files. */
export const listEntries = (target: Target, kind: EntryKind, binding: string, query: EntryQuery) =>
  call(target, `GET ${entriesPath(kind, binding)}`, FunctionsEntryPage, {
    query,
    ...unknownStore(target, binding)
  })

/** Deletes keys or files, page after page; returns how many. */
export const deleteEntries = Effect.fnUntraced(function* (
  target: Target,
  kind: EntryKind,
  binding: string,
  query: EntryQuery
) {
  const route = `DELETE ${entriesPath(kind, binding)}` as const
  const options = { query, ...unknownStore(target, binding) }
  let deleted = 0
  for (;;) {
    const page = yield* call(target, route, FunctionsEntriesDeleted, options)
    deleted += page.deleted
    if (!page.more) return deleted
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
  let cursor: string | undefined
  do {
    const query = { name, cursor }
    const page = yield* call(target, `GET ${deadLetters}`, DeadLetterPage, { query })
    all.push(...page.deadLetters)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  return all
})

const deadLetterPath = (id: string) => `${deadLetters}/${encodeURIComponent(id)}` as const

const unknownDeadLetter = (target: Target, id: string) => ({
  missing: `There is no dead letter ${id} in ${nameOf(target)}. svc functions queues dead lists them.`
})

export const retryDeadLetter = (target: Target, id: string) =>
  call(target, `POST ${deadLetterPath(id)}/retry`, DeadLetterId, unknownDeadLetter(target, id))

export const deleteDeadLetter = (target: Target, id: string) =>
  call(target, `DELETE ${deadLetterPath(id)}`, DeadLetterId, unknownDeadLetter(target, id))

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
      const query = { after, follow: follow ? "true" : "false" }
      const request = requestOf(`GET ${base}/logs`, { query }).pipe(
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
