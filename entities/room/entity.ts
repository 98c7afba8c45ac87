/**
 * Behaviour of the room entity: activates an actor from its snapshot, runs its timers, and handles the
 * entity's calls. On the gateway's own node, outputs go through {@link LocalRooms}, and the `Watch`
 * stream only shows whether the room still lives there.
 */
import { Clock, Context, Effect, Layer, Result } from "effect"
import { Entity } from "effect/cluster"
import { RoomLocked, RoomNotFound, Unavailable } from "#rpc/errors/codes"
import { RoomRepository } from "#sql/rooms"
import { GraceHolds } from "../grace-holds.ts"
import { Lease, makeActivations } from "../lease.ts"
import { listGroup, makeLiveCalls, wake } from "../live-entity.ts"
import { type LocalGroups, makeLocalGroups, Sink, ThisNode } from "../local-actors.ts"
import { durationClocks } from "../monotonic.ts"
import { makeTimer } from "../timer.ts"
import { RoomActor } from "./actor.ts"
import { type RemoteRoomOutputs, RemoteRooms } from "./remote.ts"
import { type JoiningPlayer, openRoom, type RoomState } from "./model.ts"
import { heldSeat } from "./held-seat.ts"
import type { OpenRoom, RoomOutput } from "./messages.ts"
import { Room, RoomMissing } from "./protocol.ts"
import { claimRoomCode } from "./room-code.ts"
import type { RoomRuntime } from "./runtime.ts"
import { seat } from "./seats.ts"
import { decodeSnapshot, toRow, wakeFrom } from "./snapshot.ts"
import { RoomWriter } from "./writer.ts"

/** The rooms on this node, and the outputs that arrive for it from other nodes. */
export class LocalRooms extends Context.Service<
  LocalRooms,
  LocalGroups<RoomActor, RoomOutput> & {
    /** Outputs of rooms on other nodes for this node; the node's hub registers here. */
    readonly remoteOutputs: Sink<[outputs: RemoteRoomOutputs]>
    /** Players who have just taken a seat in a room of this node. */
    readonly seatsTaken: Sink<[environmentId: string, playerId: string]>
  }
>()("entities/room/entity/LocalRooms") {
  /** A registry over this map, for tests that record the actors. */
  static readonly with = (actors?: Map<string, RoomActor>): LocalRooms["Service"] => ({
    ...makeLocalGroups<RoomActor, RoomOutput>(actors),
    remoteOutputs: new Sink<[outputs: RemoteRoomOutputs]>(),
    seatsTaken: new Sink<[environmentId: string, playerId: string]>()
  })

  static readonly layer = Layer.sync(LocalRooms, () => LocalRooms.with())
}

const wakeState = Effect.fnUntraced(function* (id: string) {
  const repository = yield* RoomRepository
  const { epoch, snapshot, tableEpoch } = yield* repository.claim(id)
  if (snapshot === null) {
    return { epoch, state: undefined, since: tableEpoch ?? Number.POSITIVE_INFINITY, links: [] }
  }
  const stored = yield* Effect.orDie(decodeSnapshot(snapshot))
  const now = yield* Clock.currentTimeMillis
  return { epoch, state: wakeFrom(stored, now), since: epoch, links: stored.links ?? [] }
})

/** Activates the room on this node until the scope closes. */
const makeActor = Effect.fnUntraced(function* (id: string) {
  const clock = yield* Clock.Clock
  const local = yield* LocalRooms
  const writer = yield* RoomWriter
  const lease = yield* Lease
  const { heldFrom } = yield* GraceHolds
  const remoteRooms = yield* RemoteRooms
  const { epoch, links, since, state } = yield* wakeState(id)
  const wakeAt = yield* makeTimer(() => actor.tick())
  const runtime: RoomRuntime = {
    now: () => clock.currentTimeMillisUnsafe(),
    clocks: durationClocks(clock),
    hasLease: lease.hasLease,
    heldFrom,
    wakeAt,
    changed: () => writer.markDirty(actor),
    flushSoon: () => writer.flushSoon(actor),
    shared: remoteRooms.address !== null,
    closed: () => writer.closed(actor),
    memberAdded: (playerId) => {
      local.byPlayer.add(playerId, actor)
      if (actor.state !== undefined) {
        local.seatsTaken.send(actor.state.settings.environmentId, playerId)
      }
    },
    memberRemoved: (playerId) => local.byPlayer.delete(playerId, actor)
  }
  const actor: RoomActor = new RoomActor(id, epoch, state, runtime, links, since)
  yield* listGroup(local, actor, {
    begin: () => {
      writer.activated(actor)
      actor.expectNodes()
    },
    retire: () => {
      actor.retire()
      writer.deactivated(actor)
    },
    end: Effect.map(writer.flush, () => actor.watchers.end())
  })
  return actor
})

const seatedRoom = (open: OpenRoom, id: string, code: string, now: number): RoomState => {
  const { joiningPlayers, ...settings } = open
  const empty = openRoom({ ...settings, id, code, createdAt: now })
  return Result.match(seat(empty, joiningPlayers, now), {
    onFailure: () => empty,
    onSuccess: (decision) => decision.state
  })
}

/** Opens the room. It writes the row before the reply. */
const open = Effect.fnUntraced(function* (actor: RoomActor, request: OpenRoom) {
  if (actor.state !== undefined) {
    return { roomId: actor.id, code: actor.state.settings.code }
  }
  const repository = yield* RoomRepository
  const node = yield* ThisNode
  const now = yield* Clock.currentTimeMillis
  const code = yield* claimRoomCode(request.code, (drawn) => {
    const state = seatedRoom(request, actor.id, drawn, now)
    const inserted = repository.insert(toRow(state, actor.epoch, node.id, now))
    // After an error the row may exist: the next activation reads it.
    return Effect.onError(inserted, () => Effect.sync(() => actor.activation.fence())).pipe(
      Effect.tap((isOpen) => Effect.sync(() => isOpen && actor.open(state)))
    )
  })
  return { roomId: actor.id, code }
})

const seatPlayers = (actor: RoomActor, joiningPlayers: ReadonlyArray<JoiningPlayer>) => {
  const seated = actor.seat(joiningPlayers)
  if (Result.isSuccess(seated) && actor.state !== undefined) {
    const { code, maxPlayers } = actor.state.settings
    const free = actor.state.locked ? 0 : maxPlayers - actor.state.members.size
    return Effect.succeed({ roomId: actor.id, code, seated: seated.success, free })
  }
  const locked = Result.isFailure(seated) && seated.failure._tag === "room_locked"
  return Effect.fail(locked ? new RoomLocked() : new RoomNotFound())
}

const peekSeat = Effect.fnUntraced(function* ({ state }: RoomActor, playerId: string) {
  if (state === undefined) return null
  return heldSeat(state, playerId, yield* Clock.currentTimeMillis)
})

/** Returns why a node that last watched at this epoch cannot watch the room, or undefined. */
const watchError = (actor: RoomActor, environmentId: string, lastEpoch: number) => {
  const { since, state } = actor
  if (state !== undefined) {
    if (state.settings.environmentId !== environmentId) return new RoomNotFound()
    if (state.closed === null) return undefined
    // Until the row is removed, the room might be activated again: do not report it as closed yet.
    return lastEpoch === 0 ? new RoomNotFound() : new Unavailable()
  }
  if (lastEpoch === 0 || lastEpoch >= since) return new RoomNotFound()
  actor.activation.fence()
  return new RoomMissing({ message: "The room has no row." })
}

/** The room's behaviour. */
export const RoomLive = Room.toLayer(
  Effect.gen(function* () {
    const { entityId } = yield* Entity.CurrentAddress
    const active = yield* makeActivations(makeActor(entityId))
    const { Input, watch } = yield* makeLiveCalls(entityId, active, yield* LocalRooms)
    const remoteRooms = yield* RemoteRooms
    return Room.of({
      Open: ({ payload }) => Effect.flatMap(active, (actor) => open(actor, payload.open)),
      Seat: ({ payload }) =>
        Effect.flatMap(active, (actor) => seatPlayers(actor, payload.joiningPlayers)),
      Input,
      Watch: ({ payload }) => {
        const { address: to, environmentId, epoch, link, node, present } = payload
        const from = remoteRooms.address
        return watch(payload, {
          errorOf: (actor) => watchError(actor, environmentId, epoch),
          attach: (actor, watcher) => {
            const members = present.map((member) => ({ ...member, node }))
            actor.attach(node, watcher, epoch, members, link)
          },
          detach: ({ activation }, watcher) => activation.detach(node, watcher),
          linkOf: ({ activation, id }) =>
            to === null || from === null
              ? undefined
              : (items, onLost) => {
                  const outputs = { room: id, epoch: activation.epoch, watch: payload.watch }
                  remoteRooms.send(to, { ...outputs, from, items }, onLost)
                }
        })
      },
      Close: ({ payload }) => Effect.map(active, (actor) => actor.close(payload.reason)),
      Peek: ({ payload }) => Effect.flatMap(active, (actor) => peekSeat(actor, payload.playerId)),
      Wake: () => Effect.map(active, wake)
    })
  }),
  { concurrency: "unbounded", mailboxCapacity: 100_000 }
)
