/**
 * Channel state machine: membership, permissions, ownership, and its invariants under random commands.
 * See `channel-harness.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import type { ModerateOp } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import { decide } from "#entities/channel/state"
import { ChannelHarness, checkViews, channelOf, type Node } from "../../support/channel-harness.ts"

const second = 1000

describe("membership of a channel", () => {
  it("keeps a membership for half a minute after a disconnect without any event", () => {
    const harness = channelOf("ann", "ben")
    harness.drop("ben")
    harness.wait(29 * second)
    assert.deepStrictEqual(harness.members, ["ann", "ben"])
    assert.strictEqual(harness.join("ben", "n2"), "ok")
    assert.deepStrictEqual(harness.gateways.n2.kinds("ben"), ["channel_joined"])
    harness.wait(60 * second)
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), [
      "channel_joined",
      "channel_player_joined"
    ])
    harness.drop("ben", "n2")
    harness.wait(31 * second)
    assert.deepInclude(harness.gateways.n1.last("ann"), { playerId: "ben", reason: "timeout" })
  })

  it("follows the newest connection, and ignores commands of older ones", () => {
    const harness = channelOf("ann", "ben")
    const older = harness.connection("n1", "ben")
    harness.join("ben", "n2")
    assert.isFalse(harness.gateways.n1.members.has("ben"))
    const late = { playerId: "ben", displayName: "ben", openChat: true, connectionId: older }
    assert.strictEqual(harness.send("n1", { t: "join", ...late }), "unavailable")
    assert.strictEqual(harness.sendMessage("ben", "n1"), "not_in_channel")
    assert.strictEqual(harness.sendMessage("ben", "n2"), "ok")
    harness.send("n1", { t: "disconnect", playerId: "ben", connectionId: older })
    harness.wait(60 * second)
    assert.include(harness.members, "ben")
  })

  it("takes a channel member's new name from its newest connection, and lets nobody in by a name", () => {
    const harness = channelOf("ann", "ben")
    const older = harness.connection("n1", "ben")
    harness.join("ben", "n2")
    const newer = harness.connection("n2", "ben")
    const named = { t: "join", playerId: "ben", openChat: true, renames: true } as const
    harness.send("n2", { ...named, connectionId: newer, displayName: "Benny" })
    assert.deepInclude(harness.gateways.n1.last("ann"), {
      t: "player_updated",
      player: { id: "ben", displayName: "Benny" }
    })
    assert.deepStrictEqual(harness.gateways.n2.kinds("ben"), ["channel_joined", "player_updated"])
    const before = harness.gateways.n1.kinds("ann")
    harness.send("n1", { ...named, connectionId: older, displayName: "Old Ben" })
    harness.send("n1", { ...named, playerId: "cat", connectionId: "con_9", displayName: "Cat" })
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), before)
    assert.deepStrictEqual(harness.members, ["ann", "ben"])
  })

  it("limits membership to invited players and the owner when `join` is `invited`", () => {
    const harness = new ChannelHarness({ ownerId: "ann", join: "invited" })
    assert.strictEqual(harness.join("ben"), "channel_forbidden")
    assert.strictEqual(harness.join("ann"), "ok")
    harness.moderate("ann", "invite", "ben")
    assert.strictEqual(harness.join("ben"), "ok")
    harness.moderate("ann", "uninvite", "ben")
    assert.include(harness.members, "ben", "a member stays after its invitation is removed")
    harness.leave("ben")
    assert.strictEqual(harness.join("ben"), "channel_forbidden")
  })

  it("ends a channel membership at once when the player is banned or deleted, with the reason", () => {
    const harness = channelOf("ann", "ben", "cat")
    const leaving = (playerId: string, reason: "banned" | "deleted") => {
      const connectionId = harness.gateways.n1.members.get(playerId)?.connectionId ?? ""
      return harness.send("n1", { t: "leave", playerId, connectionId, reason })
    }
    assert.strictEqual(leaving("ben", "banned"), "ok")
    assert.deepInclude(harness.gateways.n1.last("ben"), { t: "channel_closed", reason: "banned" })
    assert.deepInclude(harness.gateways.n1.last("ann"), { playerId: "ben", reason: "banned" })
    assert.strictEqual(leaving("cat", "deleted"), "ok")
    assert.deepInclude(harness.gateways.n1.last("ann"), { playerId: "cat", reason: "deleted" })
    assert.strictEqual(leaving("ben", "banned"), "ok", "a leave of a removed player succeeds")
  })

  it("refuses children in channels of players, but not in those of the server", () => {
    const harness = channelOf("ann")
    assert.strictEqual(
      harness.send("n1", harness.joinCommand("kid", "n1", false)),
      "channel_forbidden"
    )
    const managed = new ChannelHarness()
    assert.strictEqual(managed.send("n1", managed.joinCommand("kid", "n1", false)), "ok")
    managed.send("n1", { t: "restrict", playerId: "kid" })
    assert.deepStrictEqual(managed.members, ["kid"])
    harness.join("ben")
    harness.send("n1", { t: "restrict", playerId: "ben" })
    assert.deepStrictEqual(harness.members, ["ann"])
  })

  it("refuses members beyond `maxMembers`, and counts disconnected ones", () => {
    const harness = new ChannelHarness({ maxMembers: 2 })
    assert.deepStrictEqual([harness.join("ann"), harness.join("ben")], ["ok", "ok"])
    assert.strictEqual(harness.join("cat"), "channel_full")
    harness.drop("ben")
    assert.strictEqual(
      harness.join("cat"),
      "channel_full",
      "the place of a disconnected member is kept"
    )
    harness.wait(31 * second)
    assert.strictEqual(harness.join("cat"), "ok")
  })

  it("admits listeners without a membership to an open channel, and counts them", () => {
    const harness = new ChannelHarness()
    assert.strictEqual(harness.listen(), "player_required")
    assert.strictEqual(harness.outcome(harness.actor.put({ open: true })), "ok")
    harness.listen()
    harness.listen("n2")
    assert.strictEqual(harness.actor.report()?.anonymousCount, 2)
    const listeners = new Map([["n1", channelLimits.listenersMax]])
    const crowded = { ...harness.state, listeners }
    const late = { t: "listen", node: "n2", connectionId: "c9", listeners: 1 } as const
    const refused = decide(crowded, late, harness.now)
    assert.strictEqual(Result.isFailure(refused) && refused.failure._tag, "channel_full")
    harness.outcome(harness.actor.put({ open: false }))
    assert.strictEqual(harness.gateways.n2.listeners.size, 0)
    assert.strictEqual(harness.actor.report()?.anonymousCount, 0)
  })
})

describe("the owner of a channel", () => {
  it("passes the channel to the earliest member when the owner leaves", () => {
    const harness = channelOf("ann", "ben", "cat")
    harness.leave("ann")
    assert.strictEqual(harness.state.options.ownerId, "ben")
    assert.deepInclude(harness.gateways.n1.last("cat"), { t: "channel_changed" })
    assert.strictEqual(harness.moderate("ann", "kick", "cat"), "owner_only")
    assert.strictEqual(harness.moderate("ben", "kick", "cat"), "ok")
  })

  it("keeps the channel of a disconnected owner for half a minute", () => {
    const harness = channelOf("ann", "ben")
    harness.drop("ann")
    harness.wait(29 * second)
    assert.strictEqual(harness.state.options.ownerId, "ann")
    harness.wait(2 * second)
    assert.strictEqual(harness.state.options.ownerId, "ben")
  })

  it("keeps a channel for half a minute before its owner's first join", () => {
    const harness = new ChannelHarness({ ownerId: "ann" })
    harness.join("ben")
    harness.wait(29 * second)
    assert.strictEqual(harness.state.options.ownerId, "ann")
    harness.wait(2 * second)
    assert.strictEqual(harness.state.options.ownerId, "ben")
  })
})

describe("an empty channel", () => {
  it("closes an empty channel after half a minute if a player created it", () => {
    const harness = channelOf("ann")
    harness.leave("ann")
    harness.wait(29 * second)
    assert.isFalse(harness.closed)
    harness.join("ben")
    harness.wait(60 * second)
    assert.strictEqual(harness.state.options.ownerId, "ben")
    harness.leave("ben")
    harness.wait(31 * second)
    assert.isTrue(harness.closed)
  })

  it("keeps an empty channel open if the server manages it", () => {
    const harness = new ChannelHarness()
    harness.join("ann")
    harness.leave("ann")
    harness.wait(3600 * second)
    assert.isFalse(harness.closed)
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

type Step = (harness: ChannelHarness) => void

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
          void w.sendMessage(p, n)
    )
  },
  {
    weight: 4,
    arbitrary: fc.tuple(player, fc.constantFrom(...ops), player, seconds, node).map(
      ([p, op, target, s, n]): Step =>
        (w) =>
          void w.moderate(p, op, target, s, n)
    )
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(player, fc.constantFrom("One", "Two"))
      .map(([p, displayName]): Step => (w) => {
        w.actor.renamePlayer(p, displayName)
        w.flush()
      })
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
    arbitrary: fc.constant((w: ChannelHarness) => {
      w.move()
      w.watch("n2")
      w.wait(500)
      w.watch("n1")
      w.wait(channelLimits.rejoinMillis)
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

/** Asserts the invariants of a channel, which hold after each step. */
const checkState = (harness: ChannelHarness): void => {
  const { lists, options } = harness.state
  for (const id of harness.members) {
    const banned = lists.banned.get(id)
    assert.isTrue(
      banned === undefined || (banned !== null && banned <= harness.now),
      "a member is not banned"
    )
  }
  assert.sameMembers(Array.from(harness.indexed), [...harness.members], "reported members")
  if (options.managed) assert.isNull(options.ownerId)
  if (options.ownerId !== null && harness.state.ownerAway === null) {
    assert.include(harness.members, options.ownerId)
  }
}

describe("a channel and its gateways under random steps", () => {
  it("a channel and its gateways agree about members and settings under random steps", () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 60 }), (managed, steps) => {
        const harness = new ChannelHarness(managed ? {} : { ownerId: "ann" })
        for (const run of steps) {
          if (harness.closed) return
          run(harness)
          if (harness.closed) return assert.isEmpty(harness.indexed)
          checkState(harness)
          checkViews(harness)
        }
      }),
      { numRuns: 500 }
    )
  })
})
