/**
 * The AsyncAPI 3 document of the socket, generated from the definitions of frames and events. Its
 * actions are those of the service: it receives frames, and sends replies and events.
 */
import { Context, JsonSchema, Option, Schema, SchemaAST } from "effect"
import { OpenApi } from "effect/http-api"
import type { Rpc } from "effect/rpc"
import {
  authDescription,
  authExamples,
  closeCodeList,
  security,
  securitySchemes,
  unreadableCodes
} from "./asyncapi-handshake.ts"
import { exampleOf } from "./openapi/examples.ts"
import { itemsOf, type Json, member, pascalCase, refName } from "./openapi/json.ts"
import { paths } from "./paths.ts"
import { AuthFrame, ClientFrames, EventsError, Reply, ServerEvent } from "./realtime.ts"

const channel = "realtime"

const component = (kind: string, name: string): Json => ({ $ref: `#/components/${kind}/${name}` })

const inChannel = (name: string): Json => ({ $ref: `#/channels/${channel}/messages/${name}` })

/** Descriptions of events whose name does not say it all. */
const eventDescriptions: Readonly<Record<string, string>> = {
  welcome: "The reply to `auth`: the connection is open.",
  warn: "A problem without a call to reject: a failed frame without `rid`, or a token about to expire.",
  room_joined:
    "The whole room. It precedes the reply to `create`, `join`, `resume` and `quickMatch`.",
  state: "Keys of the room's state have changed; null deletes a key.",
  player_state: "Keys of a member's own state have changed; null deletes a key.",
  signal: "A WebRTC signal from another member of a peer-to-peer room.",
  channel_joined: "The whole view of a channel. It replaces what the client had.",
  channel_players: "Joins and leaves of a large channel. Apply `left` before `joined`.",
  channel_self: "What this player may do in the channel.",
  voice_state: "All members of a call, at most four times a second.",
  voice_sfu_offer: "The media server's offer, without candidates. Answer with `voiceAnswer`.",
  voice_speaking: "Who is on each slot of the media server that has changed.",
  voice_closed: "The call has ended for this member."
}

interface Message {
  readonly name: string
  readonly summary: string
  readonly description?: string
  readonly payload: unknown
  readonly examples?: ReadonlyArray<Json>
}

/** Collects the named schemas that payloads refer to. */
class Schemas {
  readonly named: Record<string, unknown> = {}

  /** The JSON Schema of a type, open to new fields where the service sends it. */
  of(schema: Schema.Constraint): Json {
    const document = JsonSchema.toDocumentDraft07(Schema.toJsonSchemaDocument(schema))
    for (const [name, definition] of Object.entries(document.definitions)) {
      this.named[name] = replaceRefs(definition)
    }
    return Object(replaceRefs(document.schema))
  }
}

const replaceRefs = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(replaceRefs)
  if (typeof value !== "object" || value === null) return value
  const name = refName(value)
  if (name !== undefined) return component("schemas", name)
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, replaceRefs(inner)]))
}

const object = (properties: Json, required: ReadonlyArray<string>): Json => ({
  type: "object",
  properties,
  required
})

const text = { type: "string" }

/** A frame: its fields beside `t` and `rid`. */
const frameOf = (rpc: Rpc.AnyWithProps, schemas: Schemas): Message => {
  const payload = schemas.of(rpc.payloadSchema)
  const required = Array.isArray(payload["required"]) ? payload["required"] : []
  const summary = Context.getOption(rpc.annotations, OpenApi.Summary)
  return {
    name: rpc._tag,
    summary: Option.getOrElse(summary, () => rpc._tag),
    payload: object(
      {
        t: { const: rpc._tag },
        rid: component("schemas", "Rid"),
        ...Object(payload["properties"])
      },
      ["t", ...required]
    )
  }
}

/** The error codes of a schema. */
export const codesOf = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(codesOf)
  const name = ast.annotations?.["identifier"]
  return typeof name === "string" ? [name] : []
}

/** The reply to a frame with a `rid`: data, or an error with one of the codes. */
const replyOf = (name: string, codes: ReadonlyArray<string>, data: Json): Message => {
  const choices = Array.from(new Set([...codes, ...unreadableCodes]))
  const error = object({ code: { type: "string", enum: choices }, message: text, details: {} }, [
    "code",
    "message"
  ])
  const fields = { t: { const: "reply" }, rid: component("schemas", "Rid") }
  const [done, failed] = [{ const: true }, { const: false }]
  const forms = [
    object({ ...fields, ok: done, data }, ["t", "rid", "ok"]),
    object({ ...fields, ok: failed, error }, ["t", "rid", "ok", "error"])
  ]
  return { name: `${name}_reply`, summary: `The reply to \`${name}\`.`, payload: { oneOf: forms } }
}

/**
 * Messages for all events. Events that rooms and channels share are one message. Some bear the name
 * of a frame.
 */
const eventsOf = (schemas: Schemas): ReadonlyArray<Message> => {
  const payloads = new Map<string, Array<Json>>()
  for (const event of ServerEvent.members) {
    const name = event.fields.t.literal
    payloads.set(name, [...(payloads.get(name) ?? []), schemas.of(event)])
  }
  return Array.from(payloads, ([name, forms]) => ({
    name: ClientFrames.requests.has(name) ? `${name}_event` : name,
    summary: eventDescriptions[name] ?? `The event \`${name}\`.`,
    payload: forms.length === 1 ? forms[0] : { anyOf: forms }
  }))
}

/** An example of each form of a message: of a reply also the failure. */
const examplesOf = ({ name, payload }: Message, named: unknown): ReadonlyArray<Json> => {
  const forms = itemsOf(member(payload, "oneOf") ?? member(payload, "anyOf"))
  return (forms.length === 0 ? [payload] : forms).map((form, index) => ({
    name: index === 0 ? name : `${name}_${index + 1}`,
    payload: exampleOf(form, named)
  }))
}

const messageOf = (named: unknown) => (message: Message) =>
  [
    message.name,
    {
      name: message.name,
      summary: message.summary,
      ...(message.description === undefined ? {} : { description: message.description }),
      contentType: "application/json",
      payload: message.payload,
      examples: message.examples ?? examplesOf(message, named)
    }
  ] as const

const receives = (frame: Message) => ({
  action: "receive",
  channel: { $ref: `#/channels/${channel}` },
  summary: frame.summary,
  messages: [inChannel(frame.name)],
  reply: {
    channel: { $ref: `#/channels/${channel}` },
    messages: [...(frame.name === "auth" ? ["welcome"] : []), `${frame.name}_reply`].map(inChannel)
  }
})

const description = `The realtime socket of the player backend: rooms, matchmaking and channels.
Send \`auth\` within five seconds; the service replies with \`welcome\`. A frame with a \`rid\` gets one
reply. Events arrive in the order in which they happened in their room or channel.`

const servers = {
  local: {
    host: "localhost:8080",
    protocol: "ws",
    description: "A service on this machine",
    security
  },
  deployment: {
    host: "{host}",
    protocol: "wss",
    security,
    variables: { host: { description: "The host of your deployment" } }
  }
}

/** The document as JSON. */
export const asyncapiDocument = (): Json => {
  const schemas = new Schemas()
  const rpcs = Array.from(ClientFrames.requests.values())
  const auth = {
    name: "auth",
    summary: "Authenticate the connection, and renew its token.",
    description: authDescription,
    payload: schemas.of(AuthFrame),
    examples: authExamples
  }
  const frames = [auth, ...rpcs.map((rpc) => frameOf(rpc, schemas))]
  const replies = [
    replyOf("auth", codesOf(EventsError.ast), object({}, [])),
    ...rpcs.map((rpc) =>
      replyOf(rpc._tag, codesOf(rpc.errorSchema.ast), schemas.of(rpc.successSchema))
    )
  ]
  const events = eventsOf(schemas)
  const messages = [...frames, ...replies, ...events]
  schemas.named["Rid"] = {
    ...schemas.of(Reply.fields.rid),
    description: "Your id of the frame. The reply repeats it.",
    examples: ["1"]
  }
  return {
    asyncapi: "3.1.0",
    info: {
      title: "Player backend",
      version: "1",
      description,
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" }
    },
    defaultContentType: "application/json",
    servers,
    channels: {
      [channel]: {
        address: paths.realtime,
        description: "One socket per player. A newer one replaces it.",
        "x-close-codes": closeCodeList,
        messages: Object.fromEntries(
          messages.map(({ name }) => [name, component("messages", name)])
        )
      }
    },
    operations: {
      ...Object.fromEntries(
        frames.map((frame) => [`receive${pascalCase(frame.name)}`, receives(frame)])
      ),
      sendEvents: {
        action: "send",
        channel: { $ref: `#/channels/${channel}` },
        summary: "Everything that happens in the player's room and channels.",
        messages: events.map(({ name }) => inChannel(name))
      }
    },
    components: {
      schemas: schemas.named,
      securitySchemes,
      messages: Object.fromEntries(messages.map(messageOf(schemas.named)))
    }
  }
}
