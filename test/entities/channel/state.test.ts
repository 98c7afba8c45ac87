/**
 * Channel state machine: membership, permissions, ownership, and its invariants under random commands.
 * See `channel-harness.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import type { ModerateOp } from "#rpc/channels"
import { channels as limits } from "#rpc/limits"
import { decide } from "#entities/channel/state"
import { ChannelWorld, checkViews, club, type Node } from "../../support/channel-harness.ts"

const second = 1000

describe("membership", () => {
  it("is kept for half a minute after a disconnect without any event", () => {
    const world = club("ann", "ben")
    world.drop("ben")
    world.wait(29 * second)
    assert.deepStrictEqual(world.members, ["ann", "ben"])
    assert.strictEqual(world.join("ben", "n2"), "ok")
    assert.deepStrictEqual(world.gateways.n2.kinds("ben"), ["channel_joined"])
    world.wait(60 * second)
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), [
      "channel_joined",
      "channel_player_joined"
    ])
    world.drop("ben", "n2")
    world.wait(31 * second)
    assert.deepInclude(world.gateways.n1.last("ann"), { playerId: "ben", reason: "timeout" })
  })

  it("moves with the newest connection, and an older one has no say", () => {
    const world = club("ann", "ben")
    const older = world.connection("n1", "ben")
    world.join("ben", "n2")
    assert.isFalse(world.gateways.n1.members.has("ben"))
    const late = { playerId: "ben", displayName: "ben", openChat: true, connectionId: older }
    assert.strictEqual(world.send("n1", { t: "join", ...late }), "unavailable")
    assert.strictEqual(world.say("ben", "n1"), "not_in_channel")
    assert.strictEqual(world.say("ben", "n2"), "ok")
    world.send("n1", { t: "disconnect", playerId: "ben", connectionId: older })
    world.wait(60 * second)
    assert.include(world.members, "ben")
  })

  it("is for those invited, and the owner", () => {
    const world = new ChannelWorld({ ownerId: "ann", join: "invited" })
    assert.strictEqual(world.join("ben"), "channel_forbidden")
    assert.strictEqual(world.join("ann"), "ok")
    world.act("ann", "invite", "ben")
    assert.strictEqual(world.join("ben"), "ok")
    world.act("ann", "uninvite", "ben")
    assert.include(world.members, "ben", "who is in stays in")
    world.leave("ben")
    assert.strictEqual(world.join("ben"), "channel_forbidden")
  })

  it("ends at once, and with its reason, where the service decides", () => {
    const world = club("ann", "ben", "cat")
    const leaving = (playerId: string, reason: "banned" | "deleted") => {
      const connectionId = world.gateways.n1.members.get(playerId)?.connectionId ?? ""
      return world.send("n1", { t: "leave", playerId, connectionId, reason })
    }
    assert.strictEqual(leaving("ben", "banned"), "ok")
    assert.deepInclude(world.gateways.n1.last("ben"), { t: "channel_closed", reason: "banned" })
    assert.deepInclude(world.gateways.n1.last("ann"), { playerId: "ben", reason: "banned" })
    assert.strictEqual(leaving("cat", "deleted"), "ok")
    assert.deepInclude(world.gateways.n1.last("ann"), { playerId: "cat", reason: "deleted" })
    assert.strictEqual(leaving("ben", "banned"), "ok", "a leave of a removed player succeeds")
  })

  it("is closed to children where players make the rules", () => {
    const world = club("ann")
    assert.strictEqual(world.send("n1", world.joining("kid", "n1", false)), "channel_forbidden")
    const managed = new ChannelWorld()
    assert.strictEqual(managed.send("n1", managed.joining("kid", "n1", false)), "ok")
    managed.send("n1", { t: "restrict", playerId: "kid" })
    assert.deepStrictEqual(managed.members, ["kid"])
    world.join("ben")
    world.send("n1", { t: "restrict", playerId: "ben" })
    assert.deepStrictEqual(world.members, ["ann"])
  })

  it("ends at the channel's size", () => {
    const world = new ChannelWorld({ maxMembers: 2 })
    assert.deepStrictEqual([world.join("ann"), world.join("ben")], ["ok", "ok"])
    assert.strictEqual(world.join("cat"), "channel_full")
    world.drop("ben")
    assert.strictEqual(world.join("cat"), "channel_full", "a place is kept")
    world.wait(31 * second)
    assert.strictEqual(world.join("cat"), "ok")
  })

  it("of anonymous listeners is counted, while the server lets them in", () => {
    const world = new ChannelWorld()
    assert.strictEqual(world.listen(), "player_required")
    assert.strictEqual(world.outcome(world.actor.put({ open: true })), "ok")
    world.listen()
    world.listen("n2")
    assert.strictEqual(world.actor.report()?.anonymousCount, 2)
    const listeners = new Map([["n1", limits.listenersMax]])
    const crowded = { ...world.state, listeners }
    const late = { t: "listen", node: "n2", connectionId: "c9", listeners: 1 } as const
    const refused = decide(crowded, late, world.now)
    assert.strictEqual(Result.isFailure(refused) && refused.failure._tag, "channel_full")
    world.outcome(world.actor.put({ open: false }))
    assert.strictEqual(world.gateways.n2.listeners.size, 0)
    assert.strictEqual(world.actor.report()?.anonymousCount, 0)
  })
})

describe("an owner", () => {
  it("who leaves is followed by the earliest member", () => {
    const world = club("ann", "ben", "cat")
    world.leave("ann")
    assert.strictEqual(world.state.options.ownerId, "ben")
    assert.deepInclude(world.gateways.n1.last("cat"), { t: "channel_changed" })
    assert.strictEqual(world.act("ann", "kick", "cat"), "owner_only")
    assert.strictEqual(world.act("ben", "kick", "cat"), "ok")
  })

  it("who drops has half a minute", () => {
    const world = club("ann", "ben")
    world.drop("ann")
    world.wait(29 * second)
    assert.strictEqual(world.state.options.ownerId, "ann")
    world.wait(2 * second)
    assert.strictEqual(world.state.options.ownerId, "ben")
  })

  it("who has yet to come in is awaited for half a minute", () => {
    const world = new ChannelWorld({ ownerId: "ann" })
    world.join("ben")
    world.wait(29 * second)
    assert.strictEqual(world.state.options.ownerId, "ann")
    world.wait(2 * second)
    assert.strictEqual(world.state.options.ownerId, "ben")
  })
})

describe("a channel that nobody is in", () => {
  it("ends half a minute later when players have made it", () => {
    const world = club("ann")
    world.leave("ann")
    world.wait(29 * second)
    assert.isFalse(world.closed)
    world.join("ben")
    world.wait(60 * second)
    assert.strictEqual(world.state.options.ownerId, "ben")
    world.leave("ben")
    world.wait(31 * second)
    assert.isTrue(world.closed)
  })

  it("stays when the server manages it", () => {
    const world = new ChannelWorld()
    world.join("ann")
    world.leave("ann")
    world.wait(3600 * second)
    assert.isFalse(world.closed)
  })
})

const players = ["ann", "ben", "cat", "dan"]
const player = fc.constantFrom(...players)
const node = fc.constantFrom<Node>("n1", "n2")
const ops: ReadonlyArray<ModerateOp> = [
  "invite",
  "uninvite",
  "allowSend",
  "disallowSend",
  "mute",
  "unmute",
  "kick",
  "ban",
  "unban"
]

const seconds = fc.option(fc.constantFrom(1, 29, 30, 31, 86_400), { nil: undefined })
const changes = fc.record(
  {
    join: fc.constantFrom("anyone" as const, "invited" as const),
    send: fc.constantFrom("anyone" as const, "speakers" as const, "server" as const),
    open: fc.boolean(),
    maxMembers: fc.integer({ min: 1, max: 5 }),
    allow: fc.uniqueArray(player),
    speakers: fc.uniqueArray(player)
  },
  { requiredKeys: [] }
)

type Step = (world: ChannelWorld) => void

/** Something that happens to a channel. */
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(player, node).map(
      ([p, n]): Step =>
        (w) =>
          void w.join(p, n)
    )
  },
  {
    weight: 2,
    arbitrary: fc.tuple(player, node).map(
      ([p, n]): Step =>
        (w) =>
          void w.leave(p, n)
    )
  },
  {
    weight: 3,
    arbitrary: fc.tuple(player, node).map(
      ([p, n]): Step =>
        (w) =>
          w.drop(p, n)
    )
  },
  {
    weight: 2,
    arbitrary: node.map(
      (n): Step =>
        (w) =>
          void w.listen(n)
    )
  },
  {
    weight: 1,
    arbitrary: fc.tuple(player, node).map(
      ([p, n]): Step =>
        (w) =>
          void w.say(p, n)
    )
  },
  {
    weight: 4,
    arbitrary: fc.tuple(player, fc.constantFrom(...ops), player, seconds, node).map(
      ([p, op, target, s, n]): Step =>
        (w) =>
          void w.act(p, op, target, s, n)
    )
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...ops), player, seconds)
      .map(([op, target, s]): Step => (w) => {
        w.outcome(w.actor.moderate({ op, target, ...(s === undefined ? {} : { seconds: s }) }))
      })
  },
  {
    weight: 1,
    arbitrary: changes.map(
      (it): Step =>
        (w) =>
          void w.outcome(w.actor.put(it))
    )
  },
  {
    weight: 2,
    arbitrary: node.map(
      (n): Step =>
        (w) =>
          w.unwatch(n)
    )
  },
  {
    weight: 4,
    arbitrary: node.map(
      (n): Step =>
        (w) =>
          w.watch(n)
    )
  },
  {
    weight: 1,
    arbitrary: fc.constant((w: ChannelWorld) => {
      w.move()
      w.watch("n2")
      w.wait(500)
      w.watch("n1")
      w.wait(limits.rejoinMillis)
    })
  },
  {
    weight: 4,
    arbitrary: fc
      .oneof(
        fc.constantFrom(0, 999, 1000, 4999, 5001, 29_999, 30_000, 30_250),
        fc.integer({ min: 0, max: 40_000 })
      )
      .map(
        (millis): Step =>
          (w) =>
            w.wait(millis)
      )
  }
)

/** What holds of a channel between any two steps. */
const checkState = (world: ChannelWorld): void => {
  const { lists, options } = world.state
  for (const id of world.members) {
    const banned = lists.banned.get(id)
    assert.isTrue(banned === undefined || (banned !== null && banned <= world.now), "in and banned")
  }
  if (options.managed) assert.isNull(options.ownerId)
  if (options.ownerId !== null && world.state.ownerUntil === null) {
    assert.include(world.members, options.ownerId)
  }
}

describe("a channel and its gateways, whatever happens to them", () => {
  it("agree about who is in and what the channel is", () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 60 }), (managed, steps) => {
        const world = new ChannelWorld(managed ? {} : { ownerId: "ann" })
        for (const take of steps) {
          if (world.closed) return
          take(world)
          if (world.closed) return
          checkState(world)
          checkViews(world)
        }
      }),
      { numRuns: 500 }
    )
  })
})
