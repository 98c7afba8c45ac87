/** A function that records everything that reaches its process, and a reader of its records. */
import { Effect, Schema } from "effect"

/**
 * Answers `/read/...` after it has read the body, and `/early/...` before that. Each answer names the call
 * and its player, in headers, too, for the answers without a body.
 */
export const recorderCode = `
  const records = []
  const note = (kind, rest) => records.push({ kind, ...rest })
  const hashOf = async (text) => {
    const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))
    return new Uint8Array(bytes).toHex()
  }
  export default {
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === "/records") return Response.json(records.splice(0))
      const headers = Object.fromEntries(request.headers)
      const player = headers["svc-player"] ?? null
      const record = { method: request.method, url: request.url, player, headers, bodyHash: null }
      note("fetch", record)
      const [, way, call] = pathname.split("/")
      const answer = { "x-call": String(call), "x-player": String(player), "x-method": request.method }
      if (way === "early") return Response.json(answer, { headers: answer })
      record.bodyHash = await hashOf(await request.text())
      return Response.json(answer, { headers: answer })
    },
    scheduled: ({ cron }) => note("scheduled", { cron }),
    queue: ({ messages, queue }) => note("queue", { queue, bodies: messages.map(({ body }) => body) })
  }
  export const onStats = (event) => note("hook", { event })`

const Fetched = Schema.Struct({
  kind: Schema.Literal("fetch"),
  method: Schema.String,
  url: Schema.String,
  player: Schema.NullOr(Schema.String),
  headers: Schema.Record(Schema.String, Schema.String),
  /** SHA-256 of the body; null if the function has not read it, or not to its end. */
  bodyHash: Schema.NullOr(Schema.String)
})
export type Fetched = typeof Fetched.Type

/** A call of a cron, a queue or a hook: nothing may cause one here. */
const Other = Schema.Struct({ kind: Schema.Literals(["scheduled", "queue", "hook"]) })
const Records = Schema.Array(Schema.Union([Fetched, Other]))
export type Recorded = (typeof Records.Type)[number]

const decode = Schema.decodeUnknownEffect(Records)

/** Takes the records that the function has made since the last time. */
export const takeRecords = (url: string): Effect.Effect<ReadonlyArray<Recorded>> =>
  Effect.promise(async () => {
    const response = await fetch(`${url}/records`)
    return (await response.json()) as unknown
  }).pipe(Effect.flatMap(decode), Effect.orDie)
