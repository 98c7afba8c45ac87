/**
 * A scripted socket client for tests: says frames, waits for those it expects, and keeps everything
 * it heard, so that a failure shows the whole conversation. Speaks raw WebSocket and raw JSON.
 */
import { Deferred, Duration, Effect, type Scope } from "effect"
import { type RawData, WebSocket } from "ws"

/** A frame as it came over the wire. */
export interface HeardFrame {
  readonly t: string
  readonly [field: string]: unknown
}

/** How the socket ended. */
export interface Closed {
  readonly code: number
  readonly reason: string
}

export interface SocketClient {
  readonly ws: WebSocket
  /** Everything heard so far, in order. */
  readonly heard: ReadonlyArray<HeardFrame>
  /** Says a frame without waiting. */
  readonly say: (frame: object) => Effect.Effect<void>
  /** Says raw text. */
  readonly sayText: (text: string) => Effect.Effect<void>
  /** Takes the next frame of a type (and, when given, of this shape) that was not taken yet. */
  readonly next: (t: string, matches?: (frame: HeardFrame) => boolean) => Effect.Effect<HeardFrame>
  /** Says a frame with a `rid` and takes its reply. */
  readonly ask: (frame: object) => Effect.Effect<HeardFrame>
  /** Waits for the end. */
  readonly closed: Effect.Effect<Closed>
  readonly close: (code?: number) => Effect.Effect<void>
  /** Cuts the connection without a goodbye. */
  readonly terminate: Effect.Effect<void>
}

const patience = Duration.seconds(15)

const textOf = (data: RawData): string =>
  Array.isArray(data)
    ? Buffer.concat(data).toString()
    : Buffer.isBuffer(data)
      ? data.toString()
      : Buffer.from(data).toString()

interface Wait {
  readonly matches: (frame: HeardFrame) => boolean
  readonly found: (frame: HeardFrame) => void
}

/** Connects to a URL; the scope closes the socket. */
export const connectSocket = (
  url: string,
  options: { readonly origin?: string } = {}
): Effect.Effect<SocketClient, Error, Scope.Scope> =>
  Effect.gen(function* () {
    const heard: Array<HeardFrame> = []
    const fresh: Array<HeardFrame> = []
    const waits: Array<Wait> = []
    const closed = yield* Deferred.make<Closed>()
    let rid = 0

    const hear = (frame: HeardFrame): void => {
      heard.push(frame)
      const index = waits.findIndex((wait) => wait.matches(frame))
      const [wait] = index < 0 ? [] : waits.splice(index, 1)
      if (wait === undefined) fresh.push(frame)
      else wait.found(frame)
    }

    const ws = yield* Effect.acquireRelease(
      Effect.callback<WebSocket, Error>((resume) => {
        const socket = new WebSocket(url, { ...options, perMessageDeflate: false })
        socket.on("message", (data) => hear(JSON.parse(textOf(data))))
        socket.once("open", () => resume(Effect.succeed(socket)))
        socket.on("error", (error) => resume(Effect.fail(error)))
        socket.once("close", (code, reason) =>
          Deferred.doneUnsafe(closed, Effect.succeed({ code, reason: reason.toString() }))
        )
      }),
      (socket) => Effect.sync(() => socket.terminate())
    )

    const sayText = (text: string) => Effect.sync(() => ws.send(text))
    const say = (frame: object) => sayText(JSON.stringify(frame))

    const transcript = (): string => heard.map((frame) => JSON.stringify(frame)).join("\n")

    const next: SocketClient["next"] = (t, matches = () => true) => {
      const wanted = (frame: HeardFrame) => frame.t === t && matches(frame)
      return Effect.callback<HeardFrame>((resume) => {
        const index = fresh.findIndex(wanted)
        const [known] = index < 0 ? [] : fresh.splice(index, 1)
        if (known !== undefined) {
          resume(Effect.succeed(known))
          return
        }
        waits.push({ matches: wanted, found: (frame) => resume(Effect.succeed(frame)) })
      }).pipe(
        Effect.timeoutOrElse({
          duration: patience,
          orElse: () =>
            Effect.die(new Error(`No frame "${t}" came. The client heard:\n${transcript()}`))
        })
      )
    }

    return {
      ws,
      heard,
      say,
      sayText,
      next,
      ask: (frame) =>
        Effect.suspend(() => {
          const id = `r${++rid}`
          return Effect.andThen(
            say({ ...frame, rid: id }),
            next("reply", (reply) => reply["rid"] === id)
          )
        }),
      closed: Deferred.await(closed).pipe(
        Effect.timeoutOrElse({
          duration: patience,
          orElse: () =>
            Effect.die(new Error(`The socket did not close. It heard:\n${transcript()}`))
        })
      ),
      close: (code = 1000) => Effect.sync(() => ws.close(code)),
      terminate: Effect.sync(() => ws.terminate())
    }
  })
