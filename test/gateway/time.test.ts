/**
 * Timeouts of a socket: a late first frame, an idle client, heartbeats, expiring tokens. The test controls
 * the clock; the WebSocket is real.
 */
import { createServer, type Server } from "node:http"
import type { Duplex } from "node:stream"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { type WebSocket, WebSocketServer } from "ws"
import type { PlayerCaller } from "#rpc/auth"
import { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import { FlushScheduler } from "#server/platform/flush"
import { OutboxBudget } from "#server/platform/outbox-budget"
import { Frame, WriteStats } from "#server/platform/socket-outbox"
import { type FrameHandlers, frameTable } from "#server/links/frame-handler"
import { Listener } from "#server/links/listener"
import { FrameStats, type SocketHost } from "#server/gateway/client-socket"
import { type RealtimeEndpoint, RealtimeSocket } from "#server/gateway/socket"
import { connectSocket } from "#testing/socket-client"

const none = "0".repeat(26)
const fail = (): never => assert.fail("no frame was sent")

const player = (expiresAt: number): PlayerCaller => ({
  playerId: PlayerId.make(`pl_${none}`),
  environmentId: EnvironmentId.make(`env_${none}`),
  sessionId: SessionId.make(`ses_${none}`),
  isGuest: true,
  expiresAt
})

/** A node with a clock of the test. */
const hostOf = (clock: { readonly now: number }): SocketHost => ({
  scheduler: new FlushScheduler(() => clock.now),
  writeStats: new WriteStats(),
  outboxBudget: new OutboxBudget(Number.POSITIVE_INFINITY),
  frameStats: new FrameStats(),
  now: () => clock.now,
  run: Effect.runFork,
  checkKey: () => Effect.succeed(true),
  onAdmitted: () => undefined,
  onDismissed: () => undefined,
  onClosing: () => undefined,
  onClosed: () => undefined
})

/** A server that takes every upgrade as a socket of the gateway. */
const serveSockets = (take: (ws: WebSocket, stream: Duplex) => void) => {
  const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  return Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const http = createServer()
      http.on("upgrade", (request, stream, head) =>
        wss.handleUpgrade(request, stream, head, (ws) => take(ws, stream))
      )
      http.listen(0, "127.0.0.1", () => resume(Effect.succeed(http)))
    }),
    (http) => Effect.sync(() => http.closeAllConnections())
  )
}

/** A gateway with a clock of the test; admits every socket as one player. */
const testGateway = Effect.gen(function* () {
  const clock = { now: 1_000_000 }
  const sockets: Array<RealtimeSocket> = []
  const admitted = {
    environmentId: EnvironmentId.make(`env_${none}`),
    keyHash: "",
    player: player(clock.now + 900_000),
    connection: undefined,
    seat: null,
    listener: new Listener({
      connectionId: "con_1",
      environmentId: EnvironmentId.make(`env_${none}`),
      sink: { push: () => undefined },
      run: Effect.runFork,
      onClosed: () => undefined
    })
  }
  const welcome = Frame.of({ t: "welcome" })
  const requested = Deferred.makeUnsafe<void>()
  const admission = { result: Effect.succeed({ admission: admitted, welcome }) }
  const host = hostOf(clock)
  const endpoint: RealtimeEndpoint = {
    handlers: frameTable<FrameHandlers>(() => fail),
    listenerHandlers: frameTable<FrameHandlers<Listener>>(() => fail),
    time: () => clock.now,
    admit: () =>
      Effect.andThen(
        Deferred.succeed(requested, undefined),
        Effect.suspend(() => admission.result)
      ),
    renew: () =>
      Effect.succeed({
        admission: { ...admitted, player: player(clock.now + 900_000) },
        welcome
      })
  }
  const server = yield* serveSockets((ws, stream) =>
    sockets.push(new RealtimeSocket(host, endpoint, { ws, stream, origin: undefined, address: "" }))
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const client = yield* connectSocket(`ws://127.0.0.1:${port}`)
  return {
    client,
    /** Advances the clock and sweeps. */
    pass: (seconds: number) =>
      Effect.sync(() => {
        clock.now += seconds * 1000
        for (const socket of sockets) socket.sweep()
      }),
    /** The first frame arrives, and its check never completes. */
    signInWithoutReply: Effect.suspend(() => {
      admission.result = Effect.never
      return client
        .send({ t: "auth" })
        .pipe(Effect.andThen(Deferred.await(requested)), Effect.andThen(Effect.yieldNow))
    }),
    signIn: Effect.andThen(client.send({ t: "auth" }), client.next("welcome"))
  }
})

describe("a socket over time", () => {
  it.live("closes a socket with 4001 when no first frame arrives within five seconds", () =>
    Effect.gen(function* () {
      const { client, pass } = yield* testGateway
      yield* pass(4.9)
      assert.strictEqual(client.ws.readyState, client.ws.OPEN)
      yield* pass(0.1)
      assert.deepStrictEqual(yield* client.closed, { code: 4001, reason: "timed_out" })
    })
  )

  it.live(
    "closes a socket with 1012 when the node does not check the first frame within 15 seconds",
    () =>
      Effect.gen(function* () {
        const { client, pass, signInWithoutReply } = yield* testGateway
        yield* signInWithoutReply
        yield* pass(14.9)
        assert.strictEqual(client.ws.readyState, client.ws.OPEN)
        yield* pass(0.1)
        assert.deepStrictEqual(yield* client.closed, { code: 1012, reason: "unavailable" })
      })
  )

  it.live("pings a socket every 20 seconds, and keeps it open while the client replies", () =>
    Effect.gen(function* () {
      const { client, pass, signIn } = yield* testGateway
      yield* signIn
      for (let i = 0; i < 5; i++) {
        const pinged = Effect.callback<void>((resume) => {
          client.ws.once("ping", () => resume(Effect.void))
        })
        yield* Effect.all([pinged, pass(20)], { concurrency: 2 })
        yield* client.send({ t: "auth" })
        yield* client.next("welcome")
      }
      assert.strictEqual(client.ws.readyState, client.ws.OPEN)
    })
  )

  it.live("closes a socket with 4008 after 45 seconds without pong or frame", () =>
    Effect.gen(function* () {
      const { client, pass, signIn } = yield* testGateway
      yield* signIn
      yield* pass(44.9)
      assert.strictEqual(client.ws.readyState, client.ws.OPEN)
      yield* pass(0.1)
      assert.deepStrictEqual(yield* client.closed, { code: 4008, reason: "idle" })
    })
  )

  it.live(
    "warns a socket a minute before its token expires, and closes it with 4002 half a minute after",
    () =>
      Effect.gen(function* () {
        const { client, pass, signIn } = yield* testGateway
        yield* signIn
        const keepAlive = Effect.andThen(client.send({ t: "nonsense" }), client.next("warn"))
        for (let passed = 0; passed < 840; passed += 40) {
          yield* keepAlive
          yield* pass(40)
        }
        const warned = yield* client.next("warn", (frame) => frame["code"] === "token_expiring")
        assert.isString(warned["message"])
        yield* keepAlive
        yield* pass(40)
        yield* keepAlive
        yield* pass(40)
        yield* keepAlive
        yield* pass(10)
        assert.deepStrictEqual(yield* client.closed, { code: 4002, reason: "token_expired" })
      })
  )
})
