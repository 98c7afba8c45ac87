/**
 * Commands that a node sends again, because their replies were lost: a room executes each of them once,
 * also after it has moved.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RoomActor } from "#entities/room/actor"
import type { RoomRuntime } from "#entities/room/runtime"
import { toJsonObject } from "#entities/room/json-state"
import type { PlayerCommand, RoomOutput } from "#entities/room/messages"
import type { JoiningPlayer } from "#entities/room/model"
import { decodeSnapshot, wakeFrom, toRow } from "#entities/room/snapshot"
import { connectionOf, emptyRoom, start } from "../../support/room-harness.ts"

const minute = 60_000

/** A node whose link numbers its commands, and sends those without a reply again when it attaches. */
class NumberingNode {
  readonly node: string
  readonly link: number
  readonly replies = new Map<number, string>()
  readonly #harness: RepeatHarness
  readonly #present = new Map<string, JoiningPlayer>()
  readonly #pending = new Map<number, PlayerCommand>()
  #seq = 0
  #receives = true
  #attached: { readonly send: (items: ReadonlyArray<RoomOutput>) => void; end: () => void }

  constructor(harness: RepeatHarness, node: string, link = 1) {
    this.node = node
    this.link = link
    this.#harness = harness
    this.#attached = this.#watch(0)
  }

  #watch(epoch: number) {
    const watcher = {
      send: (items: ReadonlyArray<RoomOutput>) => {
        if (this.#receives) for (const item of items) this.#receive(item)
      },
      end: () => undefined
    }
    const present = Array.from(this.#present.values())
    this.#harness.actor.attach(this.node, watcher, epoch, present, this.link)
    return watcher
  }

  #receive(item: RoomOutput): void {
    if (item.kind !== "reply" && item.kind !== "refuse") return
    if (item.seq <= 0) return
    assert.isTrue(this.#pending.delete(item.seq), "one reply for each command")
    this.replies.set(item.seq, item.kind === "reply" ? "ok" : item.error.code)
  }

  /** Sends a command that wants a reply; returns its number. */
  request(command: PlayerCommand): number {
    this.#seq += 1
    this.#pending.set(this.#seq, command)
    this.#harness.actor.submit(this.node, [{ seq: this.#seq, command }])
    return this.#seq
  }

  /** Sends a command that wants no reply. */
  tell(command: PlayerCommand): void {
    this.#seq += 1
    this.#harness.actor.submit(this.node, [{ seq: -this.#seq, command }])
  }

  join(player: JoiningPlayer): number {
    this.#present.set(player.playerId, player)
    return this.request({ t: "join", ...player })
  }

  /** From here on the room's outputs do not arrive. */
  lose(): void {
    this.#receives = false
  }

  detach(): void {
    this.#harness.actor.activation.detach(this.node, this.#attached)
  }

  /** Attaches again, and sends again what has no reply. */
  attach(): void {
    this.detach()
    this.#receives = true
    this.#attached = this.#watch(1)
    for (const [seq, command] of Array.from(this.#pending)) {
      this.#harness.actor.submit(this.node, [{ seq, command }])
    }
  }

  forgetPresence(playerId: string): void {
    this.#present.delete(playerId)
  }
}

class RepeatHarness {
  now = start
  actor: RoomActor
  #connections = 0

  constructor() {
    this.actor = new RoomActor("rm_1", 1, undefined, this.#runtime)
    this.actor.open(emptyRoom())
  }

  get #runtime(): RoomRuntime {
    return {
      now: () => this.now,
      clocks: [() => this.now],
      hasLease: () => true,
      heldFrom: () => null,
      wakeAt: () => undefined,
      changed: () => undefined,
      flushSoon: () => this.actor.commitWrite(this.actor.beginWrite()),
      memberAdded: () => undefined,
      memberRemoved: () => undefined,
      shared: true,
      closed: () => undefined
    }
  }

  player(playerId: string, node: string): JoiningPlayer {
    this.#connections += 1
    const connectionId = connectionOf(this.#connections)
    return { playerId, displayName: playerId, relayOnly: false, node, connectionId }
  }

  get snapshot(): string {
    const { activation, state } = this.actor
    assert.isDefined(state)
    return state === undefined
      ? ""
      : toRow(state, 1, "n1", this.now, activation.executed.stored()).snapshot
  }

  /** Restores the room on another runner. */
  move(snapshot: string): void {
    this.actor.activation.fence()
    const stored = Effect.runSync(decodeSnapshot(snapshot))
    const epoch = this.actor.epoch + 1
    const state = wakeFrom(stored, this.now)
    this.actor = new RoomActor("rm_1", epoch, state, this.#runtime, stored.links)
    this.actor.expectNodes()
  }

  get values() {
    return this.actor.state === undefined ? {} : toJsonObject(this.actor.state.sharedState)
  }

  get members(): ReadonlyArray<string> {
    return Array.from(this.actor.state?.members.keys() ?? [])
  }
}

const setState = (playerId: string, patch: Record<string, number>): PlayerCommand => ({
  t: "setState",
  playerId,
  patch
})

/** Ann on n1 and ben on n2. */
const twoPlayers = () => {
  const harness = new RepeatHarness()
  const n1 = new NumberingNode(harness, "n1")
  const n2 = new NumberingNode(harness, "n2")
  const ann = harness.player("ann", "n1")
  n1.join(ann)
  n2.join(harness.player("ben", "n2"))
  return { harness, n1, n2, ann }
}

describe("a command that is sent again", () => {
  it("keeps an acknowledged write that followed when an older write is sent again", () => {
    const { harness, n1, n2 } = twoPlayers()
    n1.lose()
    const first = n1.request(setState("ann", { turn: 2 }))
    const second = n2.request(setState("ben", { turn: 1 }))
    n1.attach()
    assert.strictEqual(n2.replies.get(second), "ok")
    assert.strictEqual(n1.replies.get(first), "ok")
    assert.deepStrictEqual(harness.values, { turn: 1 })
  })

  it("keeps a later write of the player that asked for no reply when one is sent again", () => {
    const { harness, n1 } = twoPlayers()
    n1.lose()
    const first = n1.request(setState("ann", { hp: 10 }))
    n1.tell(setState("ann", { hp: 3 }))
    n1.attach()
    assert.strictEqual(n1.replies.get(first), "ok")
    assert.deepStrictEqual(harness.values, { hp: 3 })
  })

  it("executes a repeated command once in a room that has moved with it", () => {
    const { harness, n1, n2 } = twoPlayers()
    n1.lose()
    const first = n1.request(setState("ann", { turn: 2 }))
    harness.move(harness.snapshot)
    n2.attach()
    const second = n2.request(setState("ben", { turn: 1 }))
    n1.attach()
    assert.deepStrictEqual([n1.replies.get(first), n2.replies.get(second)], ["ok", "ok"])
    assert.deepStrictEqual(harness.values, { turn: 1 })
  })

  it("executes repeated commands again, in order, in a room that has lost them", () => {
    const { harness, n1 } = twoPlayers()
    const { snapshot } = harness
    n1.lose()
    n1.request(setState("ann", { turn: 1 }))
    n1.request(setState("ann", { turn: 2, round: 1 }))
    harness.move(snapshot)
    n1.attach()
    assert.deepStrictEqual(harness.values, { turn: 2, round: 1 })
    n1.attach()
    assert.strictEqual(harness.actor.state?.version, 2)
  })

  it("refuses a repeated command again, also when it would be granted by now", () => {
    const { harness, n1, n2 } = twoPlayers()
    n2.lose()
    const lock = n2.request({ t: "lock", playerId: "ben", locked: true })
    n2.tell(setState("ben", { turn: 1 }))
    n1.request({ t: "leave", playerId: "ann", reason: "left" })
    harness.move(harness.snapshot)
    n2.attach()
    assert.strictEqual(n2.replies.get(lock), "host_only")
    assert.isFalse(harness.actor.state?.locked)
  })

  it("replies unavailable to a repeated command whose refusal is forgotten", () => {
    const { n2 } = twoPlayers()
    n2.lose()
    const locks = Array.from({ length: 70 }, () =>
      n2.request({ t: "lock", playerId: "ben", locked: true })
    )
    n2.attach()
    const codes = locks.map((lock) => n2.replies.get(lock))
    assert.deepStrictEqual(
      codes.slice(0, 6),
      Array.from({ length: 6 }, () => "unavailable")
    )
    assert.deepStrictEqual(
      codes.slice(6),
      Array.from({ length: 64 }, () => "host_only")
    )
  })

  it("takes no second seat by a repeated join for a player who has left since", () => {
    const { harness, n1 } = twoPlayers()
    const cat = harness.player("cat", "n1")
    n1.lose()
    const join = n1.join(cat)
    const { connectionId } = cat
    const leave = n1.request({ t: "leave", playerId: "cat", connectionId, reason: "banned" })
    n1.forgetPresence("cat")
    n1.attach()
    assert.deepStrictEqual(harness.members, ["ann", "ben"])
    assert.strictEqual(n1.replies.get(join), "unavailable")
    assert.strictEqual(n1.replies.get(leave), "ok")
  })

  it("frees no seat by a repeated leave that a newer connection has taken since", () => {
    const { ann, harness, n1, n2 } = twoPlayers()
    n1.lose()
    const { connectionId } = ann
    const leave = n1.request({ t: "leave", playerId: "ann", connectionId, reason: "left" })
    n1.forgetPresence("ann")
    const back = harness.player("ann", "n2")
    n2.join(back)
    const replaced = { connectionId: back.connectionId, replaced: false }
    n2.request({ t: "disconnect", playerId: "ann", ...replaced })
    n1.attach()
    assert.strictEqual(n1.replies.get(leave), "ok")
    assert.include(harness.members, "ann")
  })

  it("executes the commands of a new link, which begins its numbers again", () => {
    const { harness, n1 } = twoPlayers()
    n1.request(setState("ann", { turn: 1 }))
    n1.detach()
    const again = new NumberingNode(harness, "n1", 2)
    again.request(setState("ann", { turn: 2 }))
    assert.deepStrictEqual(harness.values, { turn: 2 })
  })

  it("forgets a command a minute after its link has gone", () => {
    const { harness, n1 } = twoPlayers()
    assert.lengthOf(harness.actor.activation.executed.stored(), 2)
    n1.detach()
    harness.now += minute - 1
    harness.actor.tick()
    assert.lengthOf(harness.actor.activation.executed.stored(), 2)
    harness.now += 1
    harness.actor.tick()
    assert.deepStrictEqual(
      harness.actor.activation.executed.stored().map(({ node }) => node),
      ["n2"]
    )
  })
})
