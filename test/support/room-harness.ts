/**
 * Harness for the room state machine under virtual time, without a service. Each connected member
 * builds its own view from `room_joined` and the later events, as a client does. Tests compare these
 * views with the state of the room.
 */
import { isDeepStrictEqual } from "node:util"
import { assert } from "@effect/vitest"
import { Result } from "effect"
import type { JsonObject } from "#rpc/json"
import type { RoomEvent, RoomPlayer, RoomSnapshot } from "#rpc/rooms/events"
import { roomLimits } from "#rpc/rooms/limits"
import {
  type Decision,
  type JoiningPlayer,
  openRoom,
  type RoomCommand,
  type RoomSettings,
  type RoomState,
  roomView
} from "#entities/room/model"
import type { Absence } from "#entities/reconnect-grace"
import { graces } from "#entities/reconnect-grace"
import { receives } from "#entities/room/messages"
import { nextDeadline } from "#entities/room/seats"
import { decide } from "#entities/room/state"
import { isBarred } from "#entities/room/bars"

/** Creation time of each room, Unix milliseconds. */
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

/** Returns the id of a connection; ids of later connections are greater. */
export const connectionOf = (number: number): string => `c${String(number).padStart(6, "0")}`

/** A room without members. */
export const emptyRoom = (overrides: Partial<RoomSettings> = {}): RoomState =>
  openRoom({ ...settings, ...overrides })

const mergePatch = (values: JsonObject, patch: JsonObject): JsonObject => {
  const entries = new Map([...Object.entries(values), ...Object.entries(patch)])
  return Object.fromEntries(Array.from(entries).filter(([, value]) => value !== null))
}

const updatePlayer = (
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

const applyVote = (
  { vote, ...view }: RoomSnapshot,
  { state, t: _, ...next }: Extract<RoomEvent, { t: "vote" }>
): RoomSnapshot => {
  if (vote !== undefined) assert.strictEqual(next.voteId, vote.voteId)
  if (state === "open") return { ...view, vote: next }
  assert.strictEqual(next.voteId, vote?.voteId ?? next.voteId, "a vote ends once")
  return view
}

/** Applies an event to the view of a client; undefined when the room has closed. */
export const applyEvent = (view: RoomSnapshot, event: RoomEvent): RoomSnapshot | undefined => {
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
      return updatePlayer(view, event.playerId, (player) => {
        assert.strictEqual(player.connected, !connected, `${event.t} changes the view`)
        return { ...player, connected }
      })
    }
    case "player_updated":
      return updatePlayer(view, event.player.id, (player) => {
        assert.notStrictEqual(player.displayName, event.player.displayName)
        return { ...player, ...event.player }
      })
    case "host_changed":
      assert.strictEqual(event.previousHostId, view.hostId)
      assert.notStrictEqual(event.hostId, view.hostId)
      return { ...view, hostId: event.hostId }
    case "state":
      assert.strictEqual(event.version, view.version + 1)
      return { ...view, state: mergePatch(view.state, event.patch), version: event.version }
    case "player_state":
      return updatePlayer(view, event.playerId, (player) => ({
        ...player,
        state: mergePatch(player.state, event.patch)
      }))
    case "message":
    case "signal":
    case "removed":
      return view
    case "muted":
      return updatePlayer(view, event.playerId, ({ muted, ...player }) => {
        assert.notStrictEqual(muted === true, event.muted)
        return event.muted ? { ...player, muted: true } : player
      })
    case "vote":
      return applyVote(view, event)
    case "teams":
      return { ...view, teams: event.teams }
    case "locked":
      assert.notStrictEqual(view.locked, event.locked)
      return { ...view, locked: event.locked }
    case "room_closed":
      return undefined
  }
}

export class RoomHarness {
  now = start
  state: RoomState
  /** The view of each connected member. */
  readonly views = new Map<string, RoomSnapshot>()
  readonly #received = new Map<string, Array<RoomEvent>>()
  #connections = 0

  constructor(overrides: Partial<RoomSettings> = {}) {
    this.state = emptyRoom(overrides)
  }

  /** Returns a player on a new connection. */
  joiningPlayer(playerId: string, node = "n1"): JoiningPlayer {
    this.#connections += 1
    const connectionId = connectionOf(this.#connections)
    return { playerId, displayName: playerId, relayOnly: false, node, connectionId }
  }

  decide(command: RoomCommand) {
    const before = this.state
    const result = decide(before, command, this.now)
    if (Result.isSuccess(result)) {
      checkChange(before, result.success, this.now)
      this.#apply(result.success)
    }
    return result
  }

  /** Runs a command that must be granted, and returns the data of the reply. */
  act(command: RoomCommand): JsonObject {
    return Result.getOrThrow(this.decide(command)).data
  }

  /** Runs a command, and returns the code of the refusal or `granted`. */
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

  /** Disconnects the connection that holds the seat. */
  drop(playerId: string, replaced = false): void {
    const connectionId = this.state.members.get(playerId)?.attachment?.connectionId ?? "none"
    this.act({ t: "disconnect", playerId, connectionId, replaced })
  }

  /** Advances the clock, with a tick at each deadline of the room. */
  wait(millis: number): void {
    const end = this.now + millis
    while (this.state.closed === null && nextDeadline(this.state) <= end) {
      this.now = Math.max(this.now, nextDeadline(this.state))
      this.act({ t: "tick" })
      if (this.state.closed === null) assert.isAbove(nextDeadline(this.state), this.now)
    }
    this.now = end
  }

  /** Joins on a new connection, and returns the code of the refusal or `granted`. */
  joinRefusal(playerId: string): string {
    return this.refusal({ t: "join", ...this.joiningPlayer(playerId) })
  }

  resumeRefusal(playerId: string): string {
    return this.refusal({ t: "resume", ...this.joiningPlayer(playerId) })
  }

  /** Seats players as matchmaking does. */
  seat(...players: ReadonlyArray<string>): JsonObject {
    return this.act({
      t: "seat",
      joiningPlayers: players.map((player) => this.joiningPlayer(player))
    })
  }

  /** Returns and clears the events that a player received since the last call. */
  takeEvents(playerId: string): ReadonlyArray<RoomEvent> {
    const events = this.#received.get(playerId) ?? []
    this.#received.delete(playerId)
    return events
  }

  /** Returns and clears the types of the events that a player received since the last call. */
  takeKinds(playerId: string): ReadonlyArray<RoomEvent["t"]> {
    return this.takeEvents(playerId).map(({ t }) => t)
  }

  #record(playerId: string, event: RoomEvent): void {
    const events = this.#received.get(playerId) ?? []
    this.#received.set(playerId, [...events, event])
  }

  #apply({ emissions, state }: Decision): void {
    this.state = state
    for (const emission of emissions) {
      const { event, except, membership } = emission
      if (membership === "enter" && event.t === "room_joined") {
        this.views.set(event.playerId, event.room)
        this.#record(event.playerId, event)
        continue
      }
      for (const [id, view] of this.views) {
        if (!receives(emission, id)) continue
        this.#record(id, event)
        const next = applyEvent(view, event)
        if (next === undefined) this.views.delete(id)
        else this.views.set(id, next)
      }
      if (membership === "exit" && except !== null) this.views.delete(except)
    }
    for (const id of this.views.keys()) {
      if (!isConnected(state, id)) this.views.delete(id)
    }
  }
}

/** Asserts what holds for each change: no barred player comes in, and each event of rights comes once. */
const checkChange = (before: RoomState, { emissions, state }: Decision, now: number): void => {
  const kinds = emissions.map(({ event }) => event.t)
  assert.isAtMost(kinds.filter((t) => t === "host_changed").length, 1, "one host_changed")
  assert.isAtMost(kinds.filter((t) => t === "teams").length, 1, "one event of teams")
  assert.isAtMost(kinds.filter((t) => t === "vote").length, 1, "one event of a vote")
  for (const id of state.members.keys()) {
    if (!before.members.has(id)) assert.isFalse(isBarred(before, id, now), `${id} is barred`)
  }
  const ended = before.rights.vote !== null && state.rights.vote === null && state.closed === null
  const endings = emissions.filter(({ event }) => event.t === "vote" && event.state !== "open")
  if (before.rights.vote !== null) assert.lengthOf(endings, ended ? 1 : 0)
}

const isConnected = (state: RoomState, id: string): boolean =>
  (state.members.get(id)?.attachment ?? null) !== null

/** A room whose members joined in this order, a millisecond apart, with their events cleared. */
export const roomOf = (
  players: ReadonlyArray<string>,
  overrides: Partial<RoomSettings> = {}
): RoomHarness => {
  const room = new RoomHarness(overrides)
  for (const player of players) {
    room.join(player)
    room.wait(1)
  }
  for (const player of players) room.takeEvents(player)
  return room
}

/** Is the view of a member equal to the state of the room? */
export const viewMatches = (view: RoomSnapshot, state: RoomState): boolean =>
  isDeepStrictEqual(view, roomView(state))

/** No grace moves beyond its bounds, counted from the drop. */
const checkBounds = ({ droppedAt, since, waitedMillis }: Absence, graceMillis: number): void => {
  assert.isAtMost(waitedMillis, graces.waitingSeconds * 1000)
  // A connection seen too long ago is dropped when the room notices, and its grace ends at once.
  const latest = droppedAt + Math.max(graces.absenceSeconds * 1000, graceMillis)
  assert.isAtMost(since + graceMillis, latest)
}

/** Asserts the invariants of a room, which hold after each command. `punctual`: no tick was late. */
export const checkRoom = (state: RoomState, now: number, punctual: boolean): void => {
  const members = Array.from(state.members.values())
  assert.isAtMost(members.length, state.settings.maxPlayers)
  for (const { key, max } of state.settings.teams ?? []) {
    assert.isAtMost(members.filter(({ team }) => team === key).length, max)
  }
  const { rights } = state
  assert.isAtMost(rights.bars.size, roomLimits.barsMax)
  if (punctual && rights.vote !== null) assert.isAbove(rights.vote.endsAt, now)
  for (const member of members) {
    assert.strictEqual(member.attachment === null, member.absence !== null)
    assert.strictEqual(member.team !== undefined, state.settings.teams !== undefined)
    if (member.announced) assert.isNull(member.attachment)
    if (member.absence !== null) checkBounds(member.absence, state.settings.graceSeconds * 1000)
    if (member.joinDeadline !== null) assert.isNotNull(member.attachment)
  }
  const host = state.hostId === null ? undefined : state.members.get(state.hostId)
  if (state.hostId !== null) assert.isDefined(host, "the host is a member")
  if (!punctual || !members.some((member) => member.attachment !== null)) return
  assert.isDefined(host, "a room with a connected member has a host")
  const droppedAt = host?.absence?.droppedAt
  if (droppedAt === undefined) return
  assert.isBelow(now, Math.max(droppedAt, state.wokenAt) + roomLimits.hostGraceSeconds * 1000)
}
