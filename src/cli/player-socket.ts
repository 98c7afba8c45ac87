/** The socket of a test player: frames, and calls with their replies. Whatever fails says why in a text. */
import { Effect, Schema } from "effect"
import { Reply } from "#rpc/realtime"

const replySeconds = 30

export interface PlayerSocket {
  readonly send: (frame: object) => void
  /** Sends a frame and returns the data of its reply. */
  readonly call: (frame: object) => Effect.Effect<unknown, string>
  /** Fails when the socket closes. */
  readonly closed: Effect.Effect<never, string>
}

const decodeEvent = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ t: Schema.String }))
)
const decodeReply = Schema.decodeUnknownOption(Schema.fromJsonString(Reply))

/** Waits for a frame that `read` accepts, after `start` has run. */
const awaitFrame = <A>(
  socket: WebSocket,
  start: () => void,
  read: (text: string) => Effect.Effect<A, string> | undefined
) =>
  Effect.callback<A, string>((resume) => {
    const onMessage = ({ data }: MessageEvent) => {
      const result = read(String(data))
      if (result !== undefined) resume(result)
    }
    const onError = () => resume(Effect.fail("the socket does not open"))
    const onClose = ({ code, reason }: CloseEvent) =>
      resume(Effect.fail(`the socket was closed with ${code} ${reason}`.trim()))
    socket.addEventListener("message", onMessage)
    socket.addEventListener("error", onError)
    socket.addEventListener("close", onClose)
    start()
    return Effect.sync(() => {
      socket.removeEventListener("message", onMessage)
      socket.removeEventListener("error", onError)
      socket.removeEventListener("close", onClose)
    })
  })

const isWelcome = (text: string) => {
  const event = decodeEvent(text)
  return event._tag === "Some" && event.value.t === "welcome" ? Effect.void : undefined
}

const inTime = Effect.timeoutOrElse({
  duration: `${replySeconds} seconds`,
  orElse: () => Effect.fail(`no reply within ${replySeconds} seconds`)
})

/** Opens the socket of a player and signs in. */
export const openPlayerSocket = Effect.fnUntraced(function* ({
  key,
  token,
  url
}: {
  readonly url: string
  readonly key: string
  readonly token: string
}) {
  const socket = yield* Effect.acquireRelease(
    Effect.sync(() => new WebSocket(`${url.replace(/^http/, "ws")}/v1/realtime`)),
    (opened) => Effect.sync(() => opened.close())
  )
  const send = (frame: object) => socket.send(JSON.stringify(frame))
  const authenticate = () =>
    socket.addEventListener("open", () => send({ t: "auth", key, token }), { once: true })
  yield* awaitFrame(socket, authenticate, isWelcome).pipe(inTime)
  let calls = 0
  const call = (frame: object) =>
    Effect.suspend(() => {
      calls += 1
      const rid = String(calls)
      const start = () => send({ ...frame, rid })
      return awaitFrame(socket, start, (text) => {
        const reply = decodeReply(text)
        if (reply._tag === "None" || reply.value.rid !== rid) return undefined
        const { data, error, ok } = reply.value
        const { code = "no code", message = "a frame was refused" } = error ?? {}
        return ok ? Effect.succeed(data) : Effect.fail(`${message} (${code})`)
      }).pipe(inTime)
    })
  const nothing = () => undefined
  const opened: PlayerSocket = { send, call, closed: awaitFrame<never>(socket, nothing, nothing) }
  return opened
})
