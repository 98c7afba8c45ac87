/** Every view of the dashboard in a real browser, on one service with players, bans and rooms. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import type { Page } from "playwright-core"
import { TestApp } from "#testing/app"
import { guest, request } from "#testing/players"
import { Chromium, installed, needsChromium } from "../../support/client/chromium.ts"
import { expectAccessible, openView, signedIn } from "../../support/dashboard/visitor.ts"
import { AppLive } from "../../support/service.ts"

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

/** Most bytes of the shell and the first view, compressed. */
const firstBytesMax = 120 * 1024

/** Views that a phone shows, each with a text of its content. */
const phoneViews = [
  ["Players", "Phil"],
  ["Live", "Runners"],
  ["Appeals", "Appeals"],
  ["Playground", "Online"],
  ["Config", "Cloud saves"],
  ["Sign-in", "Google"],
  ["Hosting", "Addresses"],
  ["Functions", "Functions are off"],
  ["Share", "Links with the most visits"],
  ["Keys", "Connect a game"],
  ["Audit log", "Every change by developers"],
  ["Project settings", "Rename"]
] as const

/** Opens a view by its name, and checks that it is accessible at the end. */
const visit = Effect.fnUntraced(function* (
  page: Page,
  name: string,
  use: () => Promise<unknown> = () => Promise.resolve()
) {
  yield* openView(page, name)
  yield* ask(use)
  yield* expectAccessible(page)
})

const heightOf = ({ clientHeight }: Element): number => clientHeight

const banned = Effect.gen(function* () {
  const { secretKey, url, ...app } = yield* TestApp
  const player = yield* guest({ url, secretKey, ...app }, "Mallory")
  const headers = { "x-svc-key": secretKey }
  yield* request(`${url}/v1/admin/players/${player.id}/ban`, { headers, body: { reason: "Bots" } })
  const appeal = { refreshToken: player.refreshToken, message: "It was my brother." }
  const key = { "x-svc-key": app.publishableKey }
  const answer = yield* request(`${url}/v1/auth/appeal`, { headers: key, body: appeal })
  assert.strictEqual(answer.status, 201)
})

layer(Layer.mergeAll(Chromium.layer, AppLive), {
  timeout: "120 seconds",
  excludeTestServices: true
})(`a view of the dashboard${needsChromium}`, (it) => {
  const test = (
    name: string,
    run: () => Effect.Effect<void, never, Chromium | TestApp | Scope.Scope>
  ) => it.effect.skipIf(!installed)(name, run, 240_000)

  test("plays: two players of the playground meet in a room that Live shows", () =>
    Effect.gen(function* () {
      const { complaints, page } = yield* signedIn()
      const ada = page.getByRole("region", { name: "Ada", exact: true })
      const bob = page.getByRole("region", { name: "Bob", exact: true })
      yield* visit(page, "Playground", async () => {
        await ada.getByText("Online").waitFor()
        await ada.getByRole("button", { name: "Create room" }).click()
        await ada.getByText("In room").waitFor()
        await bob.getByRole("button", { name: "Join", exact: true }).click()
        await bob.getByText("In room").waitFor()
        await ada.getByLabel("Message").fill("good game")
        await ada.getByRole("button", { name: "Send", exact: true }).click()
        const frames = bob.getByRole("region", { name: "Frames of Bob" })
        await frames.getByText("good game").waitFor()
        await bob.getByText("Send any frame").click()
        await bob.getByLabel("Type of frame").selectOption("setMyState")
        const frame = bob.getByLabel("Frame, as JSON")
        await frame.fill((await frame.inputValue()).replace(/"rid": "[^"]*"/, '"rid": "typed"'))
        await bob.getByRole("button", { name: "Send frame" }).click()
        await frames.getByText(/reply rid typed ok true/).click()
        await frames.getByText('rid "typed"').waitFor()
        await bob.getByText("The room as this player sees it").click()
        await bob.getByRole("button", { name: "Drop connection" }).click()
        await bob.getByText("closed").first().waitFor()
        await bob.getByText("Online").waitFor()
        await bob.getByText("In room").waitFor()
        // The guests of the last visit return to their seats.
        await page.reload()
        await ada.getByText("In room").waitFor()
        await bob.getByText("In room").waitFor()
      })
      const other = yield* ask(() => page.context().newPage())
      yield* ask(() => other.goto(page.url().replace(/playground.*/, "live")))
      yield* ask(() => other.getByRole("heading", { name: "1 room", exact: true }).waitFor())
      yield* ask(() => other.getByText("2 / ").waitFor())
      yield* ask(() =>
        other.getByRole("region", { name: "Runners" }).getByText("Running").waitFor()
      )
      yield* expectAccessible(other)
      yield* ask(async () => {
        await other.getByRole("region", { name: "1 room" }).getByRole("link").first().click()
        await other.getByRole("heading", { name: /^Room / }).waitFor()
        const members = other.getByRole("region", { name: "Members" })
        await members.getByRole("link", { name: "Ada" }).waitFor()
        await members.getByText("Connected").nth(1).waitFor()
        await ada.getByRole("button", { name: "Leave", exact: true }).click()
        await members.getByRole("link", { name: "Ada" }).waitFor({ state: "detached" })
        await bob.getByRole("button", { name: "Leave", exact: true }).click()
        await other.getByText("The room is closed.").waitFor()
      })
      yield* expectAccessible(other)
      assert.deepStrictEqual(complaints, [])
    }))

  test("shows the requests and errors of the last hour and day", () =>
    Effect.gen(function* () {
      const { publishableKey, url } = yield* TestApp
      for (let i = 0; i < 3; i++) {
        const headers = { "x-svc-key": publishableKey }
        assert.strictEqual((yield* request(`${url}/v1/saves`, { headers })).status, 401)
      }
      const { complaints, page } = yield* signedIn()
      const panel = page.getByRole("region", { name: "Requests", exact: true })
      yield* ask(async () => {
        const refused = /Requests, 60 minutes: Without error \d+, Refused \(4xx\) [1-9]\d*, Failed/
        await panel.getByRole("img", { name: refused }).waitFor()
        await panel.getByRole("button", { name: "24 hours" }).click()
        await panel.getByRole("img", { name: /Requests, 24 hours: .*4xx\) [1-9]/ }).waitFor()
      })
      assert.match(page.url(), /[?]requests=day$/)
      yield* expectAccessible(page)
      assert.deepStrictEqual(complaints, [])
    }))

  test("decides an appeal with a reply, which lifts the ban and is in the audit log", () =>
    Effect.gen(function* () {
      yield* banned
      const { complaints, page } = yield* signedIn()
      yield* visit(page, "Appeals", async () => {
        await page.getByText("It was my brother.").waitFor()
      })
      yield* ask(async () => {
        await page.getByLabel("Reply to Mallory").fill("Welcome back.")
        await page.getByRole("button", { name: "Accept and lift the ban" }).click()
        await page.getByText("The ban of Mallory is lifted.").waitFor()
        await page.getByText("Welcome back.").waitFor()
      })
      yield* visit(page, "Audit log", () => page.getByText("appeal.resolve").nth(1).waitFor())
      yield* ask(async () => {
        await page.getByLabel("Action").selectOption("player.export")
        await page.getByText("Nothing here").waitFor()
      })
      assert.deepStrictEqual(complaints, [])
    }))

  test("changes the config by a switch, in the editor, and back by the history", () =>
    Effect.gen(function* () {
      const { complaints, page } = yield* signedIn()
      const push = async () => {
        await page.getByRole("button", { name: "Push", exact: true }).click()
        await page.getByText("The config is in force.").first().waitFor()
        await page.getByRole("dialog").waitFor({ state: "detached" })
      }
      yield* visit(page, "Config", () => page.getByRole("switch").first().waitFor())
      yield* ask(async () => {
        await page.getByRole("switch", { name: /^Cloud saves/ }).click()
        await page.getByRole("region", { name: "Difference" }).waitFor()
        await push()
        await page.getByRole("switch", { name: /^Cloud saves/, checked: false }).waitFor()
        await page.getByRole("button", { name: "Document" }).click()
        await page
          .getByRole("textbox", { name: "Document" })
          .fill(`{ "version": 1, "features": 7 }`)
        await page.getByRole("button", { name: "Line 1" }).waitFor()
        await page.getByRole("textbox", { name: "Document" }).fill(`{ "version": 1 }`)
        await page.getByRole("button", { name: "Review and push" }).click()
      })
      yield* expectAccessible(page)
      yield* ask(async () => {
        await push()
        await page.getByRole("button", { name: "History" }).click()
        await page.getByText("Version 3").waitFor()
        await page.getByRole("button", { name: "Compare 1" }).click()
        await page.getByRole("button", { name: "Restore this version" }).click()
        await push()
        await page.getByText("Version 4").waitFor()
      })
      yield* expectAccessible(page)
      assert.deepStrictEqual(complaints, [])
    }))

  test("makes and revokes keys, stores credentials, says that links are off, renames the project", () =>
    Effect.gen(function* () {
      const { complaints, page } = yield* signedIn()
      yield* visit(page, "Keys", async () => {
        await page.getByRole("button", { name: "New secret key" }).click()
        await page
          .getByRole("dialog")
          .getByText(/^sk_[\w-]{43}$/)
          .waitFor()
        await page.keyboard.press("Escape")
        const revoke = page.getByRole("button", { name: /^Revoke sk_/ })
        await revoke.nth(1).click()
        await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click()
        await page.getByText("The key is revoked.").waitFor()
      })
      yield* visit(page, "Sign-in", async () => {
        const google = page.getByRole("region", { name: "Google" })
        await google.getByRole("button", { name: "Enter credentials" }).click()
        await page.getByLabel("Client id").fill("client-1")
        await page.getByLabel("Client secret").fill("secret-1")
        await page.getByRole("button", { name: "Store" }).click()
        await page.getByText("Stored, encrypted.").waitFor()
        await google.getByText("client-1").waitFor()
      })
      yield* visit(page, "Share", async () => {
        await page.getByLabel("Label").fill("Poster")
        await page.getByRole("button", { name: "New link" }).click()
        await page.getByRole("alert").getByText("share_links_disabled").waitFor()
      })
      yield* visit(page, "Hosting", () => page.getByText("Nothing is deployed").waitFor())
      yield* visit(page, "Project settings", async () => {
        await page.getByLabel("Name", { exact: true }).fill("Arena")
        await page.getByRole("button", { name: "Rename" }).click()
        await page.getByText("The project has its new name.").waitFor()
      })
      assert.deepStrictEqual(complaints, [])
    }))

  test("filters and orders the players, with their number", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      for (const name of ["Zed", "Abe"]) yield* guest(app, name)
      const { complaints, page } = yield* signedIn()
      const players = page.getByRole("region", { name: "Players", exact: true })
      yield* visit(page, "Players", async () => {
        await players.getByRole("link", { name: "Zed" }).waitFor()
        await players.getByText(/^\d+ players$/).waitFor()
        await players.getByLabel("Order").selectOption("By name")
        await page.waitForURL(/sort=name$/)
        await players.getByRole("row").nth(1).getByText("Abe").waitFor()
        await players.getByRole("button", { name: "Guests" }).click()
        await players.getByRole("link", { name: "Zed" }).waitFor()
        await players.getByRole("button", { name: "Signed in" }).click()
        await players.getByText("0 players").waitFor()
        await players.getByRole("button", { name: "Show all players" }).click()
        await players.getByRole("link", { name: "Zed" }).waitFor()
      })
      // What a list says about times grows old with it, though nothing is read again.
      yield* ask(async () => {
        await page.clock.install()
        await page.reload()
        await players.getByRole("link", { name: "Zed" }).waitFor()
        await page.clock.fastForward("02:30:00")
        await players.getByText("3 hours ago").first().waitFor()
      })
      assert.deepStrictEqual(complaints, [])
    }))

  test("fits the views on a phone, where the navigation is a sheet", () =>
    Effect.gen(function* () {
      const viewport = { width: 390, height: 844 }
      yield* guest(yield* TestApp, "Phil")
      const { complaints, page } = yield* signedIn({ viewport })
      const expectFits = (name: string) =>
        Effect.map(
          ask(() => page.evaluate(() => document.documentElement.scrollWidth)),
          (width) => assert.isAtMost(width, viewport.width, name)
        )
      yield* ask(() => page.getByText("Some seconds behind.").waitFor())
      yield* expectFits("Overview")
      for (const [name, content] of phoneViews) {
        yield* ask(() => page.getByRole("button", { name: "Views" }).click())
        yield* visit(page, name, () => page.locator("#main").getByText(content).first().waitFor())
        yield* expectFits(name)
      }
      assert.isAtMost(yield* ask(() => page.locator("header.top").evaluate(heightOf)), 60)
      yield* ask(() => page.goto(page.url().replace(/settings$/, "config")))
      yield* ask(async () => {
        await page.getByRole("switch", { name: /^Cloud saves/ }).click()
        await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click()
      })
      assert.deepStrictEqual(complaints, [])
    }))

  test("finds a player by Ctrl+K", () =>
    Effect.gen(function* () {
      yield* guest(yield* TestApp, "Zoe")
      const { page } = yield* signedIn()
      yield* ask(async () => {
        await page.keyboard.press("Control+k")
        await page.getByRole("textbox", { name: "Search" }).fill("Zoe")
        await page.getByRole("dialog").getByRole("link", { name: /Zoe/ }).click()
        await page.getByRole("heading", { name: "Zoe", level: 1 }).waitFor()
      })
    }))

  test("says why a view failed, with the request id, and tries again", () =>
    Effect.gen(function* () {
      const { page } = yield* signedIn()
      yield* ask(async () => {
        const refuse = (url: URL) => url.pathname.endsWith("/share/stats")
        await page.route(refuse, (route) =>
          route.fulfill({
            status: 503,
            headers: { "x-request-id": "req-7" },
            json: { error: { code: "unavailable", message: "The database is away." } }
          })
        )
        await page.getByRole("link", { name: "Share", exact: true }).click()
        await page.getByText("The database is away.").waitFor()
        await page.getByText("req-7").waitFor()
        await page.unroute(refuse)
        await page.getByRole("button", { name: "Try again" }).click()
        await page.getByText("Links with the most visits").waitFor()
      })
    }))

  test("loads the shell and the first view in less than 120 KB", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      const { page } = yield* signedIn()
      const names = yield* ask(() =>
        page.evaluate(() =>
          performance
            .getEntriesByType("resource")
            .flatMap(({ name }) => (name.includes("/dashboard/files/") ? [name] : []))
        )
      )
      assert.isAtLeast(names.length, 3)
      let bytes = 0
      for (const name of names) {
        assert.isTrue(name.startsWith(url), name)
        const body = yield* ask(async () => (await page.request.get(name)).headers())
        bytes += Number(body["content-length"])
      }
      assert.isAtMost(bytes, firstBytesMax)
    }))
})
