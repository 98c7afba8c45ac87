/**
 * Test player of `svc doctor`. The guest signs in, opens a private room of a peer-to-peer mode,
 * asks for the TURN servers, and is deleted.
 */
import { Effect, Schema } from "effect"
import { HttpClientRequest } from "effect/http"
import { IceServers } from "#rpc/peers"
import { Reply } from "#rpc/realtime"
import { read, send } from "./service.ts"
import { type Check, failed, ok, warning } from "./doctor-checks.ts"
import { checkIceServers } from "./ice-servers.ts"

interface PlayerTarget {
  readonly url: string
  readonly publishableKey: string
}

const Session = Schema.Struct({ accessToken: Schema.String, refreshToken: Schema.String })
type Session = typeof Session.Type

const signIn = Effect.fnUntraced(function* ({ publishableKey, url }: PlayerTarget) {
  const request = HttpClientRequest.post(`${url}/v1/auth/guest`).pipe(
    HttpClientRequest.setHeader("x-svc-key", publishableKey),
    HttpClientRequest.bodyJsonUnsafe({ displayName: "svc doctor" })
  )
  return yield* read(url, Session, yield* send(url, request))
})

/** Deletes the guest. Returns whether it is gone. */
const remove = ({ publishableKey, url }: PlayerTarget, { accessToken, refreshToken }: Session) =>
  send(
    url,
    HttpClientRequest.delete(`${url}/v1/players/me`).pipe(
      HttpClientRequest.bodyJsonUnsafe({ refreshToken }),
      HttpClientRequest.setHeaders({
        "x-svc-key": publishableKey,
        authorization: `Bearer ${accessToken}`
      })
    )
  ).pipe(
    Effect.map(({ response }) => response.status === 200),
    Effect.orElseSucceed(() => false)
  )

const EventName = Schema.Struct({ t: Schema.String })
const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(EventName))
const decodeReply = Schema.decodeUnknownOption(Schema.fromJsonString(Reply))

/** Frames of the conversation, each sent after the answer to the one before. */
const framesOf = (mode: string) => [
  { t: "create", rid: "1", mode, private: true },
  { t: "iceServers", rid: "2" }
]

/** Signs in on the socket and sends the frames; returns the data of the last reply, or why there is none. */
const converse = (
  socket: WebSocket,
  { publishableKey }: PlayerTarget,
  token: string,
  mode: string
) =>
  Effect.callback<unknown, string>((resume) => {
    const frames = framesOf(mode)
    const transmit = (frame: unknown) => socket.send(JSON.stringify(frame))
    socket.addEventListener("open", () => transmit({ t: "auth", key: publishableKey, token }))
    socket.addEventListener("error", () => resume(Effect.fail("the socket does not open")))
    socket.addEventListener("close", ({ code, reason }) =>
      resume(Effect.fail(`the socket was closed with ${code} ${reason}`.trim()))
    )
    socket.addEventListener("message", ({ data }) => {
      const text = String(data)
      const event = decodeEvent(text)
      const reply = decodeReply(text)
      if (reply._tag === "Some" && !reply.value.ok) {
        const { code = "no code", message = "" } = reply.value.error ?? {}
        return resume(Effect.fail(`${message} (${code})`))
      }
      const isWelcome = event._tag === "Some" && event.value.t === "welcome"
      if (!isWelcome && reply._tag === "None") return
      const next = frames.shift()
      if (next !== undefined) return transmit(next)
      if (reply._tag === "Some") resume(Effect.succeed(reply.value.data))
    })
  }).pipe(
    Effect.timeoutOrElse({
      duration: "20 seconds",
      orElse: () => Effect.fail("the socket gave no answer within 20 seconds")
    })
  )

const openSocket = ({ url }: PlayerTarget) =>
  Effect.acquireRelease(
    Effect.sync(() => new WebSocket(`${url.replace(/^http/, "ws")}/v1/realtime`)),
    (socket) => Effect.sync(() => socket.close())
  )

const socketRemedy =
  "Let the proxy before the service pass WebSockets: its Upgrade and Connection headers."

const refused = (reason: string): Check => {
  const isTurn = reason.includes("turn_unavailable")
  const remedy = isTurn
    ? "Set SVC_TURN_URLS and SVC_TURN_SECRET for the service: docs/guides/peers.md"
    : socketRemedy
  return failed(isTurn ? "turn" : "player", reason, remedy)
}

const askForServers = Effect.fnUntraced(
  function* (target: PlayerTarget, accessToken: string, mode: string) {
    const answer = yield* converse(yield* openSocket(target), target, accessToken, mode)
    const { iceServers } = yield* Schema.decodeUnknownEffect(IceServers)(answer)
    return iceServers
  },
  Effect.scoped,
  Effect.mapError((error) => (typeof error === "string" ? error : error.message)),
  Effect.result
)

/** Checks the socket, and each TURN server that a player of this mode gets. */
export const checkAsPlayer = Effect.fnUntraced(
  function* (target: PlayerTarget, mode: string) {
    const session = yield* signIn(target)
    const servers = yield* askForServers(target, session.accessToken, mode)
    const isGone = yield* remove(target, session)
    const player = isGone
      ? ok("player", "a guest signs in, opens a room and is deleted")
      : warning(
          "player",
          "the guest named svc doctor was not deleted",
          "Delete it in the dashboard."
        )
    if (servers._tag === "Failure") return [refused(servers.failure), ...(isGone ? [] : [player])]
    return [player, ...(yield* checkIceServers(servers.success))]
  },
  Effect.catch(({ message }) => Effect.succeed([failed("player", message)]))
)
