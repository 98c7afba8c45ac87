/** Calls of the service to one host: statements, migrations, crons, queues and hooks. */
import { Schema } from "effect"
import { NotFound, SqlError } from "#rpc/errors/codes"
import { functions } from "#rpc/functions/limits"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import type { FunctionBinding } from "../program.ts"
import {
  DeletedEntries,
  type DeliveryOutcome,
  EntryPage,
  type EntryPageQuery,
  type EntrySelection,
  type EntryStore,
  type FunctionHook,
  type Migration,
  MigrationResult,
  type QueuedMessage,
  SqlResult,
  type SqlValue
} from "../stored-data.ts"
import { thrownError } from "./failures.ts"
import type { FunctionHost } from "./host.ts"
import type { WorkerReply } from "./worker-http.ts"

const Refused = Schema.Struct({ error: Schema.String })
const decodeReply = Schema.decodeUnknownSync(Schema.Union([Refused, SqlResult]))
const decodeMigrated = Schema.decodeUnknownSync(MigrationResult)
const decodeEntries = Schema.decodeUnknownSync(EntryPage)
const decodeDeleted = Schema.decodeUnknownSync(DeletedEntries)

const Outcomes = Schema.Array(
  Schema.Struct({ retry: Schema.Boolean, delaySeconds: Schema.optionalKey(Schema.Finite) })
)
const decodeOutcomes = Schema.decodeUnknownSync(Outcomes)

/** Starts the process, and throws unless the live version has the store. */
const requireStore = async (
  host: FunctionHost,
  binding: string,
  its: FunctionBinding["type"]
): Promise<void> => {
  const { bindings } = await host.programNow()
  if (!bindings.some(({ name, type }) => name === binding && type === its)) throw new NotFound()
}

const successOf = ({ body, outcome }: WorkerReply, host: FunctionHost): unknown => {
  if (outcome !== "failed") return body
  throw thrownError(body, host.program?.isDevelopment === true)
}

export const query = async (
  host: FunctionHost,
  binding: string,
  sql: string,
  params: ReadonlyArray<SqlValue>
): Promise<SqlResult> => {
  await requireStore(host, binding, "db")
  const { body } = await host.administer({
    operation: "query",
    binding,
    sql,
    params,
    rowsMax: functionRuntime.queryRows
  })
  const reply = decodeReply(body)
  if ("error" in reply) throw new SqlError({ message: reply.error })
  if (reply.rowsAffected > 0 || reply.columns.length === 0) host.reclaim()
  return reply
}

export const migrate = async (
  host: FunctionHost,
  binding: string,
  migrations: ReadonlyArray<Migration>
): Promise<MigrationResult> => {
  await requireStore(host, binding, "db")
  const { body } = await host.administer({ operation: "migrate", binding, migrations })
  return decodeMigrated(body)
}

export const entries = async (
  host: FunctionHost,
  { binding, type }: EntryStore,
  { cursor, limit, prefix }: EntryPageQuery
): Promise<EntryPage> => {
  await requireStore(host, binding, type)
  const page = { prefix, limit, ...(cursor === null ? {} : { cursor }) }
  const { body } = await host.administer({ operation: "entries", binding, page })
  return decodeEntries(body)
}

export const deleteEntries = async (
  host: FunctionHost,
  { binding, type }: EntryStore,
  selection: EntrySelection
): Promise<DeletedEntries> => {
  await requireStore(host, binding, type)
  const limit = functions.entriesPerStep
  const operation = { operation: "deleteEntries", binding, limit, ...selection }
  let deleted = 0
  let more = true
  while (more && deleted < functions.entriesPerDelete) {
    const step = decodeDeleted((await host.administer(operation)).body)
    deleted += step.deleted
    more = step.more
  }
  host.reclaim()
  return { deleted, more }
}

export const scheduled = async (
  host: FunctionHost,
  cron: string,
  scheduledTime: number
): Promise<void> => {
  successOf(await host.call("scheduled", { cron, scheduledTime }), host)
}

/** Encodes a body for the entry point: text unchanged, bytes in base64. */
const bodyOf = ({ body, contentType }: QueuedMessage): string =>
  Buffer.from(body).toString(contentType === "bytes" ? "base64" : "utf8")

export const deliver = async (
  host: FunctionHost,
  queue: string,
  messages: ReadonlyArray<QueuedMessage>
): Promise<DeliveryOutcome> => {
  const reply = await host.call("queue", {
    queue,
    messages: messages.map((message) => ({
      id: message.id,
      timestamp: message.sentAt,
      attempts: message.attempts,
      contentType: message.contentType,
      body: bodyOf(message)
    }))
  })
  const outcomes = decodeOutcomes(successOf(reply, host))
  const retry = messages.flatMap(({ id }, index) => {
    const outcome = outcomes[index]
    if (outcome?.retry !== true) return []
    const { delaySeconds } = outcome
    return [delaySeconds === undefined ? { id } : { id, delaySeconds }]
  })
  return { retry }
}

export const hook = async (
  host: FunctionHost,
  name: FunctionHook,
  payload: unknown
): Promise<void> => {
  successOf(await host.call("hook", { name, payload }), host)
}
