/**
 * Frames of the JSON protocol, `{ t, rid?, ...payload }`: parses, decodes and dispatches them. Types,
 * payloads and errors come from the RPC group `ClientFrames`. A frame that does not fit gets an error
 * reply and never ends the connection.
 */
import { Result, Schema, SchemaIssue } from "effect"
import type { FeatureError, FeatureErrors } from "#rpc/config-document/feature-errors"
import { type CodedError, InvalidFrame, UnknownType } from "#rpc/errors/codes"
import { dataDepthMax, changedNumberOf, exceedsDepth, numberRule } from "#rpc/json"
import { ClientFrames, featureOfFrame, ridMaxCharacters } from "#rpc/realtime"
import { send } from "#rpc/rooms/frames"
import { roomLimits } from "#rpc/rooms/limits"
import type { ReplyCallback } from "#server/links/entity-link"
import {
  type FrameData,
  type FrameHandlers,
  type FramePayload,
  frameTable,
  type FrameType
} from "#server/links/frame-handler"
import { replyFrame } from "#server/links/reply-frames"
import type { FrameSink } from "#server/links/subscriber"

/** Returns the error of a frame whose feature the environment cannot use. */
export const frameFeatureError = (errors: FeatureErrors, t: string): FeatureError | undefined => {
  const feature = featureOfFrame(t)
  return feature && errors.get(feature)
}

/**
 * Returns the error of a socket in an environment that can use no feature with sockets: that of the
 * feature which the config can enable, if there is one.
 */
export const socketFeatureError = (errors: FeatureErrors): FeatureError | undefined => {
  const rooms = errors.get("multiplayer")
  const channels = errors.get("realtimeChannels")
  if (rooms === undefined || channels === undefined) return undefined
  return rooms._tag === "feature_disabled" ? rooms : channels
}

/** A frame that was refused, and the `rid` of the reply as far as it was readable. */
export interface FrameError {
  readonly rid: string | undefined
  readonly error: CodedError
}

export type FrameMembers = Readonly<Record<string, unknown>>

export interface FrameHead {
  readonly t: string
  readonly rid: string | undefined
}

const isObject = (value: unknown): value is FrameMembers =>
  typeof value === "object" && value !== null && !Array.isArray(value)

type Decoder<T extends FrameType> = (
  input: unknown
) => Result.Result<FramePayload<T>, Schema.SchemaError>

/**
 * Makes the decoder of a frame type. It stops at the first problem, which most frames do not have,
 * and then collects all of them.
 */
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

const decodeSend = decoderOf(send.payloadSchema)

/**
 * Decodes a message to all others, the most frequent frame, by hand: a quarter of the schema's time. The
 * schema decides everything else.
 */
export const sendPayload: Decoder<"send"> = (input) => {
  if (!isObject(input) || Object.hasOwn(input, "to") || exceedsDepth(input["data"], dataDepthMax)) {
    return decodeSend(input)
  }
  const { data, type } = input
  if (typeof type !== "string" || type.length === 0 || type.length > roomLimits.typeMaxCharacters) {
    return decodeSend(input)
  }
  return Result.succeed(Object.hasOwn(input, "data") ? { type, data } : { type })
}

type Decoders = { readonly [T in FrameType]: Decoder<T> }

/** The decoder of a frame's payload; a frame without fields ignores all members. */
function decoderFor<T extends FrameType>(t: T): Decoder<T>
function decoderFor(t: FrameType): (input: unknown) => Result.Result<unknown, Schema.SchemaError> {
  const schema = ClientFrames.requests.get(t)?.payloadSchema
  if (t === "send") return sendPayload
  if (schema === undefined || schema === Schema.Void) return () => Result.succeed(undefined)
  return decoderOf(schema)
}

const decoders = frameTable<Decoders>(decoderFor)

const isFrameType = (t: string): t is FrameType => Object.hasOwn(decoders, t)

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

/** The problems of a value, in the form of `details.issues`. */
export const issuesOf = (error: Schema.SchemaError) =>
  formatIssues(error.issue).issues.map((issue) => ({
    path: (issue.path ?? [])
      .map((segment) => String(typeof segment === "object" ? segment.key : segment))
      .join("."),
    message: issue.message
  }))

const invalid = (rid: string | undefined, path: string, message: string): FrameError => ({
  rid,
  error: InvalidFrame.at(path, message)
})

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Parses a frame's text into its members. Every number must reach the others as it was sent. */
export const parseFrame = (text: string): Result.Result<FrameMembers, FrameError> => {
  const value = parse(text)
  if (!isObject(value)) return Result.fail(invalid(undefined, "", "Expected a JSON object"))
  const changed = changedNumberOf(text)
  if (changed === undefined) return Result.succeed(value)
  return Result.fail(invalid(isRid(value["rid"]) ? value["rid"] : undefined, changed, numberRule))
}

const isRid = (rid: unknown): rid is string | undefined =>
  rid === undefined || (typeof rid === "string" && rid.length <= ridMaxCharacters)

/** The type of a frame, and the `rid` that its reply carries. */
export const frameHead = (members: FrameMembers): Result.Result<FrameHead, FrameError> => {
  const { rid, t } = members
  if (!isRid(rid)) {
    const limit = ridMaxCharacters
    return Result.fail(
      invalid(undefined, "rid", `Expected a string of at most ${limit} characters`)
    )
  }
  if (typeof t !== "string") return Result.fail(invalid(rid, "t", "Expected the frame's type"))
  return Result.succeed({ t, rid })
}

/** A connection that frames are dispatched for. */
interface FrameConnection {
  readonly sink: Pick<FrameSink, "push">
}

const dispatchKnown = <T extends FrameType, Connection extends FrameConnection>(
  handlers: FrameHandlers<Connection>,
  t: T,
  rid: string | undefined,
  members: FrameMembers,
  connection: Connection,
  frameBytes: number
): FrameError | undefined => {
  const payload = decoders[t](members)
  if (Result.isFailure(payload)) {
    const issues = issuesOf(payload.failure)
    const message = issues
      .map((issue) => (issue.path === "" ? issue.message : `${issue.path}: ${issue.message}`))
      .join("; ")
    return { rid, error: new InvalidFrame({ message, details: { issues } }) }
  }
  const onReply: ReplyCallback<FrameData<T>> | undefined =
    rid === undefined ? undefined : (result) => connection.sink.push(replyFrame(rid, result))
  handlers[t](connection, payload.success, onReply, frameBytes)
  return undefined
}

/** Dispatches a frame to its handler; returns why it was not, if so. */
export const dispatch = <Connection extends FrameConnection>(
  handlers: FrameHandlers<Connection>,
  head: FrameHead,
  members: FrameMembers,
  connection: Connection,
  frameBytes: number
): FrameError | undefined =>
  isFrameType(head.t)
    ? dispatchKnown(handlers, head.t, head.rid, members, connection, frameBytes)
    : {
        rid: head.rid,
        error: new UnknownType({ message: `No frame has the type "${head.t.slice(0, 64)}".` })
      }
