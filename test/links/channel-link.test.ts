/** The link to a channel that moves: what the next activation is sent of the players on this node. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, Stream } from "effect"
import { TestRunner } from "effect/cluster"
import { Unavailable } from "#rpc/errors/codes"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import type { VoiceCloseReason } from "#rpc/voice"
import type { ChannelActor } from "#entities/channel/actor"
import type { ChannelBatch, ChannelOutput } from "#entities/channel/messages"
import { Channel } from "#entities/channel/protocol"
import { makeLocalGroups } from "#entities/local-actors"
import { LocalRooms } from "#entities/room/entity"
import { voiceClosed } from "#entities/voice-session/closed-event"
import { ChannelLink } from "#server/links/channel-link"
import { ChannelMemberships } from "#server/links/channel-memberships"
import { LinkRegistry } from "#server/links/link-registry"
import { PlayerConnection } from "#server/links/player-connection"
import { ReservationManager } from "#server/links/reservations"
import type { RoomLink } from "#server/links/room-link"
import type { ChannelHandle, ChannelPlayer } from "#server/links/subscriber"
import { applyAgeBand } from "#server/gateway/age-restrictions"
import { makeNodeContext } from "../support/node-context.ts"

const environmentId = EnvironmentId.make(`env_${"0".repeat(26)}`)

const unused = () => Effect.die("The link does not call this")

/** A channel whose streams a test ends. It lets every player in, and loses the calls that restrict one. */
const makeChannelEntity = Effect.gen(function* () {
  const watched = yield* Queue.unbounded<{
    readonly players: ReadonlyArray<{ readonly displayName: string; readonly openChat: boolean }>
    readonly batches: Queue.Queue<ChannelBatch, Unavailable>
  }>()
  const commands = yield* Queue.unbounded<ReadonlyArray<string>>()
  let newest: Queue.Queue<ChannelBatch, Unavailable> | undefined
  const entity = Channel.toLayer(
    Channel.of({
      Create: unused,
      Put: unused,
      Get: unused,
      Delete: unused,
      Wake: unused,
      Publish: unused,
      Moderate: unused,
      Shut: unused,
      Watch: ({ payload: { players } }) =>
        Stream.unwrap(
          Effect.gen(function* () {
            const batches = yield* Queue.unbounded<ChannelBatch, Unavailable>()
            newest = batches
            Queue.offerUnsafe(batches, { epoch: 1, items: [] })
            Queue.offerUnsafe(watched, { players, batches })
            return Stream.fromQueue(batches)
          })
        ),
      Input: ({ payload: { inputs } }) =>
        Effect.suspend(() => {
          Queue.offerUnsafe(
            commands,
            inputs.map(({ command }) => command.t)
          )
          if (inputs.some(({ command }) => command.t === "restrict")) return new Unavailable()
          const items = inputs.flatMap(({ command, seq }): ReadonlyArray<ChannelOutput> => {
            if (command.t !== "join") return []
            const { connectionId: connection, playerId: player } = command
            const players = [{ player, connection, joinedAt: 1 }]
            return [
              { kind: "enter", players, listeners: [], frame: "{}" },
              { kind: "reply", seq }
            ]
          })
          if (newest !== undefined) Queue.offerUnsafe(newest, { epoch: 1, items })
          return Effect.void
        })
    }),
    { concurrency: "unbounded" }
  )
  return { commands, entity, watched }
})

const makeLink = Effect.gen(function* () {
  const client = yield* Channel.client
  return new ChannelLink({
    id: "env_1/lobby",
    name: "lobby",
    environmentId,
    client,
    local: makeLocalGroups<ChannelActor, ChannelOutput>(),
    context: yield* makeNodeContext
  })
})

const makeConnection = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const playerId = PlayerId.make(`pl_${"0".repeat(26)}`)
  const connectionId = "con_1"
  const session = () => Effect.die("The connection has no seat")
  const calls = { session, peek: () => Effect.succeed(null) }
  return new PlayerConnection({
    player: {
      connectionId,
      environmentId,
      playerId,
      session: undefined,
      displayName: "Ann",
      lastBanId: undefined
    },
    sink: { push: () => undefined, close: () => undefined },
    reservations: new ReservationManager({ connectionId, playerId, calls }),
    run: (effect) => Fiber.runIn(Effect.runFork(effect), scope),
    onClosed: () => undefined
  })
})

const ann: ChannelPlayer = { playerId: "ann", displayName: "Ann", openChat: true, blocks: [] }

describe("the link to a channel", () => {
  it.live("sends the next activation the name and age that a player has now", () =>
    Effect.gen(function* () {
      const { entity, watched } = yield* makeChannelEntity
      yield* Effect.gen(function* () {
        const link = yield* makeLink
        link.start(() => undefined)
        const { batches } = yield* Queue.take(watched)
        let player: ChannelPlayer = ann
        const channels = new ChannelMemberships<ChannelHandle>()
        channels.add("lobby", link, 0)
        yield* link.join({
          connectionId: "con_1",
          environmentId,
          get player() {
            return player
          },
          channels,
          sink: { push: () => undefined },
          warn: () => undefined
        })
        player = { ...player, displayName: "Anna", openChat: false }
        yield* Queue.fail(batches, new Unavailable())
        const { players } = yield* Queue.take(watched)
        const [present] = players
        assert.deepStrictEqual([present?.displayName, present?.openChat], ["Anna", false])
      }).pipe(Effect.provide(entity.pipe(Layer.provideMerge(TestRunner.layer))))
    }).pipe(Effect.scoped)
  )

  it.live("delivers the end of a call only to a connection that is in it", () =>
    Effect.gen(function* () {
      const { entity, watched } = yield* makeChannelEntity
      yield* Effect.gen(function* () {
        const link = yield* makeLink
        link.start(() => undefined)
        const { batches } = yield* Queue.take(watched)
        const channels = new ChannelMemberships<ChannelHandle>()
        const { voice } = channels.add("lobby", link, 0)
        const frames = yield* Queue.unbounded<string>()
        yield* link.join({
          connectionId: "con_1",
          environmentId,
          player: ann,
          channels,
          sink: { push: ({ text }) => void Queue.offerUnsafe(frames, text) },
          warn: () => undefined
        })
        assert.strictEqual(yield* Queue.take(frames), "{}")
        const close = (reason: VoiceCloseReason) => {
          const frame = JSON.stringify(voiceClosed("lobby", reason))
          const items = [{ kind: "event", to: ["ann"], listeners: false, frame } as const]
          Queue.offerUnsafe(batches, { epoch: 1, items })
          return frame
        }
        const asked = voice.ask()
        close("unavailable")
        while (!voice.hasEndedSince(asked)) yield* Effect.yieldNow
        voice.begin("1-1", undefined)
        const frame = close("time_limit")
        assert.strictEqual(yield* Queue.take(frames), frame)
        assert.isFalse(voice.isIn("1-1"))
      }).pipe(Effect.provide(entity.pipe(Layer.provideMerge(TestRunner.layer))))
    }).pipe(Effect.scoped)
  )

  it.live("repeats that a child may not stay, until the channel has executed it", () =>
    Effect.gen(function* () {
      const { commands, entity, watched } = yield* makeChannelEntity
      yield* Effect.gen(function* () {
        const link = yield* makeLink
        link.start(() => undefined)
        yield* Queue.take(watched)
        const connection = yield* makeConnection
        connection.channels.add("lobby", link, 0)
        const rooms = new LinkRegistry<RoomLink>({
          idOf: (_, roomId) => roomId,
          make: () => {
            throw new Error("The player is in no room")
          },
          receivers: LocalRooms.with().receivers
        })
        const hub = { rooms }
        applyAgeBand(hub, connection, "general", null)
        yield* link.join(connection)
        applyAgeBand(hub, connection, "general", "child")
        assert.deepStrictEqual(yield* Queue.take(commands), ["join"])
        assert.deepStrictEqual(yield* Queue.take(commands), ["restrict"])
        yield* Queue.take(watched)
        assert.deepStrictEqual(yield* Queue.take(commands), ["restrict"])
      }).pipe(Effect.provide(entity.pipe(Layer.provideMerge(TestRunner.layer))))
    }).pipe(Effect.scoped)
  )
})
