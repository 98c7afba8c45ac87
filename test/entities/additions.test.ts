/**
 * What a newer runner may add to the calls, batches and events of entities: an older runner ignores
 * it. The tests encode with the schemas of a newer release and decode with those of this one.
 */
import { describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { SchemaBinary } from "effect/encoding"
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
import { VoiceSession } from "#entities/voice-session/protocol"
import { type AnySchema, entityCalls, forAll } from "../support/entity-calls.ts"
import { assertSame, widened, withAddition } from "../support/additions.ts"

const calls = entityCalls({ Room, Channel, MatchmakingQueue, PlayerSessions, VoiceSession })

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

  it.effect.each(calls)(
    "knows the earlier errors of the call $name when one is added",
    ({ error }) => {
      const older = SchemaBinary.toCodec(error)
      const newer = SchemaBinary.toCodec(Schema.Union([LaterError, error]))
      const decode = Schema.decodeSync(older)
      return forAll(error, (value) => {
        assertSame(decode(Schema.encodeSync(newer)(value)), decode(Schema.encodeSync(older)(value)))
      })
    }
  )
})
