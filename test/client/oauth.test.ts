/**
 * OAuth sign-in of the typed client without a page: through the system's browser, and with a device's
 * id token. `browser.test.ts` covers pages.
 */
import { hash, randomUUID } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Client, createClient, isError, memoryStorage } from "#client/client"
import { TestApp } from "#testing/app"
import { Google, SignInAppLive } from "../support/client/sign-in-app.ts"
import { rejection } from "../support/client/waits.ts"
import { makeBrowser } from "../support/oauth/browser.ts"

const redirectUrl = "http://localhost/signed-in"

const newClient = Effect.map(TestApp, ({ publishableKey: key, url: baseUrl }) =>
  createClient({ baseUrl, key, storage: memoryStorage() })
)

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

/** Signs in through a separate browser and returns the fragment of its callback. */
const visit = Effect.fnUntraced(function* (
  client: Client,
  account: string,
  options: { readonly link?: boolean; readonly answer?: "yes" | "no" } = {}
) {
  const { baseUrl } = yield* Google
  const { answer = "yes", ...start } = options
  const { url, verifier } = yield* ask(() =>
    client.oauth.start("google", { redirectUrl, ...start })
  )
  const seen = yield* makeBrowser(baseUrl, baseUrl).signIn(url, account, { answer })
  const fragment = new URLSearchParams(new URL(seen.url).hash.slice(1))
  return { code: fragment.get("svc_code") ?? "", error: fragment.get("svc_error"), verifier }
})

const signIn = Effect.fnUntraced(function* (client: Client, account: string, link = false) {
  const { code, verifier } = yield* visit(client, account, { link })
  return yield* ask(() => client.oauth.exchange(code, verifier))
})

const idToken = Effect.fnUntraced(function* (sub: string, nonce: string) {
  const { provider } = yield* Google
  return yield* ask(() =>
    provider.sign({
      iss: provider.url,
      aud: provider.clientId,
      sub,
      nonce: hash("sha256", nonce, "hex"),
      iat: 1,
      exp: 4_000_000_000
    })
  )
})

layer(SignInAppLive, { timeout: "120 seconds", excludeTestServices: true })("the client", (it) => {
  it.effect("signs in through the system's browser as the same player on every device", () =>
    Effect.gen(function* () {
      const one = yield* newClient
      const signedIn = yield* signIn(one, "ada")
      assert.deepInclude(signedIn, { provider: "google", linked: false })
      assert.deepStrictEqual(one.sessions.player, signedIn.player)
      const two = yield* newClient
      assert.strictEqual((yield* signIn(two, "ada")).player.id, signedIn.player.id)
      const list = yield* ask(() => two.identities.list())
      assert.deepStrictEqual(
        list.map(({ provider }) => provider),
        ["google"]
      )
    })
  )

  it.effect(
    "links a provider to a guest, who keeps its id, and refuses to unlink the last method",
    () =>
      Effect.gen(function* () {
        const client = yield* newClient
        const guest = yield* ask(() => client.sessions.guest({ displayName: "Bob" }))
        const { linked, player } = yield* signIn(client, "bob", true)
        assert.deepStrictEqual([linked, player.id, player.isGuest], [true, guest.id, false])
        const last = yield* rejection(() => client.identities.unlink("google"))
        assert.isTrue(isError(last, "last_login_method"))
        const other = yield* newClient
        yield* ask(() => other.sessions.guest())
        const { error } = yield* visit(other, "bob", { link: true })
        assert.strictEqual(error, "identity_already_linked")
      })
  )

  it.effect("completes a sign-in only with its own verifier, and once", () =>
    Effect.gen(function* () {
      const client = yield* newClient
      const { code, verifier } = yield* visit(client, "cleo")
      const stolen = yield* rejection(() => client.oauth.exchange(code, "x".repeat(43)))
      assert.isTrue(isError(stolen, "invalid_code"))
      const spent = yield* rejection(() => client.oauth.exchange(code, verifier))
      assert.isTrue(isError(spent, "invalid_code"))
      const { error } = yield* visit(client, "cleo", { answer: "no" })
      assert.strictEqual(error, "access_denied")
    })
  )

  it.effect("signs in and links with an id token of the device", () =>
    Effect.gen(function* () {
      const client = yield* newClient
      const guest = yield* ask(() => client.sessions.guest())
      const nonce = randomUUID()
      const token = { idToken: yield* idToken("dora", nonce), nonce, platform: "ios" } as const
      const linked = yield* ask(() => client.oauth.native("google", { ...token, link: true }))
      assert.deepStrictEqual([linked.linked, linked.player.id], [true, guest.id])
      const again = randomUUID()
      const other = yield* newClient
      const fresh = {
        idToken: yield* idToken("dora", again),
        nonce: again,
        platform: "ios"
      } as const
      const signedIn = yield* ask(() => other.oauth.native("google", fresh))
      assert.strictEqual(signedIn.player.id, guest.id)
      assert.strictEqual(other.sessions.player?.id, guest.id)
    })
  )

  it.effect("throws a TypeError for a popup sign-in without a page", () =>
    Effect.gen(function* () {
      const client = yield* newClient
      assert.instanceOf(yield* rejection(() => client.oauth.signIn("google")), TypeError)
      assert.isNull(yield* ask(() => client.oauth.result()))
      assert.isNull(client.email.opened())
    })
  )
})
