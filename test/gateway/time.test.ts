/**
 * What time brings to a socket (decisions 3.6): the late first frame, silence, heartbeats, tokens that
 * end. The clock is the test's; the WebSocket is real.
 */
import { createServer, type Server } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { WebSocketServer } from "ws"
import type { PlayerCaller } from "#rpc/auth"
import { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import { FlushScheduler } from "#server/platform/flush"
import { Frame, WriteStats } from "#server/platform/outbox"
import { type FrameHandlers, frameTable } from "#server/links/frames"
import { Listener } from "#server/links/listener"
import { FrameStats, RealtimeSocket } from "#server/gateway/socket"
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

/** A gateway with the test's clock, whose sockets are all admitted as one player. */
const testGateway = Effect.gen(function* () {
  const clock = { now: 1_000_000 }
  const sockets: Array<RealtimeSocket> = []
  const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  const admitted = {
    environmentId: `env_${none}`,
    player: player(clock.now + 900_000),
    connection: undefined,
    seat: null,
    listener: new Listener({
      connectionId: "con_1",
      environmentId: EnvironmentId.make(`env_${none}`),
      sink: { push: () => undefined },
      run: Effect.runFork,
      onClosed: () => undefined
    }),
    welcome: Frame.of({ t: "welcome" })
  }
  const asked = Deferred.makeUnsafe<void>()
  const admission = { answer: Effect.succeed(admitted) }
  const gateway = {
    scheduler: new FlushScheduler(() => clock.now),
    writeStats: new WriteStats(),
    frameStats: new FrameStats(),
    handlers: frameTable<FrameHandlers>(() => fail),
    listenerHandlers: frameTable<FrameHandlers<Listener>>(() => fail),
    now: () => clock.now,
    run: Effect.runFork,
    admit: () =>
      Effect.andThen(
        Deferred.succeed(asked, undefined),
        Effect.suspend(() => admission.answer)
      ),
    renew: () => Effect.succeed({ ...admitted, player: player(clock.now + 900_000) }),
    onClosing: () => undefined,
    onClosed: () => undefined
  }
  const server = yield* Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const http = createServer()
      http.on("upgrade", (request, stream, head) =>
        wss.handleUpgrade(request, stream, head, (ws) =>
          sockets.push(new RealtimeSocket({ ws, stream, origin: undefined, address: "", gateway }))
        )
      )
      http.listen(0, "127.0.0.1", () => resume(Effect.succeed(http)))
    }),
    (http) => Effect.sync(() => http.closeAllConnections())
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const client = yield* connectSocket(`ws://127.0.0.1:${port}`)
  return {
    client,
    /** Lets this much time pass. */
    pass: (seconds: number) =>
      Effect.sync(() => {
        clock.now += seconds * 1000
        for (const socket of sockets) socket.sweep(clock.now)
      }),
    /** The first frame arrives, and is not answered. */
    signInUnanswered: Effect.suspend(() => {
      admission.answer = Effect.never
      return client
        .say({ t: "auth" })
        .pipe(Effect.andThen(Deferred.await(asked)), Effect.andThen(Effect.yieldNow))
    }),
    signIn: Effect.andThen(client.say({ t: "auth" }), client.next("welcome"))
  }
})

describe("a socket over time", () => {
  it.live("closes 4001 when no first frame comes within five seconds", () =>
    Effect.gen(function* () {
      const { client, pass } = yield* testGateway
      yield* pass(4.9)
      assert.strictEqual(client.ws.readyState, client.ws.OPEN)
      yield* pass(0.1)
      assert.deepStrictEqual(yield* client.closed, { code: 4001, reason: "unauthorized" })
    })
  )

  it.live("closes 1012 when the node does not get round to answering the first frame", () =>
    Effect.gen(function* () {
      const { client, pass, signInUnanswered } = yield* testGateway
      yield* signInUnanswered
      yield* pass(14.9)
      assert.strictEqual(client.ws.readyState, client.ws.OPEN)
      yield* pass(0.1)
      assert.deepStrictEqual(yield* client.closed, { code: 1012, reason: "unavailable" })
    })
  )

  it.live("is pinged, and stays as long as it answers", () =>
    Effect.gen(function* () {
      const { client, pass, signIn } = yield* testGateway
      yield* signIn
      for (let i = 0; i < 5; i++) {
        const pinged = Effect.callback<void>((resume) => {
          client.ws.once("ping", () => resume(Effect.void))
        })
        yield* Effect.all([pinged, pass(20)], { concurrency: 2 })
        yield* client.say({ t: "auth" })
        yield* client.next("welcome")
      }
      assert.strictEqual(client.ws.readyState, client.ws.OPEN)
    })
  )

  it.live("closes 4008 after 45 seconds without pong or frame", () =>
    Effect.gen(function* () {
      const { client, pass, signIn } = yield* testGateway
      yield* signIn
      yield* pass(44.9)
      assert.strictEqual(client.ws.readyState, client.ws.OPEN)
      yield* pass(0.1)
      assert.deepStrictEqual(yield* client.closed, { code: 4008, reason: "idle" })
    })
  )

  it.live("is warned a minute before its token ends and closes 4002 half a minute after", () =>
    Effect.gen(function* () {
      const { client, pass, signIn } = yield* testGateway
      yield* signIn
      const keepAlive = Effect.andThen(client.say({ t: "nonsense" }), client.next("warn"))
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
