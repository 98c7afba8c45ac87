/**
 * Test player of `svc doctor`. The guest signs in, opens a private room of a peer-to-peer mode,
 * asks for the TURN servers, and is deleted.
 */
import { Effect, Schema } from "effect"
import { HttpClientRequest } from "effect/http"
import { IceServers } from "#rpc/peers"

import { openPlayerSocket } from "./player-socket.ts"
import { read, requestOf, send } from "./service.ts"
import { type Check, failed, ok, warning } from "./doctor-checks.ts"
import { checkIceServers } from "./ice-servers.ts"

interface PlayerTarget {
  readonly url: string
  readonly publishableKey: string
}

const Session = Schema.Struct({ accessToken: Schema.String, refreshToken: Schema.String })
type Session = typeof Session.Type

const signIn = Effect.fnUntraced(function* ({ publishableKey, url }: PlayerTarget) {
  const body = { displayName: "svc doctor" }
  const request = requestOf("POST /v1/auth/guest", { body }).pipe(
    HttpClientRequest.prependUrl(url),
    HttpClientRequest.setHeader("x-svc-key", publishableKey)
  )
  return yield* read(url, Session, yield* send(url, request))
})

/** Deletes the guest. Returns whether it is gone. */
const remove = ({ publishableKey, url }: PlayerTarget, { accessToken, refreshToken }: Session) =>
  send(
    url,
    requestOf("DELETE /v1/players/me", { body: { refreshToken }, token: accessToken }).pipe(
      HttpClientRequest.prependUrl(url),
      HttpClientRequest.setHeader("x-svc-key", publishableKey)
    )
  ).pipe(
    Effect.map(({ response }) => response.status === 200),
    Effect.orElseSucceed(() => false)
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
    const { publishableKey: key, url } = target
    const { call } = yield* openPlayerSocket({ url, key, token: accessToken })
    yield* call({ t: "create", mode, private: true })
    const reply = yield* call({ t: "iceServers" })
    const { iceServers } = yield* Schema.decodeUnknownEffect(IceServers)(reply)
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
