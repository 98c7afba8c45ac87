/** Generators for the property tests of rooms, channels, queues and sessions. Few players, so that steps collide. */
import { Schema } from "effect"
import * as fc from "fast-check"
import { JsonObject } from "#rpc/json"
import { RoomModerateOp } from "#rpc/rooms/authority"
import type { QueueMode } from "#entities/matchmaking-queue/state"
import type { Reservation, SessionCommand } from "#entities/player-session/state"
import type { RoomSettings } from "#entities/room/model"

const players = ["ann", "ben", "cat", "dan", "eve"]
const nodes = ["n1", "n2"] as const

const player = fc.constantFrom(...players)
const node = fc.constantFrom(...nodes)

/** Rooms that fill up, with grace periods shorter and longer than the host's. */
export const roomSettings: fc.Arbitrary<Partial<RoomSettings>> = fc.record({
  maxPlayers: fc.integer({ min: 1, max: 4 }),
  graceSeconds: fc.constantFrom(0, 3, 30),
  hostOnlyState: fc.boolean(),
  matched: fc.boolean(),
  p2p: fc.constantFrom(null, { relayOnly: true, maxPlayers: 4 })
})

const voteRule = {
  share: fc.constantFrom(0.5, 0.6, 1),
  minVoters: fc.constantFrom(2, 3),
  seconds: fc.constantFrom(10, 30),
  cooldownSeconds: fc.constantFrom(0, 20)
}

const everyPower = ["kick", "ban", "mute", "team", "transfer"]

/** Rooms whose mode gives rights: powers of the host, votes and teams. */
export const rightsSettings: fc.Arbitrary<Partial<RoomSettings>> = fc
  .tuple(
    roomSettings,
    fc.record({
      powers: fc.subarray(everyPower),
      votes: fc
        .tuple(
          fc.record({ op: fc.constant("kick"), ...voteRule }),
          fc.record({ op: fc.constant("restart"), ...voteRule })
        )
        .map((rules): NonNullable<RoomSettings["votes"]> => rules),
      teams: fc.constantFrom<NonNullable<RoomSettings["teams"]>>(
        [
          { key: "red", min: 1, max: 2 },
          { key: "blue", min: 1, max: 2 }
        ],
        [
          { key: "red", min: 0, max: 1 },
          { key: "blue", min: 0, max: 4 },
          { key: "gold", min: 0, max: 4 }
        ]
      ),
      freeTeams: fc.boolean()
    })
  )
  .map(([settings, rights]) => ({ ...settings, maxPlayers: 4, ...rights }))

/** Keys that a careless merge would treat as a prototype, an index or a separator. */
const hostileKeys = ["__proto__", "constructor", "prototype", "toString", "0", "10", "", "é", '"\n']

const key = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "c") },
  { weight: 1, arbitrary: fc.constantFrom(...hostileKeys) }
)

/** Overlapping, unvalidated patches; null deletes a key. */
export const hostilePatch: fc.Arbitrary<JsonObject> = fc
  .array(fc.tuple(key, fc.oneof(fc.constant(null), fc.integer(), fc.string(), fc.jsonValue())), {
    maxLength: 4
  })
  .map((entries) => Object.fromEntries(entries))

/** Patches that the schema accepts. */
const patch = hostilePatch.filter(Schema.is(JsonObject))

/** Waits around each deadline of a room, and between them. */
const millis: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(0, 1, 999, 1000, 1001, 4999, 5000, 5001, 9999, 10_000, 29_999, 30_000, 30_001),
  fc.integer({ min: 0, max: 40_000 }),
  fc.constantFrom(7_199_999, 7_200_000, 86_400_000)
)

/** One step of a random test of a room. */
export type RoomStep =
  | { readonly kind: "join" | "resume"; readonly player: string; readonly node: string }
  | { readonly kind: "seat"; readonly players: ReadonlyArray<string>; readonly node: string }
  | {
      readonly kind: "leave"
      readonly player: string
      readonly reason: "left" | "banned" | "deleted"
    }
  | { readonly kind: "send"; readonly player: string; readonly to: ReadonlyArray<string> | null }
  | {
      readonly kind: "setState" | "setMyState"
      readonly player: string
      readonly patch: JsonObject
    }
  | { readonly kind: "lock"; readonly player: string; readonly locked: boolean }
  | { readonly kind: "rename"; readonly player: string; readonly displayName: string }
  | { readonly kind: "drop"; readonly player: string; readonly replaced: boolean }
  | { readonly kind: "dropNode"; readonly node: string }
  | { readonly kind: "wait"; readonly millis: number }

/** One step of a player or a server that uses rights in a room. */
export type RightsStep =
  | {
      readonly kind: "moderate"
      readonly player: string | null
      readonly op: RoomModerateOp
      readonly target: string
      readonly team: string
    }
  | { readonly kind: "startVote"; readonly player: string; readonly target: string | null }
  | { readonly kind: "castVote"; readonly player: string; readonly yes: boolean }
  | { readonly kind: "setTeam"; readonly player: string; readonly team: string }

/** One step between a room and its gateways: a stream opens or breaks, or the room moves. */
export type NetworkStep =
  | { readonly kind: "watch" | "unwatch"; readonly node: string }
  | { readonly kind: "move"; readonly stale: number }

const step: fc.Arbitrary<RoomStep> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom("join" as const, "resume" as const),
      player,
      node
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("seat" as const),
      players: fc.uniqueArray(player, { minLength: 1, maxLength: 3 }),
      node
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("leave" as const),
      player,
      reason: fc.constantFrom("left" as const, "banned" as const, "deleted" as const)
    })
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("send" as const),
      player,
      to: fc.option(fc.array(fc.constantFrom(...players, "nobody"), { maxLength: 4 }))
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("setState" as const, "setMyState" as const),
      player,
      patch
    })
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("lock" as const), player, locked: fc.boolean() })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("rename" as const),
      player,
      displayName: fc.constantFrom("One", "Two")
    })
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("drop" as const), player, replaced: fc.boolean() })
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("dropNode" as const), node }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("wait" as const), millis }) }
)

const team = fc.constantFrom("red", "blue", "gold")

const rightsStep: fc.Arbitrary<RightsStep> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("moderate" as const),
      player: fc.oneof(player, fc.constant(null)),
      op: fc.constantFrom(...RoomModerateOp.literals),
      target: player,
      team
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("startVote" as const),
      player,
      target: fc.oneof(player, fc.constant(null))
    })
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("castVote" as const), player, yes: fc.boolean() })
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("setTeam" as const), player, team }) }
)

const networkStep: fc.Arbitrary<NetworkStep> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("unwatch" as const), node }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("watch" as const), node }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("move" as const),
      stale: fc.integer({ min: 0, max: 5 })
    })
  }
)

/** Random steps of a room on one runner. */
export const roomSteps: fc.Arbitrary<ReadonlyArray<RoomStep>> = fc.array(step, { maxLength: 40 })

/** Random steps of a room that moves, and whose streams break. */
export const roomNetworkSteps: fc.Arbitrary<ReadonlyArray<RoomStep | NetworkStep>> = fc.array(
  fc.oneof({ weight: 3, arbitrary: step }, { weight: 1, arbitrary: networkStep }),
  { maxLength: 40 }
)

/** Random steps of a room with rights on one runner. */
export const rightsSteps: fc.Arbitrary<ReadonlyArray<RoomStep | RightsStep>> = fc.array(
  fc.oneof({ weight: 2, arbitrary: step }, { weight: 3, arbitrary: rightsStep }),
  { maxLength: 60 }
)

const connection = fc.constantFrom("c1", "c2", "c3")
const room = fc.constantFrom("r1", "r2")
const ticket = fc.constantFrom("t1", "t2")

const heldReservation: fc.Arbitrary<Reservation> = fc.oneof(
  fc.record({ kind: fc.constant("seat" as const), roomId: room }),
  fc.record({ kind: fc.constant("ticket" as const), ticketId: ticket })
)

const reservation: fc.Arbitrary<Reservation> = fc.oneof(
  heldReservation,
  fc.constant<Reservation>({ kind: "none" })
)

/** Random commands of gateways and queues to a player session. */
export const sessionSteps: fc.Arbitrary<ReadonlyArray<SessionCommand>> = fc.array(
  fc.oneof(
    fc.record({ t: fc.constant("attach" as const), connectionId: connection, reservation }),
    fc.record({ t: fc.constant("detach" as const), connectionId: connection }),
    fc.record({
      t: fc.constant("claim" as const),
      connectionId: connection,
      reservation: heldReservation
    }),
    fc.record({
      t: fc.constantFrom("confirm" as const, "settle" as const),
      connectionId: connection,
      ticketId: ticket,
      roomId: room
    }),
    fc.record({ t: fc.constant("release" as const), reservation: heldReservation })
  ),
  { maxLength: 30 }
)

/** Modes with a minimum of one to three players, and with a short, a long or no fill timeout. */
export const queueModes: fc.Arbitrary<QueueMode> = fc.record({
  minPlayers: fc.integer({ min: 1, max: 3 }),
  maxPlayers: fc.integer({ min: 3, max: 4 }),
  fillTimeoutSeconds: fc.constantFrom(0, 1, 15)
})

const index = fc.nat(8)

/** Random steps of the state of a queue. */
export const queueStateSteps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("enqueue" as const) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("cancel" as const), index }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("match" as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant("open" as const), room, free: fc.nat(3) })
    }
  ),
  { maxLength: 60 }
)

/** Random steps of a queue actor: tickets, matches, refusals, broken streams. */
export const queueSteps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("enqueue" as const), node }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("cancel" as const), index }) },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constantFrom("seat" as const, "refuse" as const, "found" as const)
      })
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom("watch" as const, "unwatch" as const),
        node
      })
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("wait" as const),
        millis: fc.constantFrom(1, 999, 1000)
      })
    }
  ),
  { maxLength: 40 }
)

/** Random steps of a bucket of sessions: connections, reservations, streams, loads, moves. */
export const bucketSteps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant("open" as const),
        node: node,
        playerId: fc.constantFrom("p1", "p2")
      })
    },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant("claim" as const),
        index,
        reservation: heldReservation
      })
    },
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constantFrom("close" as const, "release" as const), index })
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom("watch" as const, "unwatch" as const),
        node: node
      })
    },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constantFrom("load" as const, "load" as const, "move" as const, "wait" as const)
      })
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("freeze" as const) }) }
  ),
  { maxLength: 40 }
)
