/**
 * Codec of the JSON frames of `/v1/realtime`: `{ t, rid?, ...payload }` up, replies and events down. The
 * service checks the fields of a frame; the client checks what would close the socket. Pure.
 */
import { frameMaxBytes } from "#rpc/client-limits"
import { ClientError, fromWire, isRecord, jsonText } from "./errors.ts"
import type { ChannelEvent, Frames, RoomEvent, VoiceEvent, Warn, Welcome } from "./wire.ts"

/** The name of a client frame. */
export type Frame = keyof Frames

/** The payload of a frame. */
export type FramePayload<F extends Frame> = Frames[F]["payload"]

/** The data of a frame's reply. */
export type FrameData<F extends Frame> = Frames[F]["data"]

/** Every event of the service, except replies. */
export type ServerEvent = Welcome | Warn | RoomEvent | ChannelEvent | VoiceEvent

/** A reply to a frame with a `rid`. */
export interface Reply {
  readonly t: "reply"
  readonly rid: string
  readonly ok: boolean
  readonly data?: unknown
  readonly error?: unknown
}

/** Encodes a frame. Throws what the service would answer to a frame of this form or size. */
export const encodeFrame = <F extends Frame>(
  frame: F,
  payload: FramePayload<F>,
  rid?: string
): string => {
  const text = jsonText("invalid_frame", { ...payload, t: frame, rid })
  // A UTF-16 unit takes at most three bytes, so short texts need no encoding.
  if (text.length * 3 > frameMaxBytes && new TextEncoder().encode(text).length > frameMaxBytes) {
    const details = { limit: frameMaxBytes }
    throw new ClientError("payload_too_large", "The frame is too large.", details)
  }
  return text
}

/** Whether a key could reach an object's prototype. State with it never comes from the service. */
const reachesPrototype = (text: string): boolean => text.includes('"__proto__"')

const plainEvents: ReadonlyArray<string> = ["message", "channel_message", "signal"]

/** Whether the value has a type; the service promises the form of each. Receivers ignore unknown types. */
const isFrame = (value: unknown): value is Reply | ServerEvent =>
  isRecord(value) && typeof value["t"] === "string"

/** Parses a frame of the service; undefined if it is none. Fields and values may be newer than this client. */
export const decodeFrame = (text: string): Reply | ServerEvent | undefined => {
  try {
    const frame: unknown = JSON.parse(text)
    if (!isFrame(frame)) return undefined
    return reachesPrototype(text) && !plainEvents.includes(frame.t) ? undefined : frame
  } catch {
    return undefined
  }
}

export const unreadableReply = () =>
  new ClientError("unreadable_response", "Unreadable reply: update the client.")

/** Returns the data of a reply, or throws its error. */
export const readReply = <F extends Frame>(_frame: F, reply: Reply): FrameData<F> => {
  if (reply.ok && isRecord(reply.data)) return reply.data as FrameData<F>
  throw fromWire(reply.error) ?? unreadableReply()
}
