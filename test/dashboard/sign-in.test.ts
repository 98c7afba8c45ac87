/** The dashboard in a real browser, the short form: sign-in, overview, one list, and accessibility. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { TestApp } from "#testing/app"
import { guest } from "#testing/players"
import { Chromium, installed, needsChromium } from "../support/client/chromium.ts"
import {
  expectAccessible,
  opened,
  openView,
  signedIn,
  signIn
} from "../support/dashboard/visitor.ts"
import { AppLive } from "../support/service.ts"

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

layer(Layer.mergeAll(Chromium.layer, AppLive), {
  timeout: "120 seconds",
  excludeTestServices: true
})(`the dashboard in Chromium${needsChromium}`, (it) => {
  const test = (
    name: string,
    run: () => Effect.Effect<void, never, Chromium | TestApp | Scope.Scope>,
    options: { readonly tags?: "long" } = {}
  ) => it.effect.skipIf(!installed)(name, run, { timeout: 120_000, ...options })

  test("signs in, shows the overview, and keeps the session over a reload", () =>
    Effect.gen(function* () {
      const { complaints, page } = yield* opened("/dashboard")
      yield* ask(() => page.getByRole("heading", { name: "Sign in" }).waitFor())
      yield* expectAccessible(page)
      yield* ask(async () => {
        await page.getByLabel("Email").fill("demo@localhost")
        await page.getByLabel("Password").fill("not the password")
        await page.getByRole("button", { name: "Sign in" }).click()
        await page.getByRole("alert").getByText("invalid_credentials").waitFor()
      })
      yield* signIn(page)
      yield* ask(() => page.getByRole("heading", { name: "Overview" }).waitFor())
      assert.match(new URL(page.url()).pathname, /^\/dashboard\/[\w-]+\/development\/overview$/)
      yield* expectAccessible(page)
      yield* ask(() => page.reload())
      yield* ask(() => page.getByText("Daily active players").first().waitFor())
      const readable = yield* ask(() =>
        page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage }))
      )
      assert.notInclude(readable, "kds_")
      yield* ask(async () => {
        await page.getByLabel("Account", { exact: true }).click()
        await page.getByRole("button", { name: "Sign out" }).click()
        await page.getByRole("heading", { name: "Sign in" }).waitFor()
      })
      assert.deepStrictEqual(complaints, [])
    }))

  test(
    "shows the first player when it comes, finds it, and bans it",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const { complaints, page } = yield* signedIn()
        yield* openView(page, "Players")
        yield* ask(() => page.getByText("No player yet").waitFor())
        yield* expectAccessible(page)
        yield* guest(app, "Ada")
        yield* ask(() => page.getByRole("link", { name: "Ada" }).waitFor())
        yield* expectAccessible(page)
        yield* ask(async () => {
          await page.getByLabel("Search by id").fill("nobody")
          await page.getByText("No player matches").waitFor()
          await page.getByRole("button", { name: "Show all players" }).click()
          await page.getByRole("link", { name: "Ada" }).click()
          await page.getByRole("button", { name: "Ban", exact: true }).click()
          await page.getByLabel("Reason").fill("Cheated")
          await page.getByRole("dialog").getByRole("button", { name: "Ban" }).click()
          await page.getByText("Ada is banned.").waitFor()
          await page.getByText("player.ban", { exact: true }).waitFor()
        })
        yield* expectAccessible(page)
        yield* ask(async () => {
          await page.getByRole("button", { name: "Undo" }).click()
          await page.getByText("The ban of Ada is lifted.").waitFor()
        })
        assert.deepStrictEqual(complaints, [])
      }),
    { tags: "long" }
  )
})
