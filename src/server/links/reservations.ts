/**
 * The one place a player has, a seat or a ticket, as a connection agrees it with the player's
 * session, the judge of it (decisions 3.7.13, 3.8.3). Sessions move, calls get lost and answers come
 * late: what a connection holds it tells to each activation of the session, and what it could not
 * give back it gives back before it takes anything else.
 */
import { Cause, Effect, Fiber, Option, Schedule } from "effect"
import { AlreadyInRoom, AlreadyMatching, type CodedError, Unavailable } from "#rpc/errors/codes"
import type { PlayerSessionCommand } from "#entities/player-session/protocol"
import { noReservation, type Reservation, sameReservation } from "#entities/player-session/state"
import { Hub } from "./hub.ts"
import type { PlayerConnection } from "./player-connection.ts"

const clusterErrors: ReadonlySet<string> = new Set([
  "MailboxFull",
  "AlreadyProcessingMessage",
  "PersistenceError",
  "EntityNotAssignedToRunner"
])

/** The cluster's own errors mean nothing to a player. */
export const asUnavailable = (error: CodedError): CodedError =>
  clusterErrors.has(error._tag) ? new Unavailable() : error

/** How long an entity may take to answer, before the call is believed to be lost. */
const answerMillis = 3000

const lost = { duration: answerMillis, orElse: () => Effect.fail(new Unavailable()) }

/** The same call; who waits no longer does not wait for its being called off either. */
const unattended = <A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkDetach(call), (fiber) =>
    Effect.onInterrupt(Fiber.join(fiber), () => Effect.forkDetach(Fiber.interrupt(fiber)))
  )

/**
 * A call of an entity: whatever becomes of it, it is answered. An entity that moves interrupts what it
 * was asked, which is no interruption of whoever asked.
 */
export const callEntity = <A, R>(
  call: Effect.Effect<A, CodedError, R>
): Effect.Effect<A, CodedError, R> =>
  call.pipe(
    Effect.catchCause((cause) => {
      const error = Cause.findErrorOption(cause)
      if (Option.isSome(error)) return Effect.fail(error.value)
      return Effect.andThen(Effect.logDebug("A call failed", cause), Effect.fail(new Unavailable()))
    }),
    unattended,
    Effect.timeoutOrElse(lost),
    Effect.mapError(asUnavailable)
  )

/** How long an entity may take to be found again when it moves. */
const patience = { times: 40, schedule: Schedule.spaced(50) } as const

const isUnavailable = (error: CodedError): boolean => error._tag === "unavailable"

/** A call that may be made again; an entity that is moving is waited for. */
export const callEntityWithRetry = <A, R>(
  call: Effect.Effect<A, CodedError, R>
): Effect.Effect<A, CodedError, R> =>
  callEntity(call).pipe(
    Effect.retry({ ...patience, while: isUnavailable }),
    Effect.timeoutOrElse(lost)
  )

/** Asks the session; one that is moving is waited for. */
const ask = ({ environmentId, playerId }: PlayerConnection, command: PlayerSessionCommand) =>
  Effect.flatMap(Hub, (hub) =>
    Effect.suspend(() => hub.session(environmentId, playerId).request(command)).pipe(
      Effect.retry({ ...patience, while: isUnavailable }),
      Effect.timeoutOrElse(lost)
    )
  )

const giveBack = (connection: PlayerConnection, place: Reservation) =>
  ask(connection, { t: "release", playerId: connection.playerId, reservation: place })

const flushPendingRelease = Effect.fnUntraced(function* (connection: PlayerConnection) {
  if (connection.pendingRelease.kind === "none") return
  yield* giveBack(connection, connection.pendingRelease)
  connection.pendingRelease = noReservation
})

/** Agrees on a place; when the session began anew meanwhile, with that one too. */
const agree = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  place: Reservation,
  command: PlayerSessionCommand
) {
  let attachments: number
  do {
    attachments = connection.attachments
    yield* ask(connection, command)
  } while (attachments !== connection.attachments)
  connection.reservation = place
})

/** The seat that a player has in a room, as the room knows it. */
export const peek = Effect.fnUntraced(function* (connection: PlayerConnection, roomId: string) {
  const hub = yield* Hub
  const { playerId } = connection
  return yield* callEntityWithRetry(hub.roomClient(roomId).Peek({ playerId }))
})

/** A seat that the session remembers and the room does not is given back. */
const isStale = Effect.fnUntraced(function* (connection: PlayerConnection, error: CodedError) {
  if (error._tag !== "already_in_room") return false
  const roomId = String(Object(error.details).roomId)
  const seat: Reservation = { kind: "seat", roomId }
  if ((yield* peek(connection, roomId)) !== null) return false
  yield* giveBack(connection, seat)
  return true
})

/** What a connection says to a second place, without asking: the first was granted. */
const elsewhere = (held: Reservation, place: Reservation): Effect.Effect<void, CodedError> => {
  if (sameReservation(held, place)) return Effect.void
  return Effect.fail(
    held.kind === "seat"
      ? new AlreadyInRoom({ details: { roomId: held.roomId } })
      : new AlreadyMatching()
  )
}

/** A ticket that may have been granted after all, too late. A seat is asked for in its room. */
const owe = (connection: PlayerConnection, place: Reservation, error: CodedError): void => {
  if (place.kind === "ticket" && isUnavailable(error)) connection.pendingRelease = place
}

/** Claims a place from the player's session. */
export const claim = Effect.fnUntraced(
  function* (connection: PlayerConnection, place: Reservation) {
    const { connectionId, playerId } = connection
    if (connection.reservation.kind !== "none")
      return yield* elsewhere(connection.reservation, place)
    yield* flushPendingRelease(connection)
    const claiming = agree(connection, place, {
      t: "claim",
      playerId,
      connectionId,
      reservation: place
    })
    yield* claiming.pipe(
      Effect.catch((error) =>
        Effect.flatMap(isStale(connection, error), (stale) =>
          stale ? claiming : Effect.fail(error)
        )
      ),
      Effect.tapError((error) => Effect.sync(() => owe(connection, place, error)))
    )
  },
  (claiming, connection) => connection.moves.withPermits(1)(claiming)
)

/** The room that the queue found becomes the place of the ticket's player. */
export const confirm = Effect.fnUntraced(
  function* (connection: PlayerConnection, ticketId: string, roomId: string) {
    const { connectionId, playerId } = connection
    const command = { t: "settle", playerId, connectionId, ticketId, roomId } as const
    yield* agree(connection, { kind: "seat", roomId }, command)
  },
  (settling, connection) => connection.moves.withPermits(1)(settling)
)

/**
 * A seat that may or may not have been taken: the session keeps it, and asks the room when the player
 * wants another.
 */
export const forgetUnconfirmed = (connection: PlayerConnection, roomId: string): void => {
  if (connection.expects(roomId)) connection.reservation = noReservation
}

/** Gives a place back, now or before the next claim. */
export const release = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  place: Reservation
) {
  if (sameReservation(connection.reservation, place)) connection.reservation = noReservation
  const giving = Effect.suspend(() => {
    if (sameReservation(connection.reservation, place)) return Effect.void
    return Effect.andThen(flushPendingRelease(connection), giveBack(connection, place)).pipe(
      Effect.catch(() =>
        Effect.sync(() => {
          connection.pendingRelease = place
        })
      )
    )
  })
  yield* connection.moves.withPermits(1)(giving)
})
