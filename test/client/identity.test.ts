/**
 * Identity of a player through the typed client against the real service: email, devices, ages, news
 * and deletion.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  type Client,
  type ClientOptions,
  createClient,
  isError,
  memoryStorage
} from "#client/client"
import { TestApp } from "#testing/app"
import { configure, request } from "#testing/players"
import { rejection } from "../support/client/waits.ts"
import { AppLive } from "../support/service.ts"

const password = "correct horse"
const redirectUrl = "http://localhost:5173/account"

const document = {
  features: { emailLogin: true, saves: true },
  share: { inAppBrowser: { enabled: true } },
  audience: "mixed"
}

const newClient = Effect.fnUntraced(function* (options: Partial<ClientOptions> = {}) {
  const app = yield* TestApp
  yield* configure(app, document)
  const { publishableKey: key, url: baseUrl } = app
  return createClient({ baseUrl, key, storage: memoryStorage(), ...options })
})

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

/** Waits for a mail and returns the token of its link. */
const mailed = Effect.fnUntraced(function* (purpose: "verify" | "reset", email: string) {
  const { eventually, url } = yield* TestApp
  const found = Effect.map(request(`${url}/dev/mail`), ({ body }) => {
    const mail = String(body)
      .split("<article>")
      .find((article) => article.includes(email) && article.includes(`#svc_${purpose}=`))
    return mail?.match(/#svc_(?:verify|reset)=([\w-]+)/)?.[1]
  })
  return yield* eventually(found, `a mail to ${purpose} comes to ${email}`)
})

const isInvalid = (client: Client, credentials: { email: string; password: string }) =>
  Effect.map(
    rejection(() => client.email.signIn(credentials)),
    (error) => isError(error, "invalid_credentials")
  )

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("a player", (it) => {
  it.effect("adds an email to a guest, confirms it, and signs in on another device", () =>
    Effect.gen(function* () {
      const email = "ada@example.com"
      const client = yield* newClient()
      const guest = yield* ask(() => client.sessions.guest({ displayName: "Ada" }))
      yield* ask(() => client.saves.put("slot-1", { level: 3 }))
      const player = yield* ask(() => client.email.link({ email, password, redirectUrl }))
      assert.deepInclude(player, { id: guest.id, isGuest: false, emailVerified: false })
      assert.deepStrictEqual(client.sessions.player, player)
      const token = yield* mailed("verify", email)
      assert.isTrue((yield* ask(() => client.email.verify(token))).emailVerified)
      assert.isTrue(client.sessions.player?.emailVerified)
      const spent = yield* rejection(() => client.email.verify(token))
      assert.isTrue(isError(spent, "invalid_token"))
      const other = yield* newClient()
      assert.isTrue(yield* isInvalid(other, { email, password: "wrong horse" }))
      assert.isTrue(yield* isInvalid(other, { email: "nobody@example.com", password }))
      assert.strictEqual((yield* ask(() => other.email.signIn({ email, password }))).id, guest.id)
      assert.deepStrictEqual((yield* ask(() => other.saves.get("slot-1")))?.data, { level: 3 })
      const [identity] = yield* ask(() => other.identities.list())
      assert.deepInclude(identity, { provider: "email", email, emailVerified: true })
      const last = yield* rejection(() => other.identities.unlink("email"))
      assert.isTrue(isError(last, "last_login_method"))
    })
  )

  it.effect("signs up as a new player beside a guest, once for each email", () =>
    Effect.gen(function* () {
      const account = { email: "bob@example.com", password }
      const client = yield* newClient()
      const guest = yield* ask(() => client.sessions.ensure())
      const player = yield* ask(() => client.email.signUp({ ...account, displayName: "Bob" }))
      assert.notStrictEqual(player.id, guest.id)
      assert.deepInclude(player, { displayName: "Bob", isGuest: false })
      assert.strictEqual((yield* ask(() => client.players.me())).id, player.id)
      const taken = yield* rejection(() => client.email.signUp(account))
      assert.isTrue(isError(taken, "email_taken"))
      assert.strictEqual(client.sessions.player?.id, player.id)
    })
  )

  it.effect("changes the password, which signs the other device out", () =>
    Effect.gen(function* () {
      const account = { email: "cleo@example.com", password }
      const here = yield* newClient()
      const there = yield* newClient()
      yield* ask(() => here.email.signUp(account))
      yield* ask(() => there.email.signIn(account))
      const wrong = yield* rejection(() => here.email.changePassword("wrong horse", "new horse"))
      assert.isTrue(isError(wrong, "invalid_credentials"))
      yield* ask(() => here.email.changePassword(password, "new horse"))
      assert.isTrue(yield* isInvalid(yield* newClient(), account))
      const gone = yield* rejection(() => there.email.changePassword("new horse", password))
      assert.isTrue(isError(gone, "session_revoked") || isError(gone, "invalid_refresh_token"))
      yield* ask(() => here.email.changePassword("new horse", password))
    })
  )

  it.effect("resets a forgotten password by mail", () =>
    Effect.gen(function* () {
      const email = "dora@example.com"
      const client = yield* newClient()
      yield* ask(() => client.email.signUp({ email, password }))
      yield* ask(() => client.email.forgot("nobody@example.com"))
      yield* ask(() => client.email.forgot(email, { redirectUrl }))
      const token = yield* mailed("reset", email)
      yield* ask(() => client.email.reset(token, "new horse"))
      assert.isTrue(yield* isInvalid(client, { email, password }))
      yield* ask(() => client.email.signIn({ email, password: "new horse" }))
    })
  )

  it.effect("signs in on another browser with a transfer code, once", () =>
    Effect.gen(function* () {
      const client = yield* newClient()
      const guest = yield* ask(() => client.sessions.ensure())
      const { code, expiresIn } = yield* ask(() => client.transfer.create())
      assert.strictEqual(expiresIn, 600)
      const other = yield* newClient({ autoGuest: false })
      assert.strictEqual((yield* ask(() => other.transfer.redeem(code))).id, guest.id)
      assert.strictEqual((yield* ask(() => client.players.me())).id, guest.id)
      const spent = yield* rejection(() => other.transfer.redeem(code))
      assert.isTrue(isError(spent, "invalid_code"))
    })
  )

  it.effect("declares any age band first, then only stricter ones", () =>
    Effect.gen(function* () {
      const { ages } = yield* newClient()
      assert.deepInclude(yield* ask(() => ages.profile()), {
        ageBand: "child",
        declaredAgeBand: null
      })
      assert.isTrue((yield* ask(() => ages.declare("adult"))).capabilities.openChat)
      const signal = {
        platform: "ios",
        status: "declared",
        lowerBound: 13,
        upperBound: 15
      } as const
      assert.strictEqual((yield* ask(() => ages.signal(signal))).ageBand, "teen")
      assert.strictEqual((yield* ask(() => ages.declare("child"))).ageBand, "child")
      const looser = yield* rejection(() => ages.declare("teen"))
      assert.isTrue(isError(looser, "age_change_not_allowed"))
    })
  )

  it.effect("reads whether to ask about news, and stores the choice", () =>
    Effect.gen(function* () {
      const { ages, news } = yield* newClient()
      assert.isTrue(yield* ask(() => news.enabled()))
      assert.isFalse(yield* ask(() => news.choose(true)), "a child is not asked")
      yield* ask(() => ages.declare("adult"))
      assert.isTrue(yield* ask(() => news.choose(true)))
    })
  )

  it.effect("exports a player's data, and deletes a guest by its session in all tabs", () =>
    Effect.gen(function* () {
      const storage = memoryStorage()
      const client = yield* newClient({ storage })
      const tab = yield* newClient({ storage })
      const { id } = yield* ask(() => client.sessions.ensure())
      yield* ask(() => client.saves.put("slot-1", 7))
      const exported = yield* ask(() => client.players.export())
      assert.deepStrictEqual([exported.player.id, exported.saves[0]?.data], [id, 7])
      assert.isNotNull(yield* ask(() => tab.sessions.resume()))
      yield* ask(() => client.players.delete())
      assert.isNull(client.sessions.player)
      assert.isTrue(isError(yield* rejection(() => tab.players.me()), "signed_out"))
      assert.notStrictEqual((yield* ask(() => client.sessions.ensure())).id, id)
    })
  )

  it.effect("deletes a player with an email only with the password", () =>
    Effect.gen(function* () {
      const account = { email: "eve@example.com", password }
      const client = yield* newClient()
      yield* ask(() => client.email.signUp(account))
      for (const proof of [{}, { password: "wrong horse" }]) {
        const refused = yield* rejection(() => client.players.delete(proof))
        assert.isTrue(isError(refused, "invalid_credentials"))
      }
      assert.isNotNull(client.sessions.player)
      yield* ask(() => client.players.delete({ password }))
      assert.isTrue(yield* isInvalid(client, account))
    })
  )
})
