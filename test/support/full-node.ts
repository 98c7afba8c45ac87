/**
 * A node full of players and rooms: the real hub and registries, and the real layers that apply changes
 * of players and configs, without sockets, entities or a database. Counts how often a connection or a
 * room is looked at.
 */
import { DateTime, Deferred, Effect, Layer, Result, Stream } from "effect"
import { TestRunner } from "effect/cluster"
import { SecureRandom } from "effect/crypto"
import { decodeConfig } from "#rpc/config-document/document"
import { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import { batchReads } from "#sql/batching"
import { ChannelRepository } from "#sql/channels"
import { RoomRepository } from "#sql/rooms"
import { LocalRooms } from "#entities/room/entity"
import { ThisNode } from "#entities/local-actors"
import { LocalEntities } from "#entities/registry"
import { RoomActor } from "#entities/room/actor"
import type { RoomRuntime } from "#entities/room/runtime"
import { RoomWriter } from "#entities/room/writer"
import { seat } from "#entities/room/seats"
import { NodeFlush } from "#server/platform/flush"
import { Hub } from "#server/links/hub"
import { PlayerConnection } from "#server/links/player-connection"
import { ReservationManager } from "#server/links/reservations"
import { Blocks } from "#server/features/blocks/service"
import { Configs, type CurrentConfig } from "#server/features/config/service"
import { type PlayerStatus, PlayerStatusCache } from "#server/features/players/status-cache"
import { Sessions } from "#server/features/sessions/service"
import { VoiceSessions } from "#server/features/voice/service"
import { ConfigChanges } from "#server/gateway/config-changes"
import { PlayerChanges } from "#server/gateway/player-changes"
import { emptyRoom } from "./room-harness.ts"

export interface NodeSize {
  readonly environments: number
  readonly connections: number
  readonly rooms: number
}

const idOf = (prefix: string, index: number): string =>
  `${prefix}_${String(index).padStart(26, "0")}`

const environmentIds = ({ environments }: NodeSize): ReadonlyArray<EnvironmentId> =>
  Array.from({ length: environments }, (_, index) => EnvironmentId.make(idOf("env", index)))

const at = DateTime.makeUnsafe(0)

/** How long the stand-in for a database takes for one statement. */
const statementMillis = 2

const status: PlayerStatus = {
  displayName: "Player",
  declaredAgeBand: null,
  hasBlocks: false,
  banned: undefined,
  lastBan: undefined
}

/** The registries of a node, with a cluster in memory. */
export const RegistriesLive = Hub.layer.pipe(
  Layer.provideMerge(LocalEntities),
  Layer.provideMerge(Layer.mergeAll(ThisNode.layer, NodeFlush.layer)),
  Layer.provide([
    TestRunner.layer,
    Layer.mock(ChannelRepository)({}),
    Layer.mock(RoomRepository)({})
  ]),
  Layer.provide(SecureRandom.layerWebCrypto)
)

/** Counts every read of a property as a look. */
const counted = <Target extends object, Key extends keyof Target>(
  target: Target,
  key: Key,
  looks: { count: number }
): Target => {
  let value = target[key]
  return Object.defineProperty(target, key, {
    get: () => {
      looks.count += 1
      return value
    },
    set: (next: Target[Key]) => {
      value = next
    }
  })
}

const runtimeOf = (local: LocalRooms["Service"], actor: () => RoomActor): RoomRuntime => ({
  now: () => 0,
  clocks: [],
  hasLease: () => true,
  heldFrom: () => null,
  wakeAt: () => undefined,
  changed: () => undefined,
  flushSoon: () => undefined,
  shared: true,
  closed: () => undefined,
  memberAdded: (playerId) => {
    const room = actor()
    local.byPlayer.add(playerId, room)
    local.seatsTaken.send(room.state?.settings.environmentId ?? "", playerId)
  },
  memberRemoved: (playerId) => local.byPlayer.delete(playerId, actor())
})

/** Opens a connection for each player, and seats the players evenly in rooms of their environment. */
export const fillNode = Effect.fnUntraced(function* (size: NodeSize) {
  const hub = yield* Hub
  const local = yield* LocalRooms
  const looks = { count: 0 }
  const environments = environmentIds(size)
  const environmentOf = (index: number) =>
    environments[index % environments.length] ?? EnvironmentId.make(idOf("env", 0))
  /** The players of an environment sit evenly in its rooms. */
  const roomOf = (index: number): number => {
    const rooms = Math.floor(size.rooms / size.environments)
    const room = Math.floor(index / size.environments) % rooms
    return (index % size.environments) + room * size.environments
  }
  const connections = Array.from({ length: size.connections }, (_, index) => {
    const [connectionId, playerId] = [idOf("con", index), PlayerId.make(idOf("pl", index))]
    const calls = { session: () => Effect.never, peek: () => Effect.succeed(null) }
    const connection = new PlayerConnection({
      player: {
        connectionId,
        environmentId: environmentOf(index),
        playerId,
        session: { id: SessionId.make(idOf("ses", index)), since: at },
        displayName: "Player",
        lastBanId: undefined
      },
      sink: { push: () => undefined, close: () => undefined },
      reservations: new ReservationManager({ connectionId, playerId, calls }),
      run: hub.run,
      onClosed: () => undefined
    })
    hub.connections.add(connection)
    return counted(connection, "environmentId", looks)
  })
  const players = Map.groupBy(connections, (_, index) => roomOf(index))
  const rooms = Array.from({ length: size.rooms }, (_, index) => {
    const id = idOf("rm", index)
    const environmentId = environmentOf(index)
    const actor: RoomActor = new RoomActor(
      id,
      1,
      undefined,
      runtimeOf(local, () => actor)
    )
    const seated = (players.get(index) ?? []).map(
      ({ connectionId, displayName, playerId, relayOnly }) => ({
        node: hub.node,
        connectionId,
        displayName,
        playerId,
        relayOnly
      })
    )
    const room = emptyRoom({ id, environmentId, maxPlayers: 64 })
    local.actors.set(id, actor)
    actor.open(Result.getOrThrow(seat(room, seated, 0)).state)
    return counted(actor, "state", looks)
  })
  looks.count = 0
  return { connections, rooms, looks }
})

/** A batched read that finds nothing, and takes as long as a statement. */
const emptyReads = batchReads<never>(() =>
  Effect.as(Effect.sleep(statementMillis), new Map<string, never>())
)

const configOf = (multiplayer: boolean) =>
  Effect.orDie(Effect.fromResult(decodeConfig({ features: { multiplayer } })))

const currentOf = (config: CurrentConfig["config"]): CurrentConfig => ({
  version: 1,
  config,
  featureErrors: new Map(),
  document: {},
  voiceSuspended: false
})

/** Applies changes of players, until the scope closes. */
export const startPlayerChanges = Effect.fnUntraced(function* (
  statuses: Layer.Layer<PlayerStatusCache>
) {
  const findRevocations = yield* emptyReads
  const config = yield* configOf(true)
  const sessions = Layer.mock(Sessions)({
    sessionIdOf: () => undefined,
    revokedAt: (environmentId, sessionId) =>
      Effect.as(findRevocations(environmentId, [sessionId]), undefined)
  })
  const configs = Layer.mock(Configs)({
    current: () => Effect.succeed(currentOf(config)),
    changes: Stream.never
  })
  const blocks = Layer.mock(Blocks)({ of: () => Effect.succeed([]) })
  const voice = Layer.mock(VoiceSessions)({
    of: () => {
      throw new Error("No player of this node is in a call.")
    }
  })
  yield* Layer.build(
    PlayerChanges.pipe(Layer.provide([statuses, blocks, sessions, configs, voice]))
  )
})

/** Applies what follows when the listener for changes has reconnected: any player may have changed. */
export const applyAllPlayers = Effect.gen(function* () {
  const applied = yield* Deferred.make<void>()
  const findStatuses = yield* emptyReads
  const statuses = Layer.mock(PlayerStatusCache)({
    get: (environmentId, playerId) => Effect.as(findStatuses(environmentId, [playerId]), status),
    changes: Stream.concat(
      Stream.make("all" as const),
      Stream.drain(Stream.fromEffect(Deferred.succeed(applied, undefined)))
    )
  })
  yield* startPlayerChanges(statuses)
  yield* Deferred.await(applied)
}).pipe(Effect.scoped)

/** Applies new configs of all environments, with or without multiplayer. */
export const applyAllConfigs = (size: NodeSize, multiplayer: boolean) =>
  Effect.gen(function* () {
    const applied = yield* Deferred.make<void>()
    const config = yield* configOf(multiplayer)
    const configs = Layer.mock(Configs)({
      current: () => Effect.succeed(currentOf(config)),
      changes: Stream.concat(
        Stream.fromIterable(environmentIds(size)),
        Stream.drain(Stream.fromEffect(Deferred.succeed(applied, undefined)))
      )
    })
    yield* Layer.build(ConfigChanges.pipe(Layer.provide(configs)))
    yield* Deferred.await(applied)
  }).pipe(Effect.scoped)

const savesAll = Layer.mock(RoomRepository)({
  save: (rows) => Effect.as(Effect.sleep(statementMillis), new Map(rows.map(({ id }) => [id, 0]))),
  unclaimed: (rows) => Effect.succeed(new Map(rows.map(({ id }) => [id, true])))
})

/** Stops all rooms at once: each waits until its changed state is written. */
export const stopAllRooms = Effect.gen(function* () {
  const { actors } = yield* LocalRooms
  const writer = yield* RoomWriter
  for (const actor of actors.values()) writer.markDirty(actor)
  yield* Effect.forEach(actors.values(), () => writer.flush, {
    concurrency: "unbounded",
    discard: true
  })
}).pipe(Effect.provide(RoomWriter.layer), Effect.provide(savesAll))
