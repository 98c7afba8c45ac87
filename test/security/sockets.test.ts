/**
 * Equal protection over HTTP and at the JSON socket. In several servers the socket ignored the access rules of
 * the REST interface.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, goOnline, guest, request, type TestTarget } from "#testing/players"
import { connectSocket } from "#testing/socket-client"
import { everything, makeTenantFixtures, text } from "../support/operator-harness.ts"
import { misissue, partsOf, signingKey } from "../support/security/forger.ts"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"
import { openRoom } from "../support/opened-room.ts"

type Credentials = Readonly<Record<string, unknown>>

/** A caller with the same credentials over HTTP and at the socket. */
interface Caller {
  readonly who: string
  readonly key?: string | undefined
  readonly token?: string | undefined
  /** Status and code over HTTP, close code and reason at the socket. */
  readonly http: string
  readonly socket: string
}

const makeCallers = Effect.gen(function* () {
  const tenants = yield* makeTenantFixtures("sockets")
  const { development, developer, production } = tenants
  const { publishableKey: key, secretKey } = development
  const [sibling, foreign] = tenants.otherPlayers
  const { accessToken: token, refreshToken } = tenants.player
  const { claims } = partsOf(token)
  const exp = Number(claims["iat"]) - 1
  const expired = misissue(yield* signingKey, { ...claims, iat: exp - 900, exp })
  const deleted = yield* guest(development)
  yield* request(`${development.url}/v1/admin/players/${deleted.id}/delete`, {
    method: "POST",
    headers: { "x-svc-key": secretKey }
  })
  const session = (developer.headers["authorization"] ?? "").replace("Bearer ", "")
  const revoked = String(tenants.revoked[0]?.["x-svc-key"])
  const badKey = { http: "401 invalid_key", socket: "4001 invalid_key" }
  const unauthorized = { http: "401 unauthorized", socket: "4001 unauthorized" }
  const all: ReadonlyArray<Caller> = [
    { who: "a caller without credentials", ...badKey },
    { who: "a player without a key", token, ...badKey },
    { who: "an unknown key", key: `pk_${"A".repeat(43)}`, token, ...badKey },
    { who: "a revoked key", key: revoked, token, ...badKey },
    { who: "a secret key", key: secretKey, token, ...badKey },
    { who: "a developer's session as the key", key: session, token, ...badKey },
    { who: "a key alone", key, ...unauthorized },
    { who: "a developer's session as the token", key, token: session, ...unauthorized },
    { who: "a refresh token as the token", key, token: refreshToken, ...unauthorized },
    { who: "a player of the other environment", key, token: sibling?.accessToken, ...unauthorized },
    { who: "a player of another project", key, token: foreign?.accessToken, ...unauthorized },
    { who: "a player with the other key", key: production.publishableKey, token, ...unauthorized },
    {
      who: "an expired token",
      key,
      token: expired,
      http: "401 token_expired",
      socket: "4002 token_expired"
    },
    {
      who: "a banned player",
      key,
      token: tenants.bannedPlayer.accessToken,
      http: "403 player_banned",
      socket: "4003 player_banned"
    },
    {
      who: "a deleted player",
      key,
      token: deleted.accessToken,
      http: "401 unauthorized",
      socket: "4001 unauthorized"
    },
    { who: "the player", key, token, http: "200 ok", socket: "welcome" }
  ]
  return { all, development }
})

const authenticateAs = (socketUrl: string, credentials: Credentials) =>
  Effect.scoped(
    Effect.gen(function* () {
      const socket = yield* connectSocket(socketUrl)
      yield* socket.send({ t: "auth", ...credentials })
      return yield* Effect.raceFirst(
        Effect.map(socket.next("welcome"), () => "welcome"),
        Effect.map(socket.closed, ({ code, reason }) => `${code} ${reason}`)
      )
    })
  )

const rename = ({ url }: TestTarget, { key, token }: Caller) =>
  Effect.map(
    request(`${url}/v1/players/me`, {
      method: "PATCH",
      headers: {
        ...(key === undefined ? {} : { "x-svc-key": key }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` })
      },
      body: { displayName: "Somebody" }
    }),
    ({ body, status }) => `${status} ${String(at(body, "error", "code") ?? "ok")}`
  )

layer(SecurityAppLive(), live)("HTTP and the JSON socket", (it) => {
  it.effect("refuses the same 15 of 16 callers over HTTP and socket, each with its code", () =>
    Effect.gen(function* () {
      const { socketUrl } = yield* TestApp
      const { all, development } = yield* makeCallers
      for (const caller of all) {
        const { http, key, socket, token, who } = caller
        assert.strictEqual(yield* rename(development, caller), http, who)
        assert.strictEqual(yield* authenticateAs(socketUrl, { key, token }), socket, who)
      }
    })
  )

  it.effect("ignores a player id that a caller claims in a frame", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, everything)
      const victim = yield* guest(app)
      const { accessToken, id } = yield* guest(app)
      const socket = yield* connectSocket(app.socketUrl)
      yield* socket.send({
        t: "auth",
        key: app.publishableKey,
        token: accessToken,
        playerId: victim.id,
        player: { id: victim.id },
        userId: victim.id,
        actsFor: victim.id,
        "x-svc-player": victim.id
      })
      assert.strictEqual((yield* socket.next("welcome"))["playerId"], id)
      yield* socket.request({ t: "create", mode: "duel", hostId: victim.id, playerId: victim.id })
      const joined = yield* socket.next("room_joined")
      assert.strictEqual(at(joined, "room", "hostId"), id)
      // Renewing the token of the socket as another player closes it.
      yield* socket.send({ t: "auth", token: victim.accessToken })
      assert.strictEqual((yield* socket.closed).code, 4001)
    })
  )

  it.effect("shows other players an id, a name and messages, but no email, session or token", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, everything)
      const environmentId = partsOf((yield* guest(app)).accessToken).claims["aud"]
      const email = "secretive@example.com"
      const signedUp = yield* request(`${app.url}/v1/auth/email/signup`, {
        headers: { "x-svc-key": app.publishableKey },
        body: { email, password: "correct horse battery", displayName: "Ada" }
      })
      const ada = {
        id: text(signedUp.body, "player", "id"),
        accessToken: text(signedUp.body, "accessToken"),
        refreshToken: text(signedUp.body, "refreshToken")
      }
      const { claims } = partsOf(ada.accessToken)
      const online = yield* goOnline(app, ada)
      const { roomId } = yield* openRoom([online], { mode: "duel" })
      yield* online.socket.request({ t: "channelCreate", channel: "@club" })
      const bob = yield* Effect.flatMap(guest(app, "Bob"), (player) => goOnline(app, player))
      yield* bob.socket.request({ t: "join", roomId })
      yield* bob.socket.request({ t: "channelJoin", channel: "@club" })
      yield* online.socket.request({ t: "send", type: "hi" })
      yield* online.socket.request({ t: "setMyState", patch: { ready: true } })
      yield* online.socket.request({ t: "channelSend", channel: "@club", type: "hi" })
      yield* bob.socket.next("channel_message")
      yield* online.socket.request({ t: "leave" })
      yield* bob.socket.next("player_left")
      const received = JSON.stringify(bob.socket.received)
      assert.include(received, ada.id)
      const secrets = [email, ada.accessToken, ada.refreshToken, claims["sid"], environmentId]
      for (const secret of secrets.map(String)) assert.notInclude(received, secret)
      assert.notMatch(received, /email|identities|isGuest|createdAt":"[^"]*","displayName|session/i)
    })
  )
})
