/**
 * What a change of a player means for what is alive (spec sections 3 and 6): who is banned or deleted
 * loses its sockets, its seat and its channels at once, wherever they are; a session that was ended
 * loses its socket, not the seat; who has become a child is out of the channels that players have
 * made, and no peer gets to see its address any more. Each node does this for the connections, the rooms and
 * the channels that it has, so a seat in its grace goes, too.
 */
import { DateTime, Effect, HashMap, Layer, Schema, Stream } from "effect"
import { type AgeBand, ageProfileOf } from "#rpc/ages"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { SessionRevoked, Unauthorized } from "#rpc/errors/codes"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { closeCodes } from "#rpc/realtime"
import { LocalChannels } from "#entities/channel/entity"
import { LocalRooms } from "#entities/room/entity"
import { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import { setOpenChat } from "#server/features/channels/frames"
import { Configs } from "#server/features/config/service"
import { type PlayerStatus, PlayerStatusCache } from "#server/features/players/status-cache"
import { Sessions } from "#server/features/sessions/service"

const isEnvironmentId = Schema.is(EnvironmentId)
const isPlayerId = Schema.is(PlayerId)

/** The rooms and channels of this node that a player is in, and how to put it out. */
const makePresence = Effect.gen(function* () {
  const rooms = yield* LocalRooms
  const channels = yield* LocalChannels
  return (environmentId: string, playerId: string) => {
    const seats = Array.from(rooms.actors.values()).filter(
      ({ state }) => state?.settings.environmentId === environmentId && state.members.has(playerId)
    )
    const memberships = Array.from(channels.actors.values()).filter(
      ({ id, state }) =>
        state !== undefined &&
        id.startsWith(`${environmentId}/`) &&
        HashMap.has(state.members, playerId)
    )
    return [...seats, ...memberships]
  }
})

/** What a player may do by age, from now on: in its channels, and among its peers. */
export const applyAgeBand = (
  hub: Pick<Hub["Service"], "rooms">,
  connection: PlayerConnection,
  audience: EnvironmentConfig["audience"],
  declaredAgeBand: AgeBand | null
): void => {
  const { capabilities } = ageProfileOf(audience, declaredAgeBand)
  const relayOnly = !capabilities.directConnections
  connection.declaredAgeBand = declaredAgeBand
  setOpenChat(connection, capabilities.openChat)
  if (connection.relayOnly === relayOnly) return
  connection.relayOnly = relayOnly
  const { reservation: place, playerId } = connection
  if (place.kind !== "seat") return
  // Without a line the player has not come in yet: it will come as it is now.
  const line = hub.rooms.get(place.roomId)
  line?.send({ t: "relay", playerId, relayOnly }, () => line.closeIfIdle())
}

const gone = new Unauthorized({ message: "This player has been deleted." })

const makeApply = Effect.gen(function* () {
  const hub = yield* Hub
  const configs = yield* Configs
  const sessions = yield* Sessions
  const standings = yield* PlayerStatusCache
  const presenceOf = yield* makePresence

  const connectionsOf = (environmentId: string, playerId: string) =>
    Array.from(hub.connections.values()).filter(
      (one) => one.playerId === playerId && one.environmentId === environmentId
    )

  const removePlayer = (
    connections: ReadonlyArray<PlayerConnection>,
    presence: ReturnType<typeof presenceOf>,
    playerId: string,
    banned: PlayerStatus["banned"]
  ): void => {
    const reason = banned === undefined ? "deleted" : "banned"
    for (const connection of connections) {
      connection.leaveAll(reason)
      if (banned === undefined) connection.dismiss(closeCodes.unauthorized, gone)
      else connection.dismiss(closeCodes.forbidden, banned)
    }
    for (const actor of presence) actor.removePlayer(playerId, reason)
  }

  /**
   * The seat stays, for another session of the player. Whoever comes in later with the access token of
   * an ended session is as welcome as over HTTP, until it expires (spec section 5, rule 6).
   */
  const closeEnded = Effect.fnUntraced(function* (connection: PlayerConnection) {
    const { environmentId, session } = connection
    if (session === undefined) return
    const endedAt = yield* sessions.revokedAt(environmentId, session.id)
    if (endedAt === undefined || DateTime.isLessThan(endedAt, session.since)) return
    if (connection.session !== session) return
    connection.dismiss(closeCodes.unauthorized, new SessionRevoked())
  })

  return Effect.fnUntraced(function* (environmentId: EnvironmentId, playerId: PlayerId) {
    const isHere = (): boolean =>
      connectionsOf(environmentId, playerId).length + presenceOf(environmentId, playerId).length > 0
    if (!isHere()) return
    const standing = yield* standings.get(environmentId, playerId)
    const connections = connectionsOf(environmentId, playerId)
    if (standing === undefined || standing.banned !== undefined) {
      const presence = presenceOf(environmentId, playerId)
      return removePlayer(connections, presence, playerId, standing?.banned)
    }
    const { audience } = (yield* configs.current(environmentId)).config
    for (const connection of connections) {
      applyAgeBand(hub, connection, audience, standing.declaredAgeBand)
    }
    yield* Effect.forEach(connections, closeEnded, { concurrency: "unbounded", discard: true })
  })
})

/** How many players are looked at together when any of them may have changed. */
const concurrency = 500

/** Follows the changes of players. */
export const PlayerChanges = Layer.effectDiscard(
  Effect.gen(function* () {
    const hub = yield* Hub
    const standings = yield* PlayerStatusCache
    const apply = yield* makeApply
    const applied = (environmentId: EnvironmentId, playerId: PlayerId) =>
      Effect.catchDefect(apply(environmentId, playerId), (defect) =>
        Effect.logError("A change of a player was not followed", defect)
      )
    const everybody = Effect.suspend(() =>
      Effect.forEach(
        Array.from(hub.connections.values()),
        ({ environmentId, playerId }) => applied(environmentId, playerId),
        { concurrency, discard: true }
      )
    )
    yield* standings.changes.pipe(
      Stream.runForEach((changed) => {
        if (changed === "all") return everybody
        const { environmentId, playerId } = changed
        return isEnvironmentId(environmentId) && isPlayerId(playerId)
          ? applied(environmentId, playerId)
          : Effect.void
      }),
      Effect.forkScoped
    )
  })
)
