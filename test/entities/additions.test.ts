/**
 * What a newer runner may add to the calls, batches and events of entities: an older runner ignores
 * it. The tests encode with the schemas of a newer release and decode with those of this one.
 */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { SchemaBinary } from "effect/encoding"
import { type Rpc, RpcSchema } from "effect/rpc"
import { ChannelInput, ChannelOutput } from "#entities/channel/messages"
import { Channel } from "#entities/channel/protocol"
import { MatchmakingQueue, QueueInput, QueueOutput } from "#entities/matchmaking-queue/protocol"
import {
  PlayerSessions,
  Present,
  SessionInput,
  SessionOutput
} from "#entities/player-session/protocol"
import { OpenRoom, RoomInput, RoomOutput } from "#entities/room/messages"
import { Room } from "#entities/room/protocol"
import { widened, withAddition, withoutAddition } from "../support/additions.ts"

type AnySchema = Schema.Codec<unknown, unknown>

/** Runs the check for generated values. */
const forAll = Effect.fnUntraced(function* <A>(
  schema: Schema.Codec<A, unknown>,
  check: (value: A) => void
) {
  const values = yield* Arbitrary.sampleEffect(Arbitrary.schema(schema), { count: 100, size: 6 })
  assert.isAbove(values.length, 0)
  for (const value of values) check(value)
})

/** A call of an entity: what is sent, and what comes back. */
interface Call {
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

const calls = [
  ...callsOf("Room", Room.protocol.requests),
  ...callsOf("Channel", Channel.protocol.requests),
  ...callsOf("MatchmakingQueue", MatchmakingQueue.protocol.requests),
  ...callsOf("PlayerSessions", PlayerSessions.protocol.requests)
]

/** Messages that travel as JSON text. */
const messages: Readonly<Record<string, AnySchema>> = {
  RoomInput,
  RoomOutput,
  OpenRoom,
  ChannelInput,
  ChannelOutput,
  QueueInput,
  QueueOutput,
  SessionInput,
  SessionOutput,
  Present
}

class LaterError extends Schema.TaggedError<LaterError>()("later", { message: Schema.String }) {}

/** An older runner decodes what a newer one has encoded as if its own release had encoded it. */
const assertSame = (decoded: unknown, expected: unknown): void =>
  assert.deepStrictEqual(withoutAddition(decoded), withoutAddition(expected))

describe("an older runner", () => {
  it.effect.each(Object.entries(messages))("ignores fields that are added to a %s", ([, schema]) =>
    forAll(schema, (value) => {
      const decode = Schema.decodeUnknownSync(schema)
      const message: unknown = JSON.parse(JSON.stringify(Schema.encodeSync(schema)(value)))
      assertSame(decode(withAddition(message)), decode(message))
    })
  )

  it.effect.each(calls)("ignores fields that are added to the call $name", (call) =>
    Effect.forEach([call.payload, call.success, call.error], (schema) => {
      const older = SchemaBinary.toCodec(schema)
      const newer = SchemaBinary.toCodec(widened(schema))
      const decode = Schema.decodeSync(older)
      return forAll(schema, (value) => {
        const later = Schema.encodeSync(newer)(withAddition(Schema.encodeSync(schema)(value)))
        assertSame(decode(later), decode(Schema.encodeSync(older)(value)))
      })
    })
  )

  it.effect.each(calls)("knows its errors of the call $name when one is added", ({ error }) => {
    const older = SchemaBinary.toCodec(error)
    const newer = SchemaBinary.toCodec(Schema.Union([LaterError, error]))
    const decode = Schema.decodeSync(older)
    return forAll(error, (value) => {
      assertSame(decode(Schema.encodeSync(newer)(value)), decode(Schema.encodeSync(older)(value)))
    })
  })
})
