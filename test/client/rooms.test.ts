/** The client's rooms against a scripted service: matchmaking, and a room from the join to its end. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type Client, isError, type Room } from "#client/client"
import {
  joined,
  lookMillis,
  refuse,
  reply,
  type ScriptedService,
  scriptedService,
  seat,
  seated,
  stillThere
} from "../support/client/scripted-service.ts"
import { call, listen, lost, rejection } from "../support/client/waits.ts"

describe("quickMatch", () => {
  const waiting = Effect.fnUntraced(function* (service: ScriptedService) {
    const client = yield* service.client()
    const abort = new AbortController()
    const matching = yield* call(() => client.rooms.quickMatch("default", { signal: abort.signal }))
    const socket = yield* service.socket
    yield* socket.next
    yield* socket.welcome()
    const ticket = yield* socket.next
    assert.deepStrictEqual([ticket["t"], ticket["mode"]], ["quickMatch", "default"])
    return { abort, client, matching, socket, ticket }
  })

  it.effect("waits for a quick match without a timeout", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, matching, socket, ticket } = yield* waiting(service)
      for (let millis = 0; millis < 15_000; millis += lookMillis) {
        yield* TestClock.adjust(lookMillis)
        yield* stillThere(client, socket)
      }
      yield* socket.say(joined(), reply(ticket, seat))
      assert.strictEqual((yield* Fiber.join(matching)).id, "rm_1")
    }).pipe(Effect.scoped)
  )

  it.effect("cancels a quick match by its abort signal", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { abort, matching, socket } = yield* waiting(service)
      abort.abort()
      const cancel = yield* socket.next
      assert.strictEqual(cancel["t"], "cancelMatch")
      yield* socket.say(reply(cancel, { cancelled: true }))
      assert.isTrue(isError(yield* Effect.flip(Fiber.join(matching)), "match_cancelled"))
    }).pipe(Effect.scoped)
  )

  it.effect("returns the room when the match was made before the cancellation", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { abort, matching, socket, ticket } = yield* waiting(service)
      abort.abort()
      const cancel = yield* socket.next
      yield* socket.say(reply(cancel, { cancelled: false }), joined(), reply(ticket, seat))
      assert.strictEqual((yield* Fiber.join(matching)).id, "rm_1")
    }).pipe(Effect.scoped)
  )

  it.effect("continues a quick match after a disconnect, and resumes a seat found meanwhile", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, matching, socket } = yield* waiting(service)
      yield* socket.close(1012, "draining")
      yield* lost(client)
      const next = yield* service.socket
      yield* next.next
      yield* next.welcome()
      const again = yield* next.next
      assert.strictEqual(again["t"], "quickMatch")
      yield* next.say(refuse(again, "already_in_room", { roomId: "rm_1" }))
      const resume = yield* next.next
      assert.strictEqual(resume["t"], "resume")
      yield* next.say(joined({}, true), reply(resume, seat))
      assert.strictEqual((yield* Fiber.join(matching)).id, "rm_1")
    }).pipe(Effect.scoped)
  )

  it.effect("rejects a quick match when another tab replaces the connection", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, matching, socket } = yield* waiting(service)
      yield* socket.close(4004, "replaced")
      assert.isTrue(isError(yield* Effect.flip(Fiber.join(matching)), "disconnected"))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(client.status, "offline")
    }).pipe(Effect.scoped)
  )
})

describe("calls with an abort signal", () => {
  /** A client whose socket has taken a call that enters a room. */
  const entering = Effect.fnUntraced(function* (
    service: ScriptedService,
    enter: (client: Client, signal: AbortSignal) => Promise<Room>
  ) {
    const client = yield* service.client()
    const abort = new AbortController()
    const entered = yield* call(() => enter(client, abort.signal))
    const socket = yield* service.socket
    yield* socket.next
    yield* socket.welcome()
    return { abort, client, entered, frame: yield* socket.next, socket }
  })

  const calls = {
    create: (client: Client, signal: AbortSignal) =>
      client.rooms.create({ mode: "default" }, { signal }),
    join: (client: Client, signal: AbortSignal) => client.rooms.join("7KMB2P", { signal })
  }

  for (const [name, enter] of Object.entries(calls)) {
    it.effect(
      `leaves a room that an aborted call has entered, before it enters the next: ${name}`,
      () =>
        Effect.gen(function* () {
          const service = yield* scriptedService
          const { abort, client, entered, frame, socket } = yield* entering(service, enter)
          assert.strictEqual(frame["t"], name)
          abort.abort()
          assert.isTrue(isError(yield* Effect.flip(Fiber.join(entered)), "aborted"))
          const again = yield* call(() => enter(client, new AbortController().signal))
          yield* socket.say(joined(), reply(frame, seat))
          const leave = yield* socket.next
          assert.strictEqual(leave["t"], "leave")
          yield* socket.say(reply(leave))
          const next = yield* socket.next
          assert.strictEqual(next["t"], name)
          yield* socket.say(joined({ id: "rm_2" }), reply(next, { ...seat, roomId: "rm_2" }))
          const room = yield* Fiber.join(again)
          assert.deepStrictEqual([room.id, room.closed], ["rm_2", undefined])
        }).pipe(Effect.scoped)
    )
  }

  it.effect("enters the next room at once when the aborted call has failed", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { abort, client, entered, frame, socket } = yield* entering(service, calls.join)
      abort.abort()
      yield* socket.say(refuse(frame, "room_full"))
      assert.isTrue(isError(yield* Effect.flip(Fiber.join(entered)), "aborted"))
      yield* call(() => client.rooms.join("ABCD"))
      assert.strictEqual((yield* socket.next)["code"], "ABCD")
    }).pipe(Effect.scoped)
  )

  it.effect("sends nothing for a signal that is aborted already", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const client = yield* service.client()
      const signal = AbortSignal.abort()
      for (const enter of Object.values(calls)) {
        assert.isTrue(isError(yield* rejection(() => enter(client, signal)), "aborted"))
      }
      assert.strictEqual(service.sockets(), 0)
    }).pipe(Effect.scoped)
  )

  it.effect("searches again only when the search that was aborted is cancelled", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { abort, client, entered, socket } = yield* entering(service, (owner, signal) =>
        owner.rooms.quickMatch("default", { signal })
      )
      abort.abort()
      yield* call(() => client.rooms.quickMatch("default"))
      const cancel = yield* socket.next
      assert.strictEqual(cancel["t"], "cancelMatch")
      yield* socket.say(reply(cancel, { cancelled: true }))
      assert.isTrue(isError(yield* Effect.flip(Fiber.join(entered)), "match_cancelled"))
      assert.strictEqual((yield* socket.next)["t"], "quickMatch")
    }).pipe(Effect.scoped)
  )
})

describe("the room of the client", () => {
  it.effect(
    "joins a room again for a new snapshot after an event that the client cannot apply",
    () =>
      Effect.gen(function* () {
        const service = yield* scriptedService
        const { room, socket } = yield* seated(service, { state: { round: 1 } })
        yield* socket.say({ t: "player_joined", guest: "bob" })
        const join = yield* socket.next
        assert.deepStrictEqual([join["t"], join["roomId"]], ["join", "rm_1"])
        const changed = yield* listen(room, "change")
        yield* socket.say(joined({ state: { round: 2 } }), reply(join, seat))
        yield* Fiber.join(changed)
        assert.deepStrictEqual(room.state, { round: 2 })
      }).pipe(Effect.scoped)
  )

  it.effect("shows an optimistic change at once, and takes it back when the service refuses", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { room, socket } = yield* seated(service, { state: { round: 1 } })
      const changing = yield* call(() => room.optimistic.setState({ round: 2, card: 7 }))
      assert.deepStrictEqual(room.state, { round: 2, card: 7 })
      const refused = yield* socket.next
      yield* socket.say({ t: "state", patch: { round: 5 }, from: "bob", version: 1 })
      yield* socket.say(refuse(refused, "host_only"))
      assert.isTrue(isError(yield* Effect.flip(Fiber.join(changing)), "host_only"))
      assert.deepStrictEqual(room.state, { round: 5 })
    }).pipe(Effect.scoped)
  )

  it.effect("keeps an optimistic change that the service confirms", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { room, socket } = yield* seated(service)
      const changing = yield* call(() => room.optimistic.setState({ card: 7 }))
      const asked = yield* socket.next
      const from = "pl_00000000000000000000000001"
      yield* socket.say({ t: "state", patch: { card: 7 }, from, version: 1 }, reply(asked))
      yield* Fiber.join(changing)
      assert.deepStrictEqual(room.state, { card: 7 })
      assert.strictEqual(room.snapshot.version, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("sends nothing of a room that was left into the next room", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service)
      const leaving = yield* call(() => room.leave())
      yield* socket.say(reply(yield* socket.next))
      yield* Fiber.join(leaving)
      assert.deepStrictEqual(room.closed, { reason: "left" })
      const joining = yield* call(() => client.rooms.join("ABCD"))
      const join = yield* socket.next
      yield* socket.say(joined({ id: "rm_2" }), reply(join, { ...seat, roomId: "rm_2" }))
      const next = yield* Fiber.join(joining)
      room.send("old")
      next.send("new")
      assert.deepStrictEqual(yield* socket.next, { t: "send", type: "new" })
    }).pipe(Effect.scoped)
  )

  it.effect("resumes the room in a new page if the seat is reserved", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const client = yield* service.client()
      const resuming = yield* call(() => client.rooms.resume())
      const socket = yield* service.socket
      yield* socket.next
      yield* socket.welcome({
        rooms: [{ ...seat, mode: "default", graceUntil: "2026-11-20T21:00:30.000Z" }]
      })
      const resume = yield* socket.next
      yield* socket.say(joined({}, true), reply(resume, seat))
      assert.strictEqual((yield* Fiber.join(resuming))?.id, "rm_1")
    }).pipe(Effect.scoped)
  )

  it.effect("closes the room when another player signs in, who gets a new socket", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room } = yield* seated(service)
      yield* Effect.promise(() => client.sessions.guest({ displayName: "Bob" }))
      assert.strictEqual(room.closed?.reason, "signed_out")
      assert.notStrictEqual(client.status, "online")
      yield* call(() => client.ping())
      const next = yield* service.socket
      assert.strictEqual((yield* next.next)["token"], "access-2")
    }).pipe(Effect.scoped)
  )

  it.effect("closes the room with the client, and rejects every waiting call", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service)
      const locking = yield* call(() => room.lock())
      yield* socket.next
      client.close()
      assert.isTrue(isError(yield* Effect.flip(Fiber.join(locking)), "disconnected"))
      assert.deepStrictEqual(room.closed, { code: 1000, reason: "closed" })
    }).pipe(Effect.scoped)
  )
})
