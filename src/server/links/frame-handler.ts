/** Handlers of player frames: their types, and what they share. */
import type { Rpc, RpcGroup } from "effect/rpc"
import { type CodedError, PayloadTooLarge } from "#rpc/errors/codes"
import { ClientFrames } from "#rpc/realtime"
import { jsonBytes } from "#entities/json-bytes"
import type { ReplyCallback } from "./entity-link.ts"
import type { PlayerConnection } from "./player-connection.ts"

/** Union of all frames as `Rpc`. */
export type FrameRpc = RpcGroup.Rpcs<typeof ClientFrames>
export type FrameType = FrameRpc["_tag"]
type RpcOf<T extends FrameType> = Extract<FrameRpc, { readonly _tag: T }>
export type FramePayload<T extends FrameType> = Rpc.Payload<RpcOf<T>>
export type FrameData<T extends FrameType> = Rpc.Success<RpcOf<T>>
export type FrameFailure<T extends FrameType> = Rpc.Error<RpcOf<T>>

/**
 * Handles a frame. Without `onReply`, a failure becomes a warning. `frameBytes` is the size of the whole
 * frame; infinite where it is not known.
 */
export type Handler<T extends FrameType, Connection = PlayerConnection> = (
  connection: Connection,
  payload: FramePayload<T>,
  onReply: ReplyCallback<FrameData<T>> | undefined,
  frameBytes: number
) => void

export type FrameHandlers<Connection = PlayerConnection> = {
  readonly [T in FrameType]: Handler<T, Connection>
}

/**
 * Builds a table with an entry for each frame type. `entry` must return the entry of the type it is
 * given: TypeScript cannot check that.
 */
export function frameTable<Table extends { readonly [T in FrameType]: unknown }>(
  entry: (t: FrameType) => unknown
): Table
export function frameTable(entry: (t: FrameType) => unknown): object {
  const entries = Array.from(ClientFrames.requests.values(), ({ _tag: t }) => [t, entry(t)])
  return Object.fromEntries(entries)
}

/** Replies with an error; a frame without `rid` gets a warning. */
export const refuse = (
  connection: { readonly warn: (error: CodedError) => void },
  onReply: ReplyCallback<never> | undefined,
  error: CodedError
): void => {
  if (onReply === undefined) connection.warn(error)
  else onReply({ ok: false, error })
}

/** The error of data that takes more bytes than `limit`; a smaller frame needs no measuring. */
export const oversized = (
  frameBytes: number,
  data: unknown,
  limit: number
): PayloadTooLarge | undefined =>
  frameBytes > limit && jsonBytes(data) > limit
    ? new PayloadTooLarge({ details: { limit } })
    : undefined
