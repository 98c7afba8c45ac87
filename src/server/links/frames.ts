/**
 * The spec's JSON frames, decoded by the definitions of the RpcGroup: `{ t, rid?, ...payload }`. A
 * frame that does not fit is answered, never fatal (decisions 3.6.2, 3.6.3).
 */
import { Result, Schema, SchemaIssue } from "effect"
import type { Rpc, RpcGroup } from "effect/rpc"
import {
  channelCreate,
  channelJoin,
  channelLeave,
  channelModerate,
  channelSend
} from "#rpc/channels"
import { type CodedError, InvalidFrame, toWire, UnknownType } from "#rpc/errors/codes"
import { exceedsDepth } from "#rpc/json"
import { rooms, socket } from "#rpc/limits"
import { quickMatch } from "#rpc/matchmaking"
import { signal } from "#rpc/peers"
import type { ClientFrames, Reply, Warn } from "#rpc/realtime"
import { create, join, lock, resume, send, setMyState, setState } from "#rpc/rooms"
import { Frame } from "#server/platform/outbox"
import type { CommandResult, ReplyCallback } from "./entity-link.ts"
import type { PlayerConnection } from "./player-connection.ts"

/** Every frame as its `Rpc`. */
export type FrameRpc = RpcGroup.Rpcs<typeof ClientFrames>
export type FrameType = FrameRpc["_tag"]
export type FramePayload<T extends FrameType> = Rpc.Payload<Extract<FrameRpc, { _tag: T }>>
export type FrameData<T extends FrameType> = Rpc.Success<Extract<FrameRpc, { _tag: T }>>

/** Does what a frame asks; without `answered`, a failure comes as a warning. */
export type Handler<T extends FrameType, Connection = PlayerConnection> = (
  connection: Connection,
  payload: FramePayload<T>,
  answered: ReplyCallback<FrameData<T>> | undefined
) => void

export type FrameHandlers<Connection = PlayerConnection> = {
  readonly [T in FrameType]: Handler<T, Connection>
}

/** A frame that was not understood, and as far as it was readable, whom to answer. */
export interface FrameError {
  readonly rid: string | undefined
  readonly error: CodedError
}

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

type Decoder<T extends FrameType> = (
  input: unknown
) => Result.Result<FramePayload<T>, Schema.SchemaError>

/** Stops at the first problem, which most frames do not have; a frame that has one is told of all. */
const decoderOf = <S extends Schema.Constraint & { readonly DecodingServices: never }>(
  schema: S
): ((input: unknown) => Result.Result<S["Type"], Schema.SchemaError>) => {
  const first = Schema.decodeUnknownResult(schema)
  const all = Schema.decodeUnknownResult(schema, { errors: "all" })
  return (input) => {
    const decoded = first(input)
    return Result.isSuccess(decoded) ? decoded : all(input)
  }
}

/** A frame without fields takes whatever else stands beside its type. */
const noFields = (): Result.Result<void, never> => Result.succeed(undefined)

const decodeSend = decoderOf(send.payloadSchema)

/**
 * A message to all others is most of what sockets say. It is told by hand, for a fourth of the time;
 * what is not plainly one is the definition's to decide.
 */
export const sendPayload: Decoder<"send"> = (input) => {
  if (
    !isObject(input) ||
    Object.hasOwn(input, "to") ||
    exceedsDepth(input["data"], rooms.dataDepthMax)
  ) {
    return decodeSend(input)
  }
  const { data, type } = input
  if (typeof type !== "string" || type.length === 0 || type.length > rooms.typeMaxCharacters) {
    return decodeSend(input)
  }
  return Result.succeed(Object.hasOwn(input, "data") ? { type, data } : { type })
}

const decoders: { readonly [T in FrameType]: Decoder<T> } = {
  create: decoderOf(create.payloadSchema),
  join: decoderOf(join.payloadSchema),
  leave: noFields,
  resume: decoderOf(resume.payloadSchema),
  send: sendPayload,
  setState: decoderOf(setState.payloadSchema),
  setMyState: decoderOf(setMyState.payloadSchema),
  lock: decoderOf(lock.payloadSchema),
  quickMatch: decoderOf(quickMatch.payloadSchema),
  cancelMatch: noFields,
  signal: decoderOf(signal.payloadSchema),
  iceServers: noFields,
  channelJoin: decoderOf(channelJoin.payloadSchema),
  channelCreate: decoderOf(channelCreate.payloadSchema),
  channelLeave: decoderOf(channelLeave.payloadSchema),
  channelSend: decoderOf(channelSend.payloadSchema),
  channelModerate: decoderOf(channelModerate.payloadSchema),
  ping: noFields
}

const isFrameType = (t: string): t is FrameType => Object.hasOwn(decoders, t)

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

/** The problems of a value in the form of `details.issues`. */
export const issuesOf = (error: Schema.SchemaError) =>
  formatIssues(error.issue).issues.map((issue) => ({
    path: (issue.path ?? [])
      .map((segment) => String(typeof segment === "object" ? segment.key : segment))
      .join("."),
    message: issue.message
  }))

const invalid = (rid: string | undefined, path: string, message: string): FrameError => ({
  rid,
  error: new InvalidFrame({ message, details: { issues: [{ path, message }] } })
})

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The members of a frame, or what is wrong with it. */
export const parseFrame = (text: string): Result.Result<Members, FrameError> => {
  const value = parse(text)
  return isObject(value)
    ? Result.succeed(value)
    : Result.fail(invalid(undefined, "", "Expected a JSON object"))
}

/** The type of a frame and the number its reply carries. */
export const frameHead = (
  members: Members
): Result.Result<{ readonly t: string; readonly rid: string | undefined }, FrameError> => {
  const { rid, t } = members
  if (rid !== undefined && (typeof rid !== "string" || rid.length > socket.ridMaxCharacters)) {
    const limit = socket.ridMaxCharacters
    return Result.fail(
      invalid(undefined, "rid", `Expected a string of at most ${limit} characters`)
    )
  }
  if (typeof t !== "string") return Result.fail(invalid(rid, "t", "Expected the frame's type"))
  return Result.succeed({ t, rid })
}

interface Hearer {
  readonly push: (frame: Frame) => void
}

const dispatchKnown = <T extends FrameType, Connection extends Hearer>(
  handlers: FrameHandlers<Connection>,
  t: T,
  rid: string | undefined,
  members: Members,
  connection: Connection
): FrameError | undefined => {
  const payload = decoders[t](members)
  if (Result.isFailure(payload)) {
    const issues = issuesOf(payload.failure)
    const message = issues.map((issue) => `${issue.path}: ${issue.message}`).join("; ")
    return { rid, error: new InvalidFrame({ message, details: { issues } }) }
  }
  const answered: ReplyCallback<FrameData<T>> | undefined =
    rid === undefined ? undefined : (answer) => connection.push(replyFrame(rid, answer))
  handlers[t](connection, payload.success, answered)
  return undefined
}

/** Has a frame done; answers what is wrong with it, if it cannot be. */
export const dispatch = <Connection extends Hearer>(
  handlers: FrameHandlers<Connection>,
  head: { readonly t: string; readonly rid: string | undefined },
  members: Members,
  connection: Connection
): FrameError | undefined =>
  isFrameType(head.t)
    ? dispatchKnown(handlers, head.t, head.rid, members, connection)
    : {
        rid: head.rid,
        error: new UnknownType({ message: `No frame has the type "${head.t.slice(0, 64)}".` })
      }

/** A reply as it goes over the wire. */
export const replyFrame = (rid: string, answer: CommandResult<unknown>): Frame => {
  const reply: Reply = answer.ok
    ? { t: "reply", rid, ok: true, data: answer.data }
    : { t: "reply", rid, ok: false, error: toWire(answer.error) }
  return Frame.of(reply)
}

/** How a failure without `rid` is told. */
export const warnFrame = (error: CodedError): Frame => {
  const warning: Warn = { t: "warn", ...toWire(error) }
  return Frame.of(warning)
}
