/** Texts that Postgres refuses or changes, and texts that mislead people who read them. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, guest, newPlayer, request } from "#testing/players"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"
import { everything } from "../support/operator-harness.ts"
import { openRoom } from "../support/opened-room.ts"

const pathOf = ({ body }: { readonly body: unknown }) =>
  at(body, "error", "details", "issues", 0, "path")

/** Strings that no column of type jsonb holds. */
const unstorable = ["\u0000", "\ud800", "a\udc00b"]

/** Strings that show nothing, reorder their neighbours or control a terminal. */
const misleading = ["", " ", "\u200b", "\u2800", "a\u202eb", "\u2066a", "a\u001b[2J", "a\u0007"]

layer(SecurityAppLive(), live)("texts that people read", (it) => {
  it.effect("refuses a text that misleads or cannot be stored, with the name of its field", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { publishableKey, secretKey, url } = app
      const ada = yield* guest(app, "Ada")
      const signedIn = yield* request(`${url}/v1/developers/login`, { body: app.developer })
      const developer = { authorization: `Bearer ${String(at(signedIn.body, "token"))}` }
      const server = { "x-svc-key": secretKey }
      const player = {
        "x-svc-key": publishableKey,
        authorization: `Bearer ${ada.accessToken}`
      }
      const ban = `${url}/v1/admin/players/${ada.id}/ban`
      const appeal = `${url}/v1/players/me/sanctions/snc_00000000000000000000000000/appeal`
      const resolve = `${url}/v1/admin/appeals/apl_00000000000000000000000000/resolve`
      const signup = `${url}/v1/developers/signup`
      const account = { email: "texts@example.com", password: "correct horse" }
      const fields = [
        ["PATCH", `${url}/v1/players/me`, player, "displayName", {}],
        ["POST", `${url}/v1/auth/guest`, player, "displayName", {}],
        ["POST", `${url}/v1/projects`, developer, "name", {}],
        ["PATCH", `${url}/v1/projects/${app.project}`, developer, "name", {}],
        ["POST", signup, {}, "name", account],
        ["POST", ban, server, "reason", {}],
        ["POST", ban, server, "publicNote", {}],
        ["POST", appeal, player, "message", {}],
        ["POST", resolve, server, "response", { accept: false }]
      ] as const
      for (const [method, address, headers, field, rest] of fields) {
        for (const text of [...misleading, ...unstorable]) {
          const answer = yield* request(address, {
            method,
            headers,
            body: { ...rest, [field]: text }
          })
          const what = `${method} ${address} ${field} ${JSON.stringify(text)}`
          assert.deepStrictEqual([answer.status, pathOf(answer)], [400, field], what)
        }
      }
      for (const [path, document] of [
        ["stats[0].title", { stats: [{ key: "score", title: "TEXT" }] }],
        [
          "multiplayer.modes[0].title",
          { multiplayer: { modes: [{ key: "a", title: "TEXT", minPlayers: 1, maxPlayers: 2 }] } }
        ]
      ] as const) {
        for (const text of [...misleading, ...unstorable]) {
          const body = JSON.parse(
            JSON.stringify(document).replace('"TEXT"', () => JSON.stringify(text))
          )
          const pushed = yield* request(`${url}/v1/config`, {
            method: "PUT",
            headers: server,
            body
          })
          assert.deepStrictEqual([pushed.status, pathOf(pushed)], [400, path], JSON.stringify(text))
        }
      }
    })
  )

  it.effect("keeps the line breaks of a text, and stores it in the composed form", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app, "Ada")
      const banned = yield* request(`${app.url}/v1/admin/players/${ada.id}/ban`, {
        headers: { "x-svc-key": app.secretKey },
        body: { reason: "cafe\u0301\r\n\tand more" }
      })
      assert.strictEqual(at(banned.body, "player", "banReason"), "caf\u00e9\r\n\tand more")
    })
  )
})

layer(SecurityAppLive(), live)("texts that Postgres refuses", (it) => {
  it.effect(
    "refuses texts that Postgres refuses in rooms, so that the live view of the dashboard works",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* configure(app, everything)
        const signedIn = yield* request(`${app.url}/v1/developers/login`, { body: app.developer })
        const headers = { authorization: `Bearer ${String(at(signedIn.body, "token"))}` }
        const ada = yield* newPlayer(app, "Ada")
        const { roomId } = yield* openRoom([ada], { mode: "duel" })
        const replies: Array<unknown> = []
        for (const text of unstorable) {
          for (const patch of [{ a: text }, { a: [{ b: text }] }, { [`k${text}`]: 1 }]) {
            for (const t of ["setState", "setMyState"] as const) {
              const reply = yield* ada.socket.request({ t, patch })
              replies.push(at(reply, "error", "code"))
            }
          }
        }
        const view = `${app.url}/v1/projects/${app.project}/environments/development/realtime`
        const rooms = yield* app.eventually(
          Effect.map(request(view, { headers }), (answer) => {
            assert.strictEqual(answer.status, 200)
            const id = at(answer.body, "rooms", 0, "id")
            return id === roomId ? [id] : undefined
          }),
          "the live view shows the room"
        )
        assert.isString(roomId)
        assert.deepStrictEqual(rooms, [roomId])
        assert.deepStrictEqual([...new Set(replies)], ["invalid_frame"])
        const bob = yield* newPlayer(app, "Bob")
        const metadata = { topic: "\u0000" }
        const refused = yield* bob.socket.request({ t: "create", mode: "duel", metadata })
        assert.strictEqual(at(refused, "error", "code"), "invalid_frame")
      })
  )

  it.effect(
    "stores texts that Postgres refuses unchanged inside saves, whose text no statement parses",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* configure(app, everything)
        const ada = yield* guest(app, "Ada")
        const headers = {
          "x-svc-key": app.publishableKey,
          authorization: `Bearer ${ada.accessToken}`
        }
        for (const text of unstorable) {
          const save = `${app.url}/v1/saves/slot`
          const data = { [text]: [text] }
          assert.strictEqual(
            (yield* request(save, { method: "PUT", headers, body: { data } })).status,
            200
          )
          assert.deepStrictEqual(at((yield* request(save, { headers })).body, "data"), data)
        }
      })
  )
})
