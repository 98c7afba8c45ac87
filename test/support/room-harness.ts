/**
 * A room played without a service, under virtual time: commands go in, and each member that hears the
 * room builds its own view from its `room_joined` and the events after it, as a client does. A view
 * that differs from the room is a defect, whatever the room's own state says.
 */
import { isDeepStrictEqual } from "node:util"
import { assert } from "@effect/vitest"
import { Result } from "effect"
import { rooms } from "#rpc/limits"
import type { JsonObject, RoomEvent, RoomPlayer, RoomSnapshot } from "#rpc/rooms"
import {
  type Decision,
  type JoiningPlayer,
  openRoom,
  type RoomCommand,
  type RoomSettings,
  type RoomState,
  roomView
} from "#entities/room/model"
import { nextDeadline } from "#entities/room/seats"
import { decide } from "#entities/room/state"

/** When every room here was opened, Unix milliseconds. */
export const start = 1_800_000_000_000

const settings: RoomSettings = {
  id: "rm_1",
  environmentId: "env_1",
  code: "BCDFGH",
  mode: "default",
  private: false,
  transport: "server",
  p2p: null,
  hostOnlyState: false,
  maxPlayers: 4,
  metadata: {},
  graceSeconds: 30,
  matched: false,
  createdAt: start
}

/** The id of a connection; a later one is greater. */
export const connectionOf = (number: number): string => `c${String(number).padStart(6, "0")}`

/** A room nobody sits in yet. */
export const emptyRoom = (overrides: Partial<RoomSettings> = {}): RoomState =>
  openRoom({ ...settings, ...overrides })

const merged = (values: JsonObject, patch: JsonObject): JsonObject => {
  const entries = new Map([...Object.entries(values), ...Object.entries(patch)])
  return Object.fromEntries(Array.from(entries).filter(([, value]) => value !== null))
}

const withPlayer = (
  view: RoomSnapshot,
  playerId: string,
  change: (player: RoomPlayer) => RoomPlayer
): RoomSnapshot => {
  assert.include(
    view.players.map(({ id }) => id),
    playerId
  )
  const players = view.players.map((player) => (player.id === playerId ? change(player) : player))
  return { ...view, players }
}

/** What a client makes of an event; undefined when the room is over. */
export const follow = (view: RoomSnapshot, event: RoomEvent): RoomSnapshot | undefined => {
  switch (event.t) {
    case "room_joined":
      return event.room
    case "player_joined":
      assert.notInclude(
        view.players.map(({ id }) => id),
        event.player.id
      )
      return { ...view, players: [...view.players, event.player] }
    case "player_left":
      assert.include(
        view.players.map(({ id }) => id),
        event.playerId
      )
      return { ...view, players: view.players.filter(({ id }) => id !== event.playerId) }
    case "player_disconnected":
    case "player_reconnected": {
      const connected = event.t === "player_reconnected"
      return withPlayer(view, event.playerId, (player) => {
        assert.strictEqual(player.connected, !connected, `${event.t} says something new`)
        return { ...player, connected }
      })
    }
    case "host_changed":
      assert.strictEqual(event.previousHostId, view.hostId)
      assert.notStrictEqual(event.hostId, view.hostId)
      return { ...view, hostId: event.hostId }
    case "state":
      assert.strictEqual(event.version, view.version + 1)
      return { ...view, state: merged(view.state, event.patch), version: event.version }
    case "player_state":
      return withPlayer(view, event.playerId, (player) => ({
        ...player,
        state: merged(player.state, event.patch)
      }))
    case "message":
    case "signal":
      return view
    case "locked":
      assert.notStrictEqual(view.locked, event.locked)
      return { ...view, locked: event.locked }
    case "room_closed":
      return undefined
  }
}

export class RoomWorld {
  now = start
  state: RoomState
  /** The room as each hearing member has it. */
  readonly views = new Map<string, RoomSnapshot>()
  readonly #heard = new Map<string, Array<RoomEvent>>()
  #connections = 0

  constructor(overrides: Partial<RoomSettings> = {}) {
    this.state = emptyRoom(overrides)
  }

  /** A player on a new connection. */
  joiningPlayer(playerId: string, node = "n1"): JoiningPlayer {
    this.#connections += 1
    const connectionId = connectionOf(this.#connections)
    return { playerId, displayName: playerId, relayOnly: false, node, connectionId }
  }

  decide(command: RoomCommand) {
    const result = decide(this.state, command, this.now)
    if (Result.isSuccess(result)) this.#settle(result.success)
    return result
  }

  /** The data of the reply to a command that is granted. */
  act(command: RoomCommand): JsonObject {
    return Result.getOrThrow(this.decide(command)).data
  }

  /** The code of the refusal, or `granted`. */
  refusal(command: RoomCommand): string {
    const result = this.decide(command)
    return Result.isFailure(result) ? result.failure._tag : "granted"
  }

  join(playerId: string, node?: string): JsonObject {
    return this.act({ t: "join", ...this.joiningPlayer(playerId, node) })
  }

  resume(playerId: string, node?: string): JsonObject {
    return this.act({ t: "resume", ...this.joiningPlayer(playerId, node) })
  }

  leave(playerId: string): JsonObject {
    return this.act({ t: "leave", playerId, reason: "left" })
  }

  /** The socket that holds the seat is gone. */
  drop(playerId: string, replaced = false): void {
    const connectionId = this.state.members.get(playerId)?.attachment?.connectionId ?? "none"
    this.act({ t: "disconnect", playerId, connectionId, replaced })
  }

  /** Time passes, and the room acts whenever it asked to. */
  wait(millis: number): void {
    const end = this.now + millis
    while (this.state.closed === null && nextDeadline(this.state) <= end) {
      this.now = Math.max(this.now, nextDeadline(this.state))
      this.act({ t: "tick" })
      if (this.state.closed === null) assert.isAbove(nextDeadline(this.state), this.now)
    }
    this.now = end
  }

  /** The code of the answer to a join on a new connection. */
  joinRefusal(playerId: string): string {
    return this.refusal({ t: "join", ...this.joiningPlayer(playerId) })
  }

  resumeRefusal(playerId: string): string {
    return this.refusal({ t: "resume", ...this.joiningPlayer(playerId) })
  }

  /** Matchmaking gives seats. */
  seat(...players: ReadonlyArray<string>): JsonObject {
    return this.act({
      t: "seat",
      joiningPlayers: players.map((player) => this.joiningPlayer(player))
    })
  }

  /** What a player heard since this was last asked. */
  heard(playerId: string): ReadonlyArray<RoomEvent> {
    const events = this.#heard.get(playerId) ?? []
    this.#heard.delete(playerId)
    return events
  }

  /** The kinds of events a player heard since this was last asked. */
  kinds(playerId: string): ReadonlyArray<RoomEvent["t"]> {
    return this.heard(playerId).map(({ t }) => t)
  }

  #hears(playerId: string, event: RoomEvent): void {
    const events = this.#heard.get(playerId) ?? []
    this.#heard.set(playerId, [...events, event])
  }

  #settle({ emissions, state }: Decision): void {
    this.state = state
    for (const { event, except, to, membership: turn } of emissions) {
      if (turn === "enter" && event.t === "room_joined") {
        this.views.set(event.playerId, event.room)
        this.#hears(event.playerId, event)
        continue
      }
      for (const [id, view] of this.views) {
        if (to === null ? id === except : !to.includes(id)) continue
        this.#hears(id, event)
        const next = follow(view, event)
        if (next === undefined) this.views.delete(id)
        else this.views.set(id, next)
      }
      if (turn === "exit" && except !== null) this.views.delete(except)
    }
    for (const id of this.views.keys()) {
      if (!isConnected(state, id)) this.views.delete(id)
    }
  }
}

const isConnected = (state: RoomState, id: string): boolean =>
  (state.members.get(id)?.attachment ?? null) !== null

/** A room whose members came in this order, a millisecond apart; what they heard is forgotten. */
export const roomOf = (
  players: ReadonlyArray<string>,
  overrides: Partial<RoomSettings> = {}
): RoomWorld => {
  const room = new RoomWorld(overrides)
  for (const player of players) {
    room.join(player)
    room.wait(1)
  }
  for (const player of players) room.heard(player)
  return room
}

/** The view of a member is the room. */
export const agrees = (view: RoomSnapshot, state: RoomState): boolean =>
  isDeepStrictEqual(view, roomView(state))

/** What holds of a room between any two commands. `punctual`: its ticks came when they were due. */
export const checkRoom = (state: RoomState, now: number, punctual: boolean): void => {
  const members = Array.from(state.members.values())
  assert.isAtMost(members.length, state.settings.maxPlayers)
  for (const member of members) {
    assert.strictEqual(member.attachment === null, member.absentSince !== null)
    if (member.announced) assert.isNull(member.attachment)
    if (member.joinDeadline !== null) assert.isNotNull(member.attachment)
  }
  const host = state.hostId === null ? undefined : state.members.get(state.hostId)
  if (state.hostId !== null) assert.isDefined(host, "the host is a member")
  if (!punctual || !members.some((member) => member.attachment !== null)) return
  assert.isDefined(host, "somebody is connected, so there is a host")
  const away = host?.absentSince ?? null
  if (away !== null) assert.isBelow(now, away + rooms.hostGraceSeconds * 1000)
}
