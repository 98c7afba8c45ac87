/** Random client frames: valid, with one invalid part, or such as no client sends. */
import { Result, Schema } from "effect"
import type { Rpc } from "effect/rpc"
import { InvalidFrame, RateLimited, Unauthorized, UnknownType } from "#rpc/errors/codes"
import { ClientFrames, closeCodes, Reply, ServerEvent } from "#rpc/realtime"
import type { Chance } from "../simulation/random.ts"
import { deeplyNested, hostileText, hostileValue } from "./hostile-values.ts"
import { JsonObject, stringify } from "./json.ts"
import { generateValue, JsonSchema, type Suggest } from "./schema-values.ts"

type Matches = (body: unknown) => boolean

interface FrameType {
  readonly t: string
  readonly shape: JsonSchema
  readonly success: Matches
  readonly error: Matches
}

const matches = (schema: Schema.Constraint): Matches => {
  const decode = Schema.decodeUnknownResult(
    Schema.toCodecJson(Schema.make<Schema.Codec<unknown>>(schema.ast))
  )
  return (body) => Result.isSuccess(decode(body))
}

/** Errors that any invalid frame may get. */
const matchesCommonError = matches(
  Schema.Union([InvalidFrame, UnknownType, RateLimited, Unauthorized])
)

const frameTypeOf = (rpc: Rpc.AnyWithProps): FrameType => ({
  t: rpc._tag,
  shape: Schema.decodeUnknownSync(JsonSchema)(
    Schema.toJsonSchemaDocument(rpc.payloadSchema).schema
  ),
  success: matches(rpc.successSchema),
  error: matches(rpc.errorSchema)
})

const frameTypes = new Map<string, FrameType>(
  Array.from(ClientFrames.requests.values(), (rpc) => [rpc._tag, frameTypeOf(rpc)])
)

/** Relative frequency by frame type; 1 by default. */
const weights: Readonly<Record<string, number>> = {
  send: 5,
  setState: 3,
  setMyState: 3,
  channelSend: 5,
  channelJoin: 3,
  join: 3,
  create: 2,
  signal: 2
}
const weightedTypes = Array.from(frameTypes.keys()).flatMap((t) =>
  Array.from({ length: weights[t] ?? 1 }, () => t)
)

/** Frames that join a room or a channel. */
const joiningTypes = ["create", "join", "join", "quickMatch", "channelCreate", "channelJoin"]

/** A frame to send. */
export interface FuzzFrame {
  /** The id that its reply carries; undefined when the frame gets no reply with an id. */
  readonly rid: string | undefined
  readonly t: string
  readonly data: string | Buffer
  /** The number of WebSocket fragments. */
  readonly pieces: number
  readonly binary: boolean
}

const unfragmented = { pieces: 1, binary: false } as const

const frameMaxBytes = 64 * 1024

const malformed: ReadonlyArray<(chance: Chance) => string | Buffer> = [
  () => "",
  () => "{",
  () => "null",
  () => '"auth"',
  () => "[]",
  () => '{"t":null}',
  () => '{"t":"voiceJoin","channel":"@a","rid":"v"}',
  () => '{"t":"__proto__","rid":"p"}',
  () => '{"t":"constructor","rid":"c"}',
  () => '{"t":"hasOwnProperty"}',
  () => '{"t":"ping","rid":7}',
  () => `{"t":"ping","rid":"${"r".repeat(65)}"}`,
  () => '{"t":"ping","t":"leave","rid":"twice"}',
  () => '{"__proto__":{"t":"ping","rid":"x"}}',
  () => '{"t":"Auth","token":"x.y.z","rid":"a"}',
  () => `{"t":"send","type":"x","data":${" ".repeat(2000)}1}`,
  () => `{"t":"send","rid":"d","type":"x","data":"${"é".repeat(8191)}"}`,
  () => `{"t":"send","rid":"d","type":"x","data":"${"x".repeat(16_385)}"}`,
  () => `{"t":"setState","rid":"s","patch":{"${"k".repeat(65)}":1}}`,
  () => `{"t":"setState","rid":"s","patch":{"a":${"1".repeat(400)}}}`,
  () => `{"t":"setMyState","rid":"s","patch":{"big":"${"x".repeat(17_000)}"}}`,
  () => `{"t":"setState","rid":"s","patch":{"constructor":{"prototype":{"isAdmin":true}}}}`,
  () => `{"t":"channelSend","rid":"c","channel":"@a","type":"${"x".repeat(65)}"}`,
  (chance) => `{"t":"send","rid":"n","type":"x","data":${deeplyNested(chance, 10_000)}}`,
  (chance) => `{"t":"setState","rid":"n","patch":{"a":${deeplyNested(chance, 33)}}}`,
  (chance) => deeplyNested(chance, 10_000),
  (chance) => JSON.stringify({ t: hostileText(chance), rid: hostileText(chance) }),
  (chance) => hostileText(chance),
  (chance) => stringify(hostileValue(chance))
]

/** Frames that make the service close the socket. */
const fatal: ReadonlyArray<(chance: Chance) => Pick<FuzzFrame, "data" | "pieces" | "binary">> = [
  (chance) => ({ data: Buffer.from(chance.bytes(20)), pieces: 1, binary: true }),
  () => ({ ...unfragmented, data: `{"t":"ping","x":"${"x".repeat(frameMaxBytes)}"}` }),
  () => ({ ...unfragmented, data: Buffer.from([0x22, 0xff, 0xc0, 0x80, 0xed, 0xa0, 0x80, 0x22]) }),
  () => ({ binary: false, pieces: 80, data: `{"t":"ping"}${" ".repeat(400)}` }),
  () => ({ ...unfragmented, data: '{"t":"auth","token":"x.y.z"}' })
]

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const typedFrame = (
  chance: Chance,
  t: string,
  suggest: Suggest,
  wrong: boolean,
  rid: string
): FuzzFrame => {
  const shape = frameTypes.get(t)?.shape ?? {}
  const payload = generateValue(
    chance,
    shape.type === "object" ? shape : { type: "object", properties: {} },
    suggest,
    wrong
  )
  const frame = new JsonObject()
  const members = payload instanceof JsonObject ? payload.entries : []
  const hasReply = chance.happens(0.8)
  frame.entries.push(["t", t], ...(hasReply ? [["rid", rid] as [string, string]] : []), ...members)
  const data = stringify(frame)
  return {
    ...unfragmented,
    rid: hasReply && isJson(data) ? rid : undefined,
    t,
    data,
    pieces: chance.happens(0.03) ? chance.integer(2, 60) : 1
  }
}

/** A random frame, the `n`th of its socket. */
export const randomFrame = (chance: Chance, suggest: Suggest, n: number): FuzzFrame => {
  const die = chance.fraction()
  const unknown = { ...unfragmented, rid: undefined, t: "", data: "" }
  if (die < 0.001) return { ...unknown, ...chance.pick(fatal)?.(chance) }
  if (die < 0.08) return { ...unknown, data: chance.pick(malformed)?.(chance) ?? "" }
  const t = chance.pick(n < 3 ? joiningTypes : weightedTypes) ?? "ping"
  return typedFrame(chance, t, suggest, die < 0.3, `r${n}`)
}

const decodeReply = Schema.decodeUnknownResult(Reply)
const isEvent = matches(ServerEvent)

/** Why a frame of the service is invalid; `asked` returns the type of frame that had a `rid`. */
export const faultOf = (
  received: unknown,
  asked: (rid: string) => string | undefined
): string | undefined => {
  const reply = decodeReply(received)
  if (Result.isFailure(reply)) return isEvent(received) ? undefined : "sends an unknown event"
  const { data, error, ok, rid } = reply.success
  const t = asked(rid)
  const kind = t === undefined ? undefined : frameTypes.get(t)
  if (ok)
    return kind === undefined || kind.success(data) ? undefined : `${t}: a reply of another type`
  const typed = { _tag: error?.code, ...error }
  if (error === undefined) return `${t}: a failed reply without an error`
  if (matchesCommonError(typed) || kind === undefined || kind.error(typed)) return undefined
  return `${t}: an undocumented error, ${error.code}`
}

/** The close codes of the service, and those of RFC 6455 for invalid frames: 1002, 1007, 1008, 1009. */
export const expectedCloseCodes: ReadonlySet<number> = new Set([
  1000,
  1002,
  1007,
  1008,
  1009,
  ...Object.values(closeCodes)
])
