/** The typed client against the real service: what a game does, through `./client` only. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Client, createClient, isError, memoryStorage, type Room } from "#src/client/client"
import { TestApp } from "#src/testing/app"
import { AppLive } from "./service.ts"

/** A client of the test's own service, closed with the test. */
const newClient = (options: Partial<Parameters<typeof createClient>[0]> = {}) =>
  Effect.acquireRelease(
    Effect.map(TestApp, ({ publishableKey, url }) =>
      createClient({ baseUrl: url, key: publishableKey, storage: memoryStorage(), ...options })
    ),
    (client) => Effect.sync(() => client.close())
  )

const newPlayer = Effect.fnUntraced(function* (displayName: string) {
  const client = yield* newClient()
  yield* Effect.promise(() => client.sessions.guest({ displayName }))
  return client
})

/** Waits until the view of a room is as expected. */
const until = (room: Room, expected: (room: Room) => boolean) =>
  Effect.callback<void>((resume) => {
    if (expected(room)) return resume(Effect.void)
    const stop = room.on("change", () => {
      if (expected(room)) resume(Effect.void)
    })
    return Effect.sync(stop)
  })

/** Waits for the next event of a room. */
const next = <Name extends Parameters<Room["on"]>[0]>(room: Room, name: Name) =>
  Effect.callback<unknown>((resume) => {
    const stop = room.on(name, (event) => resume(Effect.succeed(event)))
    return Effect.sync(stop)
  })

/** What a call rejects with. */
const rejection = (call: () => Promise<unknown>) =>
  Effect.flip(Effect.tryPromise({ try: call, catch: (error) => error }))

const createRoom = (client: Client) =>
  Effect.promise(() => client.rooms.create({ mode: "default" }))

layer(AppLive, { timeout: "60 seconds", excludeTestServices: true })("the client", (it) => {
  it.effect("plays", () =>
    Effect.gen(function* () {
      const ada = yield* newPlayer("Ada")
      const bob = yield* newClient()
      const room = yield* createRoom(ada)
      assert.isTrue(room.isHost)
      assert.strictEqual(room.me?.displayName, "Ada")
      const joined = yield* Effect.promise(() => bob.rooms.join({ code: room.code.toLowerCase() }))
      yield* until(room, ({ players }) => players.length === 2)
      room.setState({ round: 1, gone: 2 })
      joined.setMyState({ ready: true })
      yield* until(joined, ({ state }) => state["round"] === 1)
      const heard = next(joined, "message")
      room.send("move", { x: 1 })
      console.log(yield* heard)
      const error = yield* rejection(() => bob.rooms.join({ code: "NOPE99" }))
      console.log(error)
      console.log(yield* rejection(() => bob.rooms.create({ mode: "nope" })))
      console.log(yield* rejection(() => bob.rooms.list({ mode: "nope" })))
      console.log(yield* rejection(() => bob.players.update({ displayName: " " })))
      console.log(yield* Effect.promise(() => bob.ping()))
      console.log(yield* Effect.promise(() => bob.rooms.list({ limit: 3 })))
      console.log(
        yield* Effect.promise(() => room.confirmed.send("x", 1, { to: [String(joined.me?.id)] }))
      )
      yield* Effect.promise(() => bob.sessions.logout())
      console.log(joined.closed, bob.status, bob.sessions.player)
      console.log(yield* rejection(() => bob.players.me()))
      assert.isTrue(isError(error, "room_not_found"))
    })
  )
})
