/** A WebSocket server whose frames the test scripts, with the session endpoints of {@link FakeAuth}. */
import { Effect, Fiber, Predicate, Queue, type Scope } from "effect"
import { type WebSocket, WebSocketServer } from "ws"
import type { ServerEvent, Welcome } from "#rpc/realtime"
import type { RoomSnapshot } from "#rpc/rooms/events"
import { type Client, type ClientOptions, memoryStorage } from "#client/client"
import { makeClient } from "#testing/client"
import { FakeAuth } from "./fake-auth.ts"

type Said = Readonly<Record<string, unknown>>

const read = (text: string): Said => {
  const frame: unknown = JSON.parse(text)
  return Predicate.isObject(frame) ? Object.fromEntries(Object.entries(frame)) : {}
}

/** Seconds; longer than any other wait of the tests. */
export const heartbeat = 1000
/** The client's liveness check interval, in milliseconds. */
export const lookMillis = 2000

/** The server's end of one socket. */
export class ScriptedSocket {
  readonly #ws: WebSocket
  readonly #heard: Queue.Dequeue<Said>

  constructor(ws: WebSocket, heard: Queue.Dequeue<Said>) {
    this.#ws = ws
    this.#heard = heard
  }

  /** Takes the next frame of any type. */
  get next(): Effect.Effect<Said> {
    return Queue.take(this.#heard)
  }

  /** Sends frames in one event-loop turn, like the gateway. */
  say(...frames: ReadonlyArray<ServerEvent | Said>): Effect.Effect<void> {
    return Effect.sync(() => {
      for (const frame of frames) this.#ws.send(JSON.stringify(frame))
    })
  }

  /** Answers the first frame with welcome. */
  welcome(fields: Partial<Welcome> = {}): Effect.Effect<void> {
    return this.say({
      t: "welcome",
      connectionId: "con_1",
      playerId: "pl_00000000000000000000000001",
      serverTime: 0,
      heartbeatSeconds: heartbeat,
      tokenExpiresAt: null,
      rooms: [],
      ...fields
    })
  }

  /** Closes with a code, or cuts the connection without one. */
  close(code?: number, reason = ""): Effect.Effect<void> {
    return Effect.sync(() =>
      code === undefined ? this.#ws.terminate() : this.#ws.close(code, reason)
    )
  }
}

/** The reply to a frame. */
export const reply = ({ rid }: Said, data: object = {}): Said => ({
  t: "reply",
  rid,
  ok: true,
  data
})

/** The error reply to a frame. */
export const refuse = ({ rid }: Said, code: string, details?: object): Said => ({
  t: "reply",
  rid,
  ok: false,
  error: { code, message: code, ...(details === undefined ? {} : { details }) }
})

/** A room with the client's player in it. */
export const joined = (fields: Partial<RoomSnapshot> = {}, resumed = false): ServerEvent => ({
  t: "room_joined",
  playerId: "pl_00000000000000000000000001",
  resumed,
  room: {
    id: "rm_1",
    code: "7KMB2P",
    mode: "default",
    private: false,
    locked: false,
    transport: "server",
    hostId: null,
    hostOnlyState: false,
    maxPlayers: 4,
    metadata: {},
    state: {},
    version: 0,
    createdAt: "2026-11-20T21:00:00.000Z",
    players: [],
    ...fields
  }
})

export const seat = { roomId: "rm_1", code: "7KMB2P" }

export interface ScriptedService {
  readonly auth: FakeAuth
  /** The next socket that a client opens. */
  readonly socket: Effect.Effect<ScriptedSocket>
  /** Sockets opened so far. */
  readonly sockets: () => number
  readonly client: (
    options?: Partial<ClientOptions>
  ) => Effect.Effect<Effect.Success<ReturnType<typeof makeClient>>, never, Scope.Scope>
}

const listen = Effect.acquireRelease(
  Effect.callback<WebSocketServer>((resume) => {
    const server = new WebSocketServer({ host: "127.0.0.1", port: 0 })
    server.once("listening", () => resume(Effect.succeed(server)))
  }),
  (server) =>
    Effect.callback<void>((resume) => {
      for (const socket of server.clients) socket.terminate()
      server.close(() => resume(Effect.void))
    })
)

export const scriptedService: Effect.Effect<ScriptedService, never, Scope.Scope> = Effect.gen(
  function* () {
    const server = yield* listen
    const opened = yield* Queue.unbounded<ScriptedSocket>()
    let sockets = 0
    server.on("connection", (ws) => {
      sockets++
      const heard = Effect.runSync(Queue.unbounded<Said>())
      ws.on("message", (data) => Queue.offerUnsafe(heard, read(String(data))))
      Queue.offerUnsafe(opened, new ScriptedSocket(ws, heard))
    })
    const address = server.address()
    const port = Predicate.isObject(address) ? address.port : 0
    const auth = new FakeAuth()
    return {
      auth,
      socket: Queue.take(opened),
      sockets: () => sockets,
      client: (options = {}) =>
        Effect.acquireRelease(
          makeClient({
            baseUrl: `http://127.0.0.1:${port}`,
            key: "pk_test",
            fetch: auth.fetch,
            storage: memoryStorage(),
            ...options
          }),
          (client) => Effect.sync(() => client.close())
        )
    }
  }
)

/** Sends a frame and waits until the client has received it. */
export const stillThere = Effect.fnUntraced(function* (client: Client, socket: ScriptedSocket) {
  const heard = yield* Effect.forkChild(
    Effect.callback<void>((resume) => Effect.sync(client.on("warn", () => resume(Effect.void)))),
    { startImmediately: true }
  )
  yield* socket.say({ t: "warn", code: "alive", message: "Still there." })
  yield* Fiber.join(heard)
})

/** A client with a seat in the room `rm_1`, and the server's end of its socket. */
export const seated = Effect.fnUntraced(function* (
  service: ScriptedService,
  fields: Partial<RoomSnapshot> = {},
  options: Partial<ClientOptions> = {}
) {
  const client = yield* service.client(options)
  const creating = yield* Effect.forkChild(
    Effect.promise(() => client.rooms.create({ mode: "default" }))
  )
  const socket = yield* service.socket
  yield* socket.next
  yield* socket.welcome()
  const create = yield* socket.next
  yield* socket.say(joined(fields), reply(create, seat))
  const room = yield* Fiber.join(creating)
  return { client, room, socket }
})
