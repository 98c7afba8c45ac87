/** The calls of all entities with their schemas, and values for them. */
import { assert } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { type Rpc, RpcSchema } from "effect/rpc"
import type { Channel } from "#entities/channel/protocol"
import type { MatchmakingQueue } from "#entities/matchmaking-queue/protocol"
import type { PlayerSessions } from "#entities/player-session/protocol"
import type { Room } from "#entities/room/protocol"
import type { VoiceSession } from "#entities/voice-session/protocol"

export type AnySchema = Schema.Codec<unknown, unknown>

/** Runs the check for generated values. */
export const forAll = Effect.fnUntraced(function* <A>(
  schema: Schema.Codec<A, unknown>,
  check: (value: A) => void
) {
  const values = yield* Arbitrary.sampleEffect(Arbitrary.schema(schema), { count: 100, size: 6 })
  assert.isAbove(values.length, 0)
  for (const value of values) check(value)
})

/** A call of an entity: what is sent, and what comes back. */
export interface Call {
  readonly name: string
  readonly payload: AnySchema
  readonly success: AnySchema
  readonly error: AnySchema
}

const callsOf = (
  entity: string,
  rpcs: ReadonlyMap<string, Rpc.AnyWithProps>
): ReadonlyArray<Call> =>
  Array.from(rpcs, ([tag, { errorSchema, payloadSchema, successSchema }]) => {
    const { error, success } = RpcSchema.isStreamSchema(successSchema)
      ? successSchema
      : { success: successSchema, error: errorSchema }
    return {
      name: `${entity}.${tag}`,
      payload: Schema.make(payloadSchema.ast),
      success: Schema.make(success.ast),
      error: Schema.make(error.ast)
    }
  })

/** The entities of a release. */
export interface Entities {
  readonly Room: typeof Room
  readonly Channel: typeof Channel
  readonly MatchmakingQueue: typeof MatchmakingQueue
  readonly PlayerSessions: typeof PlayerSessions
  /** Not in releases before voice. */
  readonly VoiceSession?: typeof VoiceSession
}

export const entityCalls = (entities: Entities): ReadonlyArray<Call> => [
  ...callsOf("Room", entities.Room.protocol.requests),
  ...callsOf("Channel", entities.Channel.protocol.requests),
  ...callsOf("MatchmakingQueue", entities.MatchmakingQueue.protocol.requests),
  ...callsOf("PlayerSessions", entities.PlayerSessions.protocol.requests),
  ...(entities.VoiceSession === undefined
    ? []
    : callsOf("VoiceSession", entities.VoiceSession.protocol.requests))
]
