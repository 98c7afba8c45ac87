/**
 * The typed client in real browser pages: sign-in with a real OpenID provider by popup and by redirect,
 * mail links, and two tabs that share one session.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import type { BrowserContext, Page } from "playwright-core"
import type { Client, MailLink, optInBox, ProviderSignIn } from "#client/client"
import { Chromium, installed, needsChromium, newVisitor } from "../support/client/chromium.ts"
import { GamePages } from "../support/client/game-pages.ts"
import { SignInAppLive } from "../support/client/sign-in-app.ts"

declare global {
  /** Globals that the game's pages set for the test. */
  interface Window {
    readonly client: Client
    readonly optInBox: typeof optInBox
    readonly mail: MailLink | null
    readonly returned: Promise<ProviderSignIn | null>
    readonly signingIn: Promise<ProviderSignIn>
  }
}

const inAppBrowser =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
  "Mobile/15E148 Twitter for iPhone/11.20"

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

const opened = Effect.fnUntraced(function* (visitor: BrowserContext, path = "/") {
  const { url } = yield* GamePages
  const page = yield* ask(() => visitor.newPage())
  yield* ask(() => page.goto(url + path))
  yield* ask(() => page.waitForFunction(() => document.title === "Ready"))
  return page
})

/** Clicks the page's button and returns the popup that it opens. */
const clicked = (visitor: BrowserContext, page: Page) =>
  ask(async () => {
    const popup = visitor.waitForEvent("page")
    await page.click("button")
    return popup
  })

/** Signs in at the provider's page with this account. */
const consent = (page: Page, account: string) =>
  ask(async () => {
    await page.fill("input", account)
    await page.click("#continue")
  })

/** Waits for the result of the started sign-in: a player or an error. */
const outcome = (page: Page) =>
  ask(() =>
    page.evaluate(() =>
      window.signingIn.then(
        ({ linked, player, provider }) => ({ id: player.id, linked, provider }),
        (error: { readonly code: string; readonly details?: { readonly reason: string } }) => ({
          error: error.code,
          ...(error.details === undefined ? {} : { reason: error.details.reason })
        })
      )
    )
  )

const signIn = Effect.fnUntraced(function* (visitor: BrowserContext, page: Page, account: string) {
  const popup = yield* clicked(visitor, page)
  const gone = popup.waitForEvent("close")
  yield* consent(popup, account)
  const signedIn = yield* outcome(page)
  yield* ask(() => gone)
  return "id" in signedIn ? signedIn : assert.fail(JSON.stringify(signedIn))
})

const playerOf = (page: Page) =>
  ask(() => page.evaluate(() => window.client.sessions.player?.id ?? null))

/** Waits until a tab shows this player, or no player. */
const shows = (page: Page, id: string | null) =>
  ask(() => page.waitForFunction((id) => (window.client.sessions.player?.id ?? null) === id, id))

/** Expires the stored access token and reloads the page. */
const expired = (page: Page) =>
  ask(async () => {
    await page.evaluate(() => {
      for (const [name, text] of Object.entries(localStorage)) {
        localStorage.setItem(name, JSON.stringify({ ...JSON.parse(text), expiresAt: 0 }))
      }
    })
    await page.reload()
    await page.waitForFunction(() => document.title === "Ready")
  })

/** Two tabs ask for a token at once: the first refresh completes when the other waits for the lock. */
const inTurn = (visitor: BrowserContext, [one, two]: readonly [Page, Page]) =>
  ask(async () => {
    const asked = Promise.withResolvers<void>()
    const inLine = Promise.withResolvers<void>()
    await visitor.route("**/v1/auth/refresh", async (route) => {
      asked.resolve()
      await inLine.promise
      await route.continue()
    })
    const token = (page: Page) => page.evaluate(() => window.client.sessions.accessToken())
    const tokens = Promise.all([token(one), token(two)])
    await asked.promise
    const waiting = async () => (await navigator.locks.query()).pending?.length ?? 0
    while ((await one.evaluate(waiting)) === 0) continue
    inLine.resolve()
    return tokens
  })

const BrowserLive = Layer.mergeAll(Chromium.layer, GamePages.layer).pipe(
  Layer.provide(SignInAppLive)
)

layer(BrowserLive, { timeout: "120 seconds", excludeTestServices: true })(
  `a page in Chromium${needsChromium}`,
  (it) => {
    const test = (
      name: string,
      run: () => Effect.Effect<void, never, Chromium | GamePages | Scope.Scope>
    ) => it.effect.skipIf(!installed)(name, run, 120_000)

    test("signs in through a popup and closes it", () =>
      Effect.gen(function* () {
        const visitor = yield* newVisitor()
        const page = yield* opened(visitor)
        const { url } = yield* GamePages
        const { id, linked, provider } = yield* signIn(visitor, page, "ada")
        assert.deepStrictEqual([linked, provider], [false, "google"])
        assert.strictEqual(yield* playerOf(page), id)
        assert.strictEqual(page.url(), `${url}/`)
        const again = yield* newVisitor()
        const elsewhere = yield* opened(again)
        assert.strictEqual((yield* signIn(again, elsewhere, "ada")).id, id)
      }))

    test("links a provider to a guest of an isolated page", () =>
      Effect.gen(function* () {
        const visitor = yield* newVisitor()
        const page = yield* opened(visitor, "/isolated")
        assert.isTrue(yield* ask(() => page.evaluate(() => crossOriginIsolated)))
        const guest = yield* ask(() =>
          page.evaluate(async () => {
            const begin = () => window.client.oauth.link("google", { redirectUrl: "/signed-in" })
            Object.assign(window, { begin })
            return (await window.client.sessions.guest()).id
          })
        )
        const popup = yield* clicked(visitor, page)
        yield* ask(() => popup.waitForSelector("#continue"))
        assert.isNull(yield* ask(() => popup.evaluate(() => window.opener)))
        yield* consent(popup, "bob")
        const linked = yield* outcome(page)
        assert.deepStrictEqual(linked, { id: guest, linked: true, provider: "google" })
      }))

    for (const link of [false, true]) {
      test(`${link ? "links" : "signs in with"} a provider whose pages cut the popup off, after it seemed closed`, () =>
        Effect.gen(function* () {
          const visitor = yield* newVisitor()
          const page = yield* opened(visitor)
          const guest = yield* ask(() =>
            page.evaluate(async (link) => {
              if (!link) return null
              const begin = () => window.client.oauth.link("google", { redirectUrl: "/signed-in" })
              Object.assign(window, { begin })
              return (await window.client.sessions.guest()).id
            }, link)
          )
          yield* ask(() =>
            page.evaluate(() => {
              const { fetch } = window
              window.fetch = async (input, init) => {
                const response = await fetch(input, init)
                if (!String(input).endsWith("/start")) return response
                const { url }: { readonly url: string } = await response.json()
                return Response.json({ url: `${location.origin}/cut-off#${url}` })
              }
            })
          )
          const popup = yield* clicked(visitor, page)
          yield* ask(() => popup.waitForSelector("#continue"))
          assert.isNull(yield* ask(() => popup.evaluate(() => window.opener)))
          assert.deepStrictEqual(yield* outcome(page), { error: "popup_closed" })
          yield* consent(popup, link ? "dora" : "emil")
          yield* ask(() =>
            page.waitForFunction(async () => {
              if (window.client.sessions.player === null) return false
              return (await window.client.identities.list()).length === 1
            })
          )
          if (link) assert.strictEqual(yield* playerOf(page), guest)
        }))
    }

    test("rejects with a code for a declined, closed or blocked popup", () =>
      Effect.gen(function* () {
        const visitor = yield* newVisitor()
        const page = yield* opened(visitor)
        const declined = yield* clicked(visitor, page)
        yield* ask(() => declined.click("#cancel"))
        assert.deepStrictEqual(yield* outcome(page), {
          error: "oauth_failed",
          reason: "access_denied"
        })
        const closed = yield* clicked(visitor, page)
        yield* ask(() => closed.waitForSelector("#continue"))
        yield* ask(() => closed.close())
        assert.deepStrictEqual(yield* outcome(page), { error: "popup_closed" })
        yield* ask(() =>
          page.evaluate(() => {
            window.open = () => null
          })
        )
        yield* ask(() => page.click("button"))
        assert.deepStrictEqual(yield* outcome(page), { error: "popup_blocked" })
        assert.isNull(yield* playerOf(page))
      }))

    test("signs in by redirect in the in-app browser of X, and returns the result once", () =>
      Effect.gen(function* () {
        const { url } = yield* GamePages
        const visitor = yield* newVisitor({ userAgent: inAppBrowser })
        const page = yield* opened(visitor, "/?level=3")
        yield* ask(() =>
          page.evaluate(() => {
            void window.client.oauth.signIn("google")
          })
        )
        yield* ask(() => page.waitForSelector("#continue"))
        yield* consent(page, "cleo")
        yield* ask(() => page.waitForFunction(() => document.title === "Ready"))
        const result = yield* ask(() => page.evaluate(() => window.returned))
        assert.deepStrictEqual([result?.provider, result?.linked], ["google", false])
        assert.strictEqual(yield* playerOf(page), result?.player.id)
        assert.strictEqual(page.url(), `${url}/?level=3`)
        yield* ask(() => page.reload())
        yield* ask(() => page.waitForFunction(() => document.title === "Ready"))
        assert.isNull(yield* ask(() => page.evaluate(() => window.returned)))
        assert.strictEqual(
          yield* ask(() => page.evaluate(async () => (await window.client.sessions.resume())?.id)),
          result?.player.id
        )
      }))

    test("removes the token of a mail link from the page's address", () =>
      Effect.gen(function* () {
        const { url } = yield* GamePages
        const visitor = yield* newVisitor()
        const page = yield* opened(visitor, "/?from=mail#svc_reset=abc-123")
        assert.deepStrictEqual(yield* ask(() => page.evaluate(() => window.mail)), {
          purpose: "reset",
          token: "abc-123"
        })
        assert.strictEqual(page.url(), `${url}/?from=mail`)
      }))

    test("asks about news in the page's language, and never a child", () =>
      Effect.gen(function* () {
        const visitor = yield* newVisitor()
        const page = yield* opened(visitor)
        const asked = yield* ask(() =>
          page.evaluate(async () => {
            const { client, optInBox } = window
            const element = document.body.appendChild(document.createElement("div"))
            const draw = (options?: object) => optInBox(element, client, options)
            await draw({ language: "pt-BR" })
            const portuguese = element.textContent
            await draw({ text: "Our letter?" })
            const own = element.innerHTML
            const box = await draw()
            const before = client.sessions.player
            await client.sessions.guest()
            await client.ages.declare("adult")
            const unchecked = await box.submit()
            element.querySelector("label")?.click()
            const checked = await box.submit()
            const german = element.innerHTML
            await client.ages.declare("child")
            const child = await draw()
            const stored = await child.submit()
            const off = { ...client, news: { ...client.news, enabled: async () => false } }
            const { shown } = await optInBox(element, off)
            const rest = element.innerHTML
            return {
              portuguese,
              own,
              before,
              unchecked,
              checked,
              german,
              child: child.shown,
              stored,
              shown,
              rest
            }
          })
        )
        assert.deepStrictEqual(asked, {
          portuguese: " Quero receber novidades por e-mail",
          own: '<label dir="auto"><input type="checkbox"> Our letter?</label>',
          before: null,
          unchecked: false,
          checked: true,
          german:
            '<label lang="de" dir="auto"><input type="checkbox"> Neuigkeiten per E-Mail erhalten</label>',
          child: false,
          stored: false,
          shown: false,
          rest: ""
        })
      }))

    test("shares refresh, player and sign-out between two tabs", () =>
      Effect.gen(function* () {
        const visitor = yield* newVisitor()
        const one = yield* opened(visitor)
        const two = yield* opened(visitor)
        const { id } = yield* signIn(visitor, one, "dora")
        yield* shows(two, id)
        yield* expired(one)
        yield* expired(two)
        const refreshes: Array<number> = []
        visitor.on("response", (response) => {
          if (response.url().endsWith("/v1/auth/refresh")) refreshes.push(response.status())
        })
        const tokens = yield* inTurn(visitor, [one, two])
        assert.strictEqual(tokens[0], tokens[1])
        // The second tab may not see the first tab's write yet, and then gets `refresh_race`.
        assert.deepStrictEqual(
          refreshes.filter((status) => status !== 409),
          [200]
        )
        for (const page of [one, two]) {
          const me = yield* ask(() => page.evaluate(() => window.client.players.me()))
          assert.strictEqual(me.id, id)
          yield* ask(() => page.evaluate(() => window.client.ping()))
        }
        const next = yield* signIn(visitor, two, "eve")
        yield* shows(one, next.id)
        yield* ask(() => one.evaluate(() => window.client.sessions.logout()))
        yield* shows(two, null)
      }))
  }
)
