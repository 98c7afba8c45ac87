/** Client frames: as the definitions want them, with one thing wrong, or as no client would send them. */
import { Result, Schema } from "effect"
import type { Rpc } from "effect/rpc"
import { InvalidFrame, RateLimited, Unauthorized, UnknownType } from "#rpc/errors/codes"
import { ClientFrames, closeCodes, Reply, ServerEvent } from "#rpc/realtime"
import type { Chance } from "../simulation/random.ts"
import { deep, text, value } from "./hostile.ts"
import { Members, write } from "./json.ts"
import { grown, Shape, type Suggest } from "./shapes.ts"

type Known = (body: unknown) => boolean

interface Kind {
  readonly t: string
  readonly shape: Shape
  readonly success: Known
  readonly error: Known
}

const known = (schema: Schema.Constraint): Known => {
  const decode = Schema.decodeUnknownResult(
    Schema.toCodecJson(Schema.make<Schema.Codec<unknown>>(schema.ast))
  )
  return (body) => Result.isSuccess(decode(body))
}

/** What any frame may be answered that is not sound. */
const always = known(Schema.Union([InvalidFrame, UnknownType, RateLimited, Unauthorized]))

const kindOf = (rpc: Rpc.AnyWithProps): Kind => ({
  t: rpc._tag,
  shape: Schema.decodeUnknownSync(Shape)(Schema.toJsonSchemaDocument(rpc.payloadSchema).schema),
  success: known(rpc.successSchema),
  error: known(rpc.errorSchema)
})

const kinds = new Map<string, Kind>(
  Array.from(ClientFrames.requests.values(), (rpc) => [rpc._tag, kindOf(rpc)])
)

/** How often each is said, of all. */
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
const bag = Array.from(kinds.keys()).flatMap((t) =>
  Array.from({ length: weights[t] ?? 1 }, () => t)
)

/** How one comes into something. */
const openers = ["create", "join", "join", "quickMatch", "channelCreate", "channelJoin"]

/** A frame on its way. */
export interface Said {
  /** Who speaks is answered with this; none when the frame is such that it cannot be known. */
  readonly rid: string | undefined
  readonly t: string
  readonly data: string | Buffer
  /** Sent in so many pieces. */
  readonly pieces: number
  readonly binary: boolean
}

const plain = { pieces: 1, binary: false } as const

const frameMaxBytes = 64 * 1024

const broken: ReadonlyArray<(chance: Chance) => string | Buffer> = [
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
  (chance) => `{"t":"send","rid":"n","type":"x","data":${deep(chance, 10_000)}}`,
  (chance) => `{"t":"setState","rid":"n","patch":{"a":${deep(chance, 33)}}}`,
  (chance) => deep(chance, 10_000),
  (chance) => JSON.stringify({ t: text(chance), rid: text(chance) }),
  (chance) => text(chance),
  (chance) => write(value(chance))
]

/** Each ends the socket. */
const fatal: ReadonlyArray<(chance: Chance) => Pick<Said, "data" | "pieces" | "binary">> = [
  (chance) => ({ data: Buffer.from(chance.bytes(20)), pieces: 1, binary: true }),
  () => ({ ...plain, data: `{"t":"ping","x":"${"x".repeat(frameMaxBytes)}"}` }),
  () => ({ ...plain, data: Buffer.from([0x22, 0xff, 0xc0, 0x80, 0xed, 0xa0, 0x80, 0x22]) }),
  () => ({ binary: false, pieces: 80, data: `{"t":"ping"}${" ".repeat(400)}` }),
  () => ({ ...plain, data: '{"t":"auth","token":"x.y.z"}' })
]

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const named = (chance: Chance, t: string, suggest: Suggest, wrong: boolean, rid: string): Said => {
  const shape = kinds.get(t)?.shape ?? {}
  const payload = grown(
    chance,
    shape.type === "object" ? shape : { type: "object", properties: {} },
    suggest,
    wrong
  )
  const frame = new Members()
  const members = payload instanceof Members ? payload.entries : []
  const answered = chance.happens(0.8)
  frame.entries.push(["t", t], ...(answered ? [["rid", rid] as [string, string]] : []), ...members)
  const data = write(frame)
  return {
    ...plain,
    rid: answered && isJson(data) ? rid : undefined,
    t,
    data,
    pieces: chance.happens(0.03) ? chance.integer(2, 60) : 1
  }
}

/** Frame number `n` of a socket. */
export const frameOf = (chance: Chance, suggest: Suggest, n: number): Said => {
  const die = chance.fraction()
  const unknown = { ...plain, rid: undefined, t: "", data: "" }
  if (die < 0.001) return { ...unknown, ...chance.pick(fatal)?.(chance) }
  if (die < 0.08) return { ...unknown, data: chance.pick(broken)?.(chance) ?? "" }
  const t = chance.pick(n < 3 ? openers : bag) ?? "ping"
  return named(chance, t, suggest, die < 0.3, `r${n}`)
}

const decodeReply = Schema.decodeUnknownResult(Reply)
const isEvent = known(ServerEvent)

/** What is wrong with something that the service said; `asked`: the type of frame behind a `rid`. */
export const faultOf = (
  heard: unknown,
  asked: (rid: string) => string | undefined
): string | undefined => {
  const reply = decodeReply(heard)
  if (Result.isFailure(reply)) return isEvent(heard) ? undefined : "says what is no event"
  const { data, error, ok, rid } = reply.success
  const t = asked(rid)
  const kind = t === undefined ? undefined : kinds.get(t)
  if (ok) return kind === undefined || kind.success(data) ? undefined : `${t}: another success`
  const typed = { _tag: error?.code, ...error }
  if (error === undefined) return `${t}: no error`
  if (always(typed) || kind === undefined || kind.error(typed)) return undefined
  return `${t}: not one of its errors, ${error.code}`
}

/** Ours, and what RFC 6455 says of wrong frames: 1002, 1007, 1008, 1009. */
export const closings: ReadonlySet<number> = new Set([
  1000,
  1002,
  1007,
  1008,
  1009,
  ...Object.values(closeCodes)
])
