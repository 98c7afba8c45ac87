/**
 * Codec of the JSON frames of `/v1/realtime`, derived from the definitions: `{ t, rid?, ...payload }`
 * up, replies and events down. Pure.
 */
import { Option, Predicate, Result, Schema } from "effect"
import type { RpcGroup } from "effect/rpc"
import { InvalidFrame, PayloadTooLarge, UnknownType } from "#rpc/errors/codes"
import { socket } from "#rpc/limits"
import { type ClientFrames, Reply, ServerEvent } from "#rpc/realtime"
import { issuesOf, ServiceError } from "./errors.ts"

/** The definition of any client frame. */
export type Frame = RpcGroup.Rpcs<typeof ClientFrames>

/** The payload of a frame. */
export type FramePayload<R extends Frame> = R["payloadSchema"]["Type"]

/** The data of a frame's reply. */
export type FrameData<R extends Frame> = R["successSchema"]["Type"]

/** The errors of a frame's reply. */
export type FrameError<R extends Frame> =
  | R["errorSchema"]["Type"]
  | InvalidFrame
  | PayloadTooLarge
  | UnknownType
  | ServiceError

const bytes = new TextEncoder()

const stringify = (members: object): Result.Result<string, InvalidFrame> =>
  Result.try({
    try: () => JSON.stringify(members),
    catch: (cause) => new InvalidFrame({ message: `Not JSON: ${cause}`, details: { issues: [] } })
  })

/** Encodes a frame, or returns the error with which the service would refuse it. */
export const encodeFrame = <R extends Frame>(
  frame: R,
  payload: FramePayload<R>,
  rid?: string
): Result.Result<string, InvalidFrame | PayloadTooLarge> => {
  const encoded = Schema.encodeUnknownResult(frame.payloadSchema)(payload)
  if (Result.isFailure(encoded)) {
    const issues = issuesOf(encoded.failure)
    const message = issues.map((issue) => `${issue.path}: ${issue.message}`).join("; ")
    return Result.fail(new InvalidFrame({ message, details: { issues } }))
  }
  const members = Predicate.isObject(encoded.success) ? encoded.success : {}
  return Result.flatMap(stringify({ ...members, t: frame._tag, rid }), (text) =>
    // A UTF-16 unit takes at most three bytes, so short texts need no encoding.
    text.length * 3 > socket.frameMaxBytes && bytes.encode(text).length > socket.frameMaxBytes
      ? Result.fail(new PayloadTooLarge({ details: { limit: socket.frameMaxBytes } }))
      : Result.succeed(text)
  )
}

/** A frame that this client cannot decode: the service is newer. */
export interface UnknownFrame {
  readonly t: "unknown"
  /** The frame's `t`, if it has one. */
  readonly type: string | undefined
}

const decodeKnown = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Union([Reply, ...ServerEvent.members]))
)
const decodeType = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ t: Schema.String }))
)

/** Decodes a frame of the service. Unknown frames are not an error. */
export const decodeFrame = (text: string): Reply | ServerEvent | UnknownFrame =>
  Option.getOrElse(decodeKnown(text), (): UnknownFrame => {
    const type = Option.getOrUndefined(decodeType(text))?.t
    return { t: "unknown", type }
  })

const decodeCommonError = Schema.decodeUnknownOption(
  Schema.Union([InvalidFrame, PayloadTooLarge, UnknownType])
)

const readError = <R extends Frame>(frame: R, error: Reply["error"]): FrameError<R> => {
  const { code = "unknown", message = "The service gave no reason.", ...rest } = error ?? {}
  const tagged = { _tag: code, message, ...rest }
  return Schema.decodeUnknownOption(frame.errorSchema)(tagged).pipe(
    Option.orElse((): Option.Option<FrameError<R>> => decodeCommonError(tagged)),
    Option.getOrElse(() => new ServiceError({ code, message, ...rest }))
  )
}

/** Decodes a reply: the data of the frame, or the error as an instance of its class. */
export const readReply = <R extends Frame>(
  frame: R,
  reply: Reply
): Result.Result<FrameData<R>, FrameError<R>> => {
  if (!reply.ok) return Result.fail(readError(frame, reply.error))
  return Result.mapError(
    Schema.decodeUnknownResult(frame.successSchema)(reply.data),
    ({ message }) => new ServiceError({ code: "unreadable_reply", message })
  )
}
