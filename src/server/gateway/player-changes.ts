/**
 * Applies changes of players to what is alive. A banned or deleted player loses its sockets, its seat and
 * its channels at once. A ban that was lifted before a node learned of it closes that node's sockets of the
 * player, too: the nodes of its rooms may have acted on it. An ended session loses its socket and its voice
 * calls, but not the seat. A player who is a child now leaves the channels that players have created, and its
 * address is hidden from peers. Rooms and channels show a new display name and respect new blocks.
 * Each node does this for its own connections, rooms and channels, so a seat in its grace period is removed,
 * too. A seat may be taken after the change was applied, by a match or a frame under way: its player is
 * checked once more.
 */
import { DateTime, Effect, FiberSet, Layer, Schema, Stream } from "effect"
import { type PlayerBanned, SessionRevoked } from "#rpc/errors/codes"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { closeCodes } from "#rpc/realtime"
import type { Group } from "#entities/definition"
import { localGroups } from "#entities/registry"
import { LocalRooms } from "#entities/room/entity"
import { makePendingChanges } from "#server/platform/pending-changes"
import { forEachInSlices } from "#server/platform/slices"
import { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import { Blocks } from "#server/features/blocks/service"
import { Configs } from "#server/features/config/service"
import { type PlayerStatus, PlayerStatusCache } from "#server/features/players/status-cache"
import { Sessions } from "#server/features/sessions/service"
import { makeLeaveCalls } from "#server/features/voice/service"
import { applyAgeBand, sendPlayer } from "./age-restrictions.ts"

const isEnvironmentId = Schema.is(EnvironmentId)
const isPlayerId = Schema.is(PlayerId)

/** Finds the rooms and channels of this node that a player is in. */
const makePresenceOf = Effect.map(
  localGroups,
  (groups) => (environmentId: string, playerId: string) =>
    groups.flatMap(({ byPlayer }) =>
      byPlayer.get(playerId).filter((actor) => actor.environmentId === environmentId)
    )
)

interface PresentPlayer {
  readonly environmentId: string
  readonly playerId: string
}

/** Lists the players who are connected here, or are members of rooms or channels that live here. */
const makePresentPlayers = Effect.gen(function* () {
  const { connections } = yield* Hub
  const groups = yield* localGroups
  return function* (): Generator<PresentPlayer> {
    yield* connections.all
    for (const { byPlayer } of groups) {
      for (const playerId of byPlayer.keys) {
        for (const { environmentId } of byPlayer.get(playerId)) {
          if (environmentId !== undefined) yield { environmentId, playerId }
        }
      }
    }
  }
})

const deleted = new SessionRevoked({ message: "This player has been deleted." })

/** Closes the connection of a banned player. */
const closeBanned = (connection: PlayerConnection, error: PlayerBanned): void => {
  connection.leaveAll("banned")
  connection.dismiss(closeCodes.forbidden, error)
}

/** Closes the connections whose player was banned since they opened; returns the others. */
const closeLifted = (
  connections: ReadonlyArray<PlayerConnection>,
  { lastBan }: PlayerStatus
): ReadonlyArray<PlayerConnection> =>
  connections.filter((connection) => {
    if (lastBan === undefined || lastBan.details.sanctionId === connection.lastBanId) return true
    closeBanned(connection, lastBan)
    return false
  })

/** Removes a banned or deleted player from what is alive here. */
const removePlayer = (
  connections: ReadonlyArray<PlayerConnection>,
  presence: ReadonlyArray<Group>,
  playerId: string,
  banned: PlayerStatus["banned"]
): void => {
  for (const connection of connections) {
    if (banned !== undefined) closeBanned(connection, banned)
    else {
      connection.leaveAll("deleted")
      connection.dismiss(closeCodes.unauthorized, deleted)
    }
  }
  const reason = banned === undefined ? "deleted" : "banned"
  for (const actor of presence) actor.removePlayer(playerId, reason)
}

const makeApply = Effect.gen(function* () {
  const hub = yield* Hub
  const blocks = yield* Blocks
  const configs = yield* Configs
  const sessions = yield* Sessions
  const statuses = yield* PlayerStatusCache
  const presenceOf = yield* makePresenceOf
  const leaveCalls = yield* makeLeaveCalls

  /**
   * Closes the connection of an ended session. Its seat stays, for another session of the player.
   * The service admits a later connection with the access token of an ended session until the token
   * expires, as over HTTP.
   */
  const closeEnded = Effect.fnUntraced(function* (connection: PlayerConnection) {
    const { environmentId, session } = connection
    if (session === undefined) return
    const endedAt = yield* sessions.revokedAt(environmentId, session.id)
    if (endedAt === undefined || DateTime.isLessThan(endedAt, session.since)) return
    if (connection.session !== session) return
    const leave = leaveCalls(connection)
    connection.dismiss(closeCodes.unauthorized, new SessionRevoked())
    yield* leave
  })

  /** Removes a player who was banned or deleted before the seat was taken: the change has found none. */
  const checkSeat = Effect.fnUntraced(function* (environmentId: EnvironmentId, playerId: PlayerId) {
    const status = yield* statuses.get(environmentId, playerId)
    if (status !== undefined && status.banned === undefined) return
    const presence = presenceOf(environmentId, playerId)
    const connections = hub.connections.ofPlayer(environmentId, playerId)
    removePlayer(connections, presence, playerId, status?.banned)
  })

  const apply = Effect.fnUntraced(function* (environmentId: EnvironmentId, playerId: PlayerId) {
    const { length: count } = hub.connections.ofPlayer(environmentId, playerId)
    if (count === 0 && presenceOf(environmentId, playerId).length === 0) return
    const status = yield* statuses.get(environmentId, playerId)
    const reads = new Map(
      hub.connections
        .ofPlayer(environmentId, playerId)
        .map((connection) => [connection, connection.readBlocks()])
    )
    // All reads come before the first effect: a link that attaches again in between sends what its connection has.
    const blocked = yield* blocks.of(environmentId, playerId)
    const connections = hub.connections.ofPlayer(environmentId, playerId)
    if (status === undefined || status.banned !== undefined) {
      const presence = presenceOf(environmentId, playerId)
      return removePlayer(connections, presence, playerId, status?.banned)
    }
    for (const actor of presenceOf(environmentId, playerId)) {
      actor.renamePlayer(playerId, status.displayName)
      actor.setBlocks(playerId, blocked)
    }
    const open = closeLifted(connections, status)
    const { audience } = (yield* configs.current(environmentId)).config
    for (const connection of open) {
      const isRenamed = connection.rename(status.displayName)
      const hasBlocks = reads.get(connection)?.(blocked) === true
      if (isRenamed || hasBlocks) sendPlayer(hub, connection)
      applyAgeBand(hub, connection, audience, status.declaredAgeBand)
    }
    yield* Effect.forEach(open, closeEnded, { concurrency: "unbounded", discard: true })
  })
  return { apply, checkSeat }
})

/** Number of players checked at once when any of them may have changed. */
const concurrency = 500

export const PlayerChanges = Layer.effectDiscard(
  Effect.gen(function* () {
    const presentPlayers = yield* makePresentPlayers
    const statuses = yield* PlayerStatusCache
    const { apply, checkSeat } = yield* makeApply
    const applyUntilDone = yield* makePendingChanges
    const applyToPlayer = ({ environmentId, playerId }: PresentPlayer) =>
      isEnvironmentId(environmentId) && isPlayerId(playerId)
        ? applyUntilDone(`${environmentId}/${playerId}`, apply(environmentId, playerId))
        : Effect.void
    const rooms = yield* LocalRooms
    const run = yield* FiberSet.makeRuntime()
    rooms.seatsTaken.register((environmentId, playerId) => {
      if (!isEnvironmentId(environmentId) || !isPlayerId(playerId)) return
      const check = applyUntilDone(
        `seat ${environmentId}/${playerId}`,
        checkSeat(environmentId, playerId)
      )
      // The room first ends the step that took the seat, with its events.
      run(Effect.andThen(Effect.yieldNow, check))
    })
    const applyToAll = Effect.gen(function* () {
      const players = new Map<string, PresentPlayer>()
      yield* forEachInSlices(presentPlayers(), (player) => {
        players.set(`${player.environmentId}/${player.playerId}`, player)
      })
      yield* Effect.forEach(players.values(), applyToPlayer, { concurrency, discard: true })
    })
    yield* statuses.changes.pipe(
      Stream.runForEach((changed) => (changed === "all" ? applyToAll : applyToPlayer(changed))),
      Effect.forkScoped
    )
  })
)
