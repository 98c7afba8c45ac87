/** The client's view of a room: a pure function of the snapshot and the later events. */
import { assert, describe, it } from "@effect/vitest"
import type { RoomEvent, RoomPlayer, RoomSnapshot } from "#rpc/rooms/events"
import { applyEvent } from "#client/room-reducer"

const player = (id: string): RoomPlayer => ({
  id,
  displayName: id,
  connected: true,
  joinedAt: "2026-11-20T21:00:00.000Z",
  state: {}
})

const room: RoomSnapshot = {
  id: "rm_1",
  code: "7KMB2P",
  mode: "default",
  private: false,
  locked: false,
  transport: "server",
  hostId: "ada",
  hostOnlyState: false,
  maxPlayers: 4,
  metadata: {},
  state: { round: 1, map: "sea" },
  version: 3,
  createdAt: "2026-11-20T21:00:00.000Z",
  players: [player("ada"), player("bob")]
}

const after = (...events: ReadonlyArray<RoomEvent>): RoomSnapshot =>
  events.reduce((view, event) => applyEvent(view, event), room)

const idsOf = (view: RoomSnapshot) => view.players.map(({ id }) => id)

const patched = (patch: Readonly<Record<string, unknown>>): RoomEvent => ({
  t: "state",
  patch,
  from: "bob",
  version: 4
})

describe("the client's view of a room", () => {
  it("merges top-level keys of the state, and null deletes a key", () => {
    const view = after(patched({ map: null, round: 2, bonus: { x: 1 } }))
    assert.deepStrictEqual(view.state, { round: 2, bonus: { x: 1 } })
    assert.strictEqual(view.version, 4)
    assert.deepStrictEqual(room.state, { round: 1, map: "sea" })
  })

  it("merges a player's own state into that player only", () => {
    const event = (patch: Readonly<Record<string, unknown>>): RoomEvent => ({
      t: "player_state",
      playerId: "bob",
      patch
    })
    const view = after(event({ ready: true, team: 1 }), event({ team: null }))
    assert.deepStrictEqual(
      view.players.map(({ state }) => state),
      [{}, { ready: true }]
    )
  })

  it("lets no key of a patch reach a prototype", () => {
    const hostile = JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{}}}')
    const { state } = after(patched(hostile))
    assert.strictEqual(Object.getPrototypeOf(state), Object.prototype)
    assert.isUndefined(Reflect.get(state, "admin"))
    assert.isUndefined(Reflect.get({}, "admin"))
  })

  it("applies joins, disconnects, reconnects and leaves", () => {
    assert.deepStrictEqual(idsOf(after({ t: "player_joined", player: player("cleo") })), [
      "ada",
      "bob",
      "cleo"
    ])
    const dropped: RoomEvent = { t: "player_disconnected", playerId: "bob", graceUntil: "later" }
    assert.deepStrictEqual(
      after(dropped).players.map(({ connected }) => connected),
      [true, false]
    )
    const returned = after(dropped, { t: "player_reconnected", playerId: "bob" })
    assert.deepStrictEqual(returned.players, room.players)
    assert.deepStrictEqual(idsOf(after({ t: "player_left", playerId: "ada", reason: "left" })), [
      "bob"
    ])
  })

  it("shows the new name of a player, and ignores one of a stranger", () => {
    const renamed = (id: string) =>
      after({ t: "player_updated", player: { id, displayName: "New" } }).players.map(
        ({ displayName }) => displayName
      )
    const [, second] = room.players
    assert.deepStrictEqual(renamed("ada"), ["New", second?.displayName])
    assert.deepStrictEqual(
      renamed("nobody"),
      room.players.map(({ displayName }) => displayName)
    )
  })

  it("lists a player once after two joins", () => {
    assert.deepStrictEqual(idsOf(after({ t: "player_joined", player: player("ada") })), [
      "bob",
      "ada"
    ])
  })

  it("applies changes of a room's host and lock", () => {
    const view = after(
      { t: "host_changed", hostId: "bob", previousHostId: "ada", reason: "timeout" },
      { t: "locked", locked: true }
    )
    assert.deepStrictEqual([view.hostId, view.locked], ["bob", true])
  })

  it("replaces the whole view of a room by a snapshot", () => {
    const fresh: RoomSnapshot = { ...room, state: { round: 9 }, version: 40, players: [] }
    const view = after(patched({ round: 2 }), {
      t: "room_joined",
      room: fresh,
      playerId: "ada",
      resumed: true
    })
    assert.deepStrictEqual(view, fresh)
  })

  it("returns the same view of a room when nothing changes", () => {
    assert.strictEqual(after({ t: "message", from: "bob", type: "hi", at: 1 }), room)
  })
})
