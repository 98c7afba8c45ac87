/**
 * The room entity: wakes an actor from its snapshot, keeps its time, and stands between it and the
 * cluster. A gateway on this node takes a short cut through {@link LocalRooms}; the `Watch` stream is
 * then only the sign of life that tells it when the room moves.
 */
import { Clock, Context, Effect, Layer, Result, Stream } from "effect"
import { Entity } from "effect/cluster"
import { SecureRandom } from "effect/crypto"
import { CodeTaken, RoomLocked, RoomNotFound, Unavailable } from "#rpc/errors"
import { rooms } from "#rpc/limits"
import type { HeldSeat } from "#rpc/realtime"
import { RoomRows } from "#sql/rooms"
import { type LocalActors, makeLocalActors, ThisNode } from "../local-actors.ts"
import { makeTimer, watchQueue } from "../watch.ts"
import { RoomActor, type RoomPort } from "./actor.ts"
import { iso, type Newcomer, openRoom, type RoomState } from "./model.ts"
import { type OpenRoom, type RoomItem, Room } from "./protocol.ts"
import { graceEnd, seat } from "./seats.ts"
import { decodeSnapshot, fromStored, toRow } from "./snapshot.ts"
import { RoomWriter } from "./writer.ts"

/** The rooms that live on this node. */
export class LocalRooms extends Context.Service<LocalRooms, LocalActors<RoomActor, RoomItem>>()(
  "entities/room/LocalRooms"
) {
  static readonly layer = Layer.sync(LocalRooms, () => makeLocalActors<RoomActor, RoomItem>())
}

/** No vowels, no look-alikes: read aloud, a code is neither a word nor misheard. */
const codeAlphabet = "6789BCDFGHJKLMNPQRTW"
const codeAttempts = 8

const randomCode = Effect.fnUntraced(function* () {
  const random = yield* SecureRandom.SecureRandom
  let code = ""
  for (let i = 0; i < rooms.codeCharacters; i++) {
    code += codeAlphabet.charAt(yield* random.intBetween(0, codeAlphabet.length - 1))
  }
  return code
})

const wakeState = Effect.fnUntraced(function* (id: string) {
  const rows = yield* RoomRows
  const { epoch, snapshot } = yield* rows.claim(id)
  if (snapshot === null) return { epoch, state: undefined }
  const stored = yield* Effect.orDie(decodeSnapshot(snapshot))
  return { epoch, state: fromStored(stored) }
})

/** Brings the room of an id to life on this node, until the scope closes. */
const makeActor = Effect.fnUntraced(function* (id: string) {
  const clock = yield* Clock.Clock
  const local = yield* LocalRooms
  const writer = yield* RoomWriter
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const { epoch, state } = yield* wakeState(id)
  const wakeAt = yield* makeTimer(() => actor.tick())
  const port: RoomPort = {
    now: () => clock.currentTimeMillisUnsafe(),
    wakeAt,
    changed: () => writer.changed(actor),
    closed: () => runFork(writer.remove(actor))
  }
  const actor: RoomActor = new RoomActor(id, epoch, state, port)
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      local.actors.set(id, actor)
      actor.expectNodes()
    }),
    () =>
      Effect.suspend(() => {
        if (local.actors.get(id) === actor) local.actors.delete(id)
        const flushed = writer.flush(actor)
        return Effect.tap(flushed, () => Effect.sync(() => actor.fence()))
      })
  )
  return actor
})

const seatedRoom = (open: OpenRoom, id: string, code: string, now: number): RoomState => {
  const { newcomers, ...settings } = open
  const empty = openRoom({ ...settings, id, code, createdAt: now })
  return Result.match(seat(empty, newcomers, now), {
    onFailure: () => empty,
    onSuccess: (decision) => decision.state
  })
}

/** Opens the room: its row is there before anyone is told its code. */
const open = Effect.fnUntraced(function* (actor: RoomActor, request: OpenRoom) {
  if (actor.state !== undefined) {
    return { roomId: actor.id, code: actor.state.settings.code }
  }
  const rows = yield* RoomRows
  const node = yield* ThisNode
  const now = yield* Clock.currentTimeMillis
  for (let attempt = 0; attempt < codeAttempts; attempt++) {
    const code = request.code ?? (yield* randomCode())
    const state = seatedRoom(request, actor.id, code, now)
    if (yield* rows.insert(toRow(state, actor.epoch, node.id))) {
      actor.open(state)
      return { roomId: actor.id, code }
    }
    if (request.code !== null) return yield* new CodeTaken()
  }
  return yield* new Unavailable()
})

const seatNewcomers = (actor: RoomActor, newcomers: ReadonlyArray<Newcomer>) => {
  const seated = actor.seat(newcomers)
  if (Result.isSuccess(seated) && actor.state !== undefined) {
    const { code, maxPlayers } = actor.state.settings
    const free = actor.state.locked ? 0 : maxPlayers - actor.state.members.size
    return Effect.succeed({ roomId: actor.id, code, seated: seated.success, free })
  }
  const locked = Result.isFailure(seated) && seated.failure._tag === "room_locked"
  return Effect.fail(locked ? new RoomLocked() : new RoomNotFound())
}

/** A fenced actor is replaced: the defect makes the cluster build the entity anew. */
const alive = (actor: RoomActor): Effect.Effect<void> =>
  actor.fenced ? Effect.die(new Error(`Room ${actor.id} lost its activation`)) : Effect.void

const held = Effect.fnUntraced(function* (
  actor: RoomActor,
  playerId: string
): Effect.fn.Return<HeldSeat | null> {
  const state = actor.state
  const member = state?.closed === null ? state.members.get(playerId) : undefined
  if (state === undefined || member === undefined) return null
  const now = yield* Clock.currentTimeMillis
  const until = graceEnd(state, member) ?? now + state.settings.graceSeconds * 1000
  return {
    roomId: actor.id,
    code: state.settings.code,
    mode: state.settings.mode,
    graceUntil: iso(until)
  }
})

const isOpenIn = (actor: RoomActor, environmentId: string): boolean =>
  actor.state?.closed === null && actor.state.settings.environmentId === environmentId

/** The room's behaviour. */
export const RoomLive = Room.toLayer(
  Effect.gen(function* () {
    const address = yield* Entity.CurrentAddress
    const actor = yield* makeActor(address.entityId)
    const local = yield* LocalRooms
    const thisNode = yield* ThisNode
    return Room.of({
      Open: ({ payload }) => open(actor, payload.open),
      Seat: ({ payload }) => Effect.suspend(() => seatNewcomers(actor, payload.newcomers)),
      Input: ({ payload }) => Effect.sync(() => actor.submit(payload.node, payload.inputs)),
      Watch: ({ payload }) =>
        Stream.unwrap(
          Effect.flatMap(alive(actor), () => {
            const { environmentId, epoch, node, present } = payload
            if (!isOpenIn(actor, environmentId)) return Effect.fail(new RoomNotFound())
            const members = present.map((member) => ({ ...member, node }))
            const queue = watchQueue({
              id: actor.id,
              epoch: actor.epoch,
              local: node === thisNode.id ? local : undefined,
              attach: (watcher) => actor.attach(node, watcher, epoch, members),
              detach: (watcher) => actor.detach(node, watcher)
            })
            return Effect.map(queue, Stream.fromQueue)
          })
        ),
      Close: ({ payload }) => Effect.sync(() => actor.close(payload.reason)),
      Peek: ({ payload }) => held(actor, payload.playerId)
    })
  }),
  { concurrency: "unbounded", maxIdleTime: "1 minute", mailboxCapacity: 100_000 }
)
