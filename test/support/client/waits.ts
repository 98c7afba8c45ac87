/** Waiting on what a client does: its calls, its events, its state. */
import { Effect } from "effect"
import type { Client, Room, RoomEvents } from "#client/client"

/** A call under way; joining it fails with what the call rejects with. */
export const call = <A>(ask: () => Promise<A>) =>
  Effect.forkChild(Effect.tryPromise({ try: ask, catch: (error) => error }), {
    startImmediately: true
  })

/** What a call rejects with. */
export const rejection = (ask: () => Promise<unknown>) =>
  Effect.flip(Effect.tryPromise({ try: ask, catch: (error) => error }))

/** The next event of a room, heard from now on. */
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

/** Waits until the connection is in a state. */
export const status = (client: Client, wanted: Client["status"]) =>
  Effect.callback<void>((resume) => {
    if (client.status === wanted) return resume(Effect.void)
    const stop = client.on("status", (now) => {
      if (now === wanted) resume(Effect.void)
    })
    return Effect.sync(stop)
  })
