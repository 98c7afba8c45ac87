/** Helpers that wait for calls, events and state of a client. */
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Client, Room, RoomEvents } from "#client/client"

/** Forks a call; joining the fiber fails with the call's rejection. */
export const call = <A>(ask: () => Promise<A>) =>
  Effect.forkChild(Effect.tryPromise({ try: ask, catch: (error) => error }), {
    startImmediately: true
  })

/** The rejection of a call. */
export const rejection = (ask: () => Promise<unknown>) =>
  Effect.flip(Effect.tryPromise({ try: ask, catch: (error) => error }))

/** The next event of a room, from now on. */
export const listen = <Name extends keyof RoomEvents>(room: Room, name: Name) =>
  Effect.forkChild(
    Effect.callback<RoomEvents[Name]>((resume) => {
      const stop = room.on(name, (event) => resume(Effect.succeed(event)))
      return Effect.sync(stop)
    }),
    { startImmediately: true }
  )

/** Waits until the view of a room is as expected. */
export const until = (room: Room, expected: (room: Room) => boolean) =>
  Effect.callback<void>((resume) => {
    if (expected(room)) return resume(Effect.void)
    const stop = room.on("change", () => {
      if (expected(room)) resume(Effect.void)
    })
    return Effect.sync(stop)
  })

/** Waits until the connection has a status. */
export const status = (client: Client, wanted: Client["status"]) =>
  Effect.callback<void>((resume) => {
    if (client.status === wanted) return resume(Effect.void)
    const stop = client.on("status", (now) => {
      if (now === wanted) resume(Effect.void)
    })
    return Effect.sync(stop)
  })

/** Longer than the longest delay before the first reconnect. */
export const waitOut = Effect.andThen(Effect.yieldNow, TestClock.adjust("1 second"))

/** Waits until the client has lost its socket, and then until it reconnects. */
export const lost = (client: Client) => Effect.andThen(status(client, "connecting"), waitOut)
