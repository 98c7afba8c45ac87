/**
 * The player session entity: holds the session's state for as long as a connection is attached (and
 * a while longer), and wakes knowing the seat of the player's last room, if it is still kept.
 */
import { Effect, Option, Queue, Result, Stream } from "effect"
import { Entity } from "effect/cluster"
import { Unavailable } from "#rpc/errors"
import { RoomRows } from "#sql/rooms"
import { Lease } from "../lease.ts"
import { PlayerSession, type SessionSignal } from "./protocol.ts"
import { decide, nowhere, type Place, type SessionCommand, type SessionState } from "./state.ts"

const signalsMax = 16

const wakePlace = Effect.fnUntraced(function* (entityId: string) {
  const rows = yield* RoomRows
  const [environmentId = "", playerId = ""] = entityId.split("/")
  const seat = yield* rows.seatOf(environmentId, playerId)
  return Option.match(seat, {
    onNone: (): Place => nowhere,
    onSome: (roomId): Place => ({ k: "seat", roomId })
  })
})

const attached = (state: SessionState): SessionSignal => ({
  k: "attached",
  roomId: state.place.k === "seat" ? state.place.roomId : null
})

export const PlayerSessionLive = PlayerSession.toLayer(
  Effect.gen(function* () {
    const address = yield* Entity.CurrentAddress
    const lease = yield* Lease
    yield* lease.confirmed
    const connections = new Map<string, Queue.Queue<SessionSignal>>()
    let state: SessionState = {
      connectionId: null,
      place: yield* wakePlace(address.entityId)
    }

    const run = (command: SessionCommand) => {
      // Another process may be the judge by now.
      if (!lease.held()) return Result.fail(new Unavailable())
      const result = decide(state, command)
      if (Result.isFailure(result)) return Result.fail(result.failure)
      state = result.success.state
      const replaced = result.success.replaced
      if (replaced !== null) {
        const queue = connections.get(replaced)
        if (queue !== undefined) Queue.offerUnsafe(queue, { k: "replaced" })
      }
      return Result.succeed(undefined)
    }

    const attach = Effect.fnUntraced(function* (connectionId: string, place: Place) {
      const queue = yield* Queue.bounded<SessionSignal>(signalsMax)
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          connections.set(connectionId, queue)
          if (Result.isFailure(run({ t: "attach", connectionId, place }))) return
          if (state.connectionId === connectionId) Queue.offerUnsafe(queue, attached(state))
        }),
        () =>
          Effect.sync(() => {
            if (connections.get(connectionId) !== queue) return
            connections.delete(connectionId)
            run({ t: "detach", connectionId })
          })
      )
      // Not heard by a session that may not judge: the connection looks for the one that may.
      return lease.held() ? Stream.fromQueue(queue) : Stream.fail(new Unavailable())
    })

    return PlayerSession.of({
      Attach: ({ payload }) => Stream.unwrap(attach(payload.connectionId, payload.place)),
      Claim: ({ payload }) =>
        Effect.suspend(() => Effect.fromResult(run({ t: "claim", ...payload }))),
      Settle: ({ payload }) =>
        Effect.suspend(() =>
          Effect.mapError(
            Effect.fromResult(run({ t: "settle", ...payload })),
            () => new Unavailable()
          )
        ),
      Release: ({ payload }) =>
        Effect.suspend(() =>
          Effect.mapError(
            Effect.fromResult(run({ t: "release", ...payload })),
            () => new Unavailable()
          )
        )
    })
  }),
  { concurrency: "unbounded", maxIdleTime: "1 minute" }
)
