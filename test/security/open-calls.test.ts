/**
 * Calls that go on for long end with what opened them, on every runner within a second, also when the
 * invalidations were missed: requests and sockets of functions, and voice calls.
 *
 * @module-tag long
 */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { WebSocket } from "ws"
import { voiceCalls } from "#entities/voice-session/model"
import { at, configure, guest, request, type TestPlayer, type TestTarget } from "#testing/players"
import { manage } from "../support/channel-calls.ts"
import { stealSession } from "../support/devices.ts"
import { deploy, enable } from "../support/function-calls.ts"
import { ban, operate } from "../support/moderation-calls.ts"
import { makeOwnProject } from "../support/own-project.ts"
import { live } from "../support/security/security-harness.ts"
import { TwoRunners } from "../support/two-runners.ts"
import { awaitCall, joinCall, newMember } from "../support/voice-calls.ts"

const code = `
  const slow = () => new ReadableStream({
    async pull(out) { await scheduler.wait(50); out.enqueue(new Uint8Array(1)) }
  })
  export default { async fetch(request) {
    if (request.headers.get("upgrade") === "websocket") {
      const { 0: client, 1: server } = new WebSocketPair()
      server.accept()
      server.addEventListener("message", ({ data }) => server.send(data))
      return new Response(null, { status: 101, webSocket: client })
    }
    if (new URL(request.url).pathname === "/held") await scheduler.wait(25_000)
    if (new URL(request.url).pathname === "/plain") return new Response()
    return new Response(slow())
  } }`

const setUp = Effect.gen(function* () {
  const runners = yield* TwoRunners
  const { at1 } = runners
  yield* enable(at1)
  const url = String(at(yield* deploy(at1, {}, code), "url"))
  return { ...runners, label: url.slice(url.lastIndexOf("/") + 1) }
})

/** A response that does not end, and a socket, on one runner; `ended` settles when both have. */
const openCalls = Effect.fnUntraced(function* (
  { url }: TestTarget,
  label: string,
  player?: TestPlayer
) {
  const headers = player === undefined ? {} : { authorization: `Bearer ${player.accessToken}` }
  const address = `${url}/fn/${label}/stream`
  const response = yield* Effect.promise(() => fetch(address, { headers }))
  const reader = response.body?.getReader()
  yield* Effect.promise(async () => reader?.read())
  const read = async () => {
    for (;;) if ((await reader?.read())?.done !== false) return "whole"
  }
  const state = { open: 2 }
  const streamed = read()
    .catch(() => "cut")
    .finally(() => (state.open -= 1))
  const socket = new WebSocket(address.replace("http", "ws"), { headers })
  socket.on("error", () => undefined)
  yield* Effect.callback<void>((resume) => {
    socket.once("open", () => resume(Effect.void))
  })
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
  void closed.then(() => (state.open -= 1))
  return {
    state,
    ended: Effect.promise(async () => (await Promise.all([streamed, closed]))[0]),
    end: Effect.promise(async () => {
      socket.terminate()
      await reader?.cancel().catch(() => undefined)
    })
  }
})

/** Ends the connections by which runners hear of changes. They connect again, and look again. */
const endListeners = (sql: PgClient.PgClient) => sql`
  select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and query ilike 'listen%'`

const awaitListeners = (sql: PgClient.PgClient, count: number) =>
  sql`
    select 1 from pg_stat_activity
    where datname = current_database() and query ilike 'listen%'`.pipe(
    Effect.repeat({ until: (rows) => rows.length === count, schedule: Schedule.spaced(20) })
  )

const millisOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    yield* effect
    return (yield* Clock.currentTimeMillis) - start
  })

const Runners = TwoRunners.layerWith({ SVC_SIGNUPS: "open", SVC_VOICE_UDP_PORTS: "0" })

layer(Layer.merge(Runners, Reactivity.layer), live)("calls under way on two runners", (it) => {
  it.effect(
    "cuts function calls on two runners when their player is banned, deleted or signed out",
    () =>
      Effect.gen(function* () {
        const { at1, at2, label } = yield* setUp
        const ends = {
          banned: ({ id }: TestPlayer) => ban(at1, id),
          deleted: ({ id }: TestPlayer) => operate(at1, "POST", `players/${id}/delete`),
          "signed out": (player: TestPlayer) => stealSession(at1, player)
        }
        const others = [
          yield* openCalls(at1, label, yield* guest(at1)),
          yield* openCalls(at2, label)
        ]
        for (const [name, end] of Object.entries(ends)) {
          const player = yield* guest(at1)
          const opened = [
            yield* openCalls(at1, label, player),
            yield* openCalls(at2, label, player)
          ]
          yield* end(player)
          const ended = Effect.forEach(opened, (calls) => calls.ended)
          const millis = yield* millisOf(
            Effect.map(ended, (how) => assert.deepStrictEqual(how, ["cut", "cut"], name))
          )
          assert.isBelow(millis, 5000, name)
        }
        assert.deepStrictEqual(
          others.map(({ state }) => state.open),
          [2, 2]
        )
        for (const { end } of others) yield* end
      })
  )

  it.effect("ends a function call whose answer has not begun with the reason of the ban", () =>
    Effect.gen(function* () {
      const { at1, at2, label } = yield* setUp
      const player = yield* guest(at1)
      const headers = { authorization: `Bearer ${player.accessToken}` }
      const before = yield* openCalls(at2, label, player)
      const held = yield* Effect.forkChild(request(`${at2.url}/fn/${label}/held`, { headers }))
      yield* ban(at1, player.id)
      yield* before.ended
      const { body, status } = yield* Fiber.join(held)
      assert.deepStrictEqual([status, at(body, "error", "code")], [403, "player_banned"])
    })
  )

  it.effect(
    "ends the function calls of a deleted player on a runner that did not hear of the deletion",
    () =>
      Effect.gen(function* () {
        const { at1, at2, databaseUrl, label } = yield* setUp
        const sql = yield* PgClient.make({ url: Redacted.make(databaseUrl) })
        const player = yield* guest(at1)
        const opened = yield* openCalls(at2, label, player)
        // No message is ever sent: only the look-up after the reconnect finds that the player is gone.
        yield* sql`delete from players where id = ${player.id}`
        yield* endListeners(sql)
        const millis = yield* millisOf(opened.ended)
        assert.isBelow(millis, 30_000)
      })
  )

  it.effect(
    "keeps function calls when invalidations were missed, and begins none once functions are turned off",
    () =>
      Effect.gen(function* () {
        const { at1, at2, databaseUrl, label } = yield* setUp
        const sql = yield* PgClient.make({ url: Redacted.make(databaseUrl) })
        const opened = [yield* openCalls(at1, label), yield* openCalls(at2, label)]
        yield* endListeners(sql)
        yield* awaitListeners(sql, 2)
        yield* configure(at1, { features: { saves: true } })
        assert.deepStrictEqual(
          opened.map(({ state }) => state.open),
          [2, 2]
        )
        for (const { end } of opened) yield* end
        yield* sql`update functions set enabled = false`
        yield* endListeners(sql)
        for (const { url } of [at1, at2]) {
          yield* request(`${url}/fn/${label}/plain`).pipe(
            Effect.repeat({ until: ({ status }) => status !== 200, schedule: Schedule.spaced(20) }),
            Effect.timeout("30 seconds")
          )
        }
      })
  )

  it.effect(
    "drops a member from a voice call at once when its session, key or right to play ends",
    () =>
      Effect.gen(function* () {
        const { at1, at2 } = yield* TwoRunners
        const { newKey, target } = yield* makeOwnProject(at1.url, "dev@example.com")
        yield* configure(target, { features: { realtimeChannels: true, voice: true } })
        const key = yield* newKey("publishable")
        const ends = {
          "session-ended": (bob: TestPlayer) => stealSession(target, bob),
          "player-banned": ({ id }: TestPlayer) => ban(target, id),
          "key-revoked": () => key.revoke
        }
        for (const [channel, end] of Object.entries(ends)) {
          const settings = { maxMembers: 8, voice: { mode: "p2p", relayOnly: false } }
          yield* manage(target, "PUT", channel, settings)
          const ada = yield* newMember(target, channel)
          const bob = yield* newMember({ ...at2, publishableKey: key.plain }, channel)
          yield* joinCall(ada, channel)
          yield* awaitCall(ada, [ada])
          yield* joinCall(bob, channel)
          yield* awaitCall(ada, [ada, bob])
          yield* end(bob)
          const millis = yield* millisOf(awaitCall(ada, [ada]))
          // Whose connection only breaks has this time to come back.
          assert.isBelow(millis, voiceCalls.graceSeconds * 1000 - 2000, channel)
        }
      })
  )
})
