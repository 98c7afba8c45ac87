/**
 * The reference of the realtime protocol as Markdown, generated from the definitions: frames with their
 * fields, replies and error codes, events, close codes. It appears on the API page and in the OpenAPI
 * document.
 */
import { Context, Schema, SchemaAST } from "effect"
import type { Rpc } from "effect/rpc"
import { OpenApi } from "effect/http-api"
import { channelLimits } from "./channels/limits.ts"
import { isJson, member, refName } from "./openapi/json.ts"
import { ClientFrames, type CloseCode, closeCodes, ServerEvent } from "./realtime.ts"
import { commonFrameErrors } from "./frames.ts"

const typeName = (schema: unknown, named: unknown): string => {
  const ref = refName(schema)
  if (ref !== undefined) return typeName(member(named, ref), named)
  const choices = member(schema, "enum")
  if (Array.isArray(choices)) return choices.map((choice) => `\`${String(choice)}\``).join(" or ")
  const either = member(schema, "anyOf")
  if (Array.isArray(either)) return either.map((one) => typeName(one, named)).join(" or ")
  const type = member(schema, "type")
  if (type === "array") return `array of ${typeName(member(schema, "items"), named)}`
  return typeof type === "string" ? type : "any"
}

const fields = (schema: Schema.Constraint, without: ReadonlySet<string> = new Set()): string => {
  const { definitions, schema: document } = Schema.toJsonSchemaDocument(schema)
  const properties = member(document, "properties")
  if (!isJson(properties)) return "none"
  const required = member(document, "required")
  const isRequired = (name: string) => Array.isArray(required) && required.includes(name)
  const listed = Object.entries(properties)
    .filter(([name]) => !without.has(name))
    .map(
      ([name, type]) => `\`${name}${isRequired(name) ? "" : "?"}\` ${typeName(type, definitions)}`
    )
  return listed.length === 0 ? "none" : listed.join(", ")
}

const identifiers = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(identifiers)
  const name = ast.annotations?.["identifier"]
  return typeof name === "string" ? [name] : []
}

const commonCodes: ReadonlySet<string> = new Set(commonFrameErrors.map((error) => error.identifier))

const codes = (names: Iterable<string>): string =>
  Array.from(names, (name) => `\`${name}\``).join(", ")

const frameRow = (rpc: Rpc.AnyWithProps): string => {
  const summary = Context.getOption(rpc.annotations, OpenApi.Summary)
  const own = identifiers(rpc.errorSchema.ast).filter((code) => !commonCodes.has(code))
  return [
    `\`${rpc._tag}\``,
    summary._tag === "Some" ? summary.value : "",
    fields(rpc.payloadSchema),
    fields(rpc.successSchema),
    codes(own) || "none"
  ].join(" | ")
}

const type = new Set(["t"])

const eventRow = (event: (typeof ServerEvent.members)[number]): string =>
  `\`${event.fields.t.literal}\` | ${fields(event, type)}`

/** What each close code means, and what the client does next. */
export const closeMeanings: Readonly<Record<CloseCode, string>> = {
  [closeCodes.unauthorized]:
    "Bad first frame, foreign token, session or key revoked: sign in again. With the reason `timed_out`: reconnect.",
  [closeCodes.tokenExpired]: "The access token expired: refresh and reconnect.",
  [closeCodes.forbidden]: "Banned, origin not allowed, or feature off: do not reconnect.",
  [closeCodes.replaced]: "A newer connection of this player took over: do not reconnect.",
  [closeCodes.idle]: "Neither pong nor frame for 45 seconds: reconnect.",
  [closeCodes.abuse]: "Far too many frames: back off, then reconnect.",
  [closeCodes.draining]:
    "The node is draining and the seat is kept: reconnect after a random part of a second.",
  [closeCodes.slowConsumer]: "The client reads too slowly: reconnect.",
  [closeCodes.unsupported]: "The client sent a binary frame: send text frames only."
}

const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<string>): string =>
  [
    `| ${head.join(" | ")} |`,
    `|${head.map(() => " --- |").join("")}`,
    ...rows.map((row) => `| ${row} |`)
  ].join("\n")

/** Returns the Markdown text. */
export const realtimeReference = (): string => `
## Realtime: \`GET /v1/realtime\` (WebSocket)

The first frame, within five seconds: \`{ "t": "auth", "key": "pk_...", "token": "<access token>" }\`.
The service replies with \`welcome\`. A connection without a player sends
\`{ "t": "auth", "key": "pk_...", "anon": true }\`. It may join channels that the server has opened,
and only receives. Every frame is a JSON object with its type in \`t\`. With a \`rid\` (a string of up
to 64 characters) the service replies \`{ "t": "reply", "rid", "ok", "data" | "error" }\`. Without one,
success sends nothing and failure sends \`warn\`. TypeScript servers may call the same procedures as
Effect RPC over WebSocket at \`/v1/rpc\`.

### Frames

Any frame may fail with ${codes(commonCodes)}, and with \`invalid_frame\` or \`unknown_type\` when it is malformed.

${table(
  ["`t`", "description", "fields", "reply data", "error codes"],
  Array.from(ClientFrames.requests.values(), frameRow)
)}

### Events

${table(["`t`", "fields"], ServerEvent.members.map(eventRow))}

In a channel of more than ${channelLimits.largeAudience} sockets (anonymous ones included) the service sends
joins and leaves in batches, at most once a second: \`channel_players\` instead of
\`channel_player_joined\` and \`channel_player_left\`. Apply \`left\` before \`joined\`. Ignore a join of
a known player and a leave of an unknown one. \`player_updated\` carries a new display name, in channels
with the field \`channel\`. \`channel_joined\` replaces the whole view; the service
sends it again when the channel has moved to another runner.

### Close codes

${table(
  ["code", "meaning and remedy"],
  Object.entries(closeMeanings).map((row) => row.join(" | "))
)}
`
