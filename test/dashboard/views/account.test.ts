/** The developer's own account in a real browser: password, sign-in with GitHub, and the sign-out. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, type Scope } from "effect"
import type { Page } from "playwright-core"
import { ProviderBaseUrls } from "#server/features/oauth/definitions"
import { TestApp } from "#testing/app"
import { freePort } from "#testing/runners"
import { Chromium, installed, needsChromium } from "../../support/client/chromium.ts"
import { expectAccessible, opened, signedIn } from "../../support/dashboard/visitor.ts"
import { type Github, startGithub } from "../../support/oauth/github.ts"
import { DatabaseLive } from "../../support/service.ts"

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

class Hub extends Context.Service<Hub, { readonly github: Github; readonly port: number }>()(
  "test/dashboard/views/account/Hub"
) {
  static readonly layer = Layer.effect(
    Hub,
    Effect.gen(function* () {
      const port = yield* freePort
      const callbackUrl = `http://127.0.0.1:${port}/v1/developers/oauth/github/callback`
      return { port, github: yield* startGithub(callbackUrl) }
    })
  )
}

/** The service at the address that GitHub leads back to. */
const App = Layer.unwrap(
  Effect.map(Hub, ({ github, port }) =>
    TestApp.layerWith({
      PORT: `${port}`,
      SVC_BASE_URL: `http://127.0.0.1:${port}`,
      SVC_SIGNUPS: "open",
      SVC_DEVELOPER_GITHUB_CLIENT_ID: github.clientId,
      SVC_DEVELOPER_GITHUB_CLIENT_SECRET: github.clientSecret
    }).pipe(Layer.provide(Layer.succeed(ProviderBaseUrls, { github: github.url })))
  )
).pipe(Layer.provide(DatabaseLive), Layer.provideMerge(Hub.layer))

const openAccount = (page: Page) =>
  Effect.promise(async () => {
    await page.getByLabel("Account", { exact: true }).click()
    await page.getByRole("group").getByRole("link", { name: "Your account" }).click()
    await page.getByRole("heading", { name: "Your account", level: 1 }).waitFor()
  })

layer(Layer.mergeAll(Chromium.layer, App), {
  timeout: "120 seconds",
  excludeTestServices: true
})(`the account of a developer${needsChromium}`, (it) => {
  const test = (
    name: string,
    run: () => Effect.Effect<void, never, Chromium | Hub | TestApp | Scope.Scope>
  ) => it.effect.skipIf(!installed)(name, run, 240_000)

  test("changes the password, which ends other sessions, and back", () =>
    Effect.gen(function* () {
      const { developer } = yield* TestApp
      const { page: other } = yield* signedIn()
      const { complaints, page } = yield* signedIn()
      yield* openAccount(page)
      yield* expectAccessible(page)
      const change = async (from: string, to: string) => {
        await page.getByLabel("Current password").fill(from)
        await page.getByLabel("New password").fill(to)
        await page.getByRole("button", { name: "Change password" }).click()
      }
      yield* ask(async () => {
        await change("not the password", "a password that is new")
        await page.getByRole("alert").getByText("invalid_credentials").waitFor()
        await change(developer.password, "a password that is new")
        await page.getByText("The password is changed.").waitFor()
        assert.strictEqual(await page.getByLabel("Current password").inputValue(), "")
        await other.reload()
        await other.getByRole("heading", { name: "Sign in" }).waitFor()
        await change("a password that is new", developer.password)
        await page.getByText("The password is changed.").nth(1).waitFor()
      })
      assert.deepStrictEqual(complaints, [])
    }))

  test("links GitHub, and unlinks it for who knows the password", () =>
    Effect.gen(function* () {
      const { developer } = yield* TestApp
      const { complaints, page } = yield* signedIn()
      const dialog = page.getByRole("dialog")
      yield* openAccount(page)
      yield* ask(async () => {
        await page.getByRole("button", { name: "Link GitHub" }).click()
        await page.getByText("GitHub is linked.").waitFor()
        await page.getByRole("button", { name: "Unlink GitHub" }).waitFor()
      })
      assert.strictEqual(new URL(page.url()).pathname, "/dashboard/account")
      assert.strictEqual(new URL(page.url()).hash, "")
      yield* ask(async () => {
        await page.getByRole("button", { name: "Unlink GitHub" }).click()
        await dialog.getByLabel("Current password").fill("not the password")
        await dialog.getByRole("button", { name: "Unlink GitHub" }).click()
        await dialog.getByRole("alert").getByText("invalid_credentials").waitFor()
      })
      yield* expectAccessible(page)
      yield* ask(async () => {
        await dialog.getByLabel("Current password").fill(developer.password)
        await dialog.getByRole("button", { name: "Unlink GitHub" }).click()
        await page.getByText("GitHub is unlinked.").waitFor()
        await page.getByRole("button", { name: "Link GitHub" }).waitFor()
      })
      assert.deepStrictEqual(complaints, [])
    }))

  test("says when GitHub refused to link an account", () =>
    Effect.gen(function* () {
      const { github } = yield* Hub
      const { page } = yield* signedIn()
      yield* openAccount(page)
      github.declines = true
      yield* ask(async () => {
        await page.getByRole("button", { name: "Link GitHub" }).click()
        await page.getByRole("alert").getByText("access_denied").waitFor()
        await page.getByRole("button", { name: "Link GitHub" }).waitFor()
      })
      yield* expectAccessible(page)
      github.declines = false
    }))

  test("sets a first password after another sign-in with GitHub, and signs out", () =>
    Effect.gen(function* () {
      const { github } = yield* Hub
      const email = "grace@example.com"
      github.user = { id: 77, login: "grace", emails: [{ email, primary: true, verified: true }] }
      const { complaints, page } = yield* opened("/dashboard")
      yield* ask(async () => {
        await page.getByRole("button", { name: "Continue with GitHub" }).click()
        await page.getByRole("heading", { name: "Projects", level: 1 }).waitFor()
      })
      yield* openAccount(page)
      yield* expectAccessible(page)
      yield* ask(async () => {
        await page.getByRole("button", { name: "Continue with GitHub" }).click()
        await page.getByText("You have shown that it is you.").waitFor()
        await page.getByLabel("New password").fill("a first password")
        await page.getByRole("button", { name: "Set password" }).click()
        await page.getByText("The password is changed.").waitFor()
        await page.getByRole("main").getByRole("button", { name: "Sign out" }).click()
        await page.getByLabel("Email").fill(email)
        await page.getByLabel("Password").fill("a first password")
        await page.getByRole("button", { name: "Sign in" }).click()
        await page.getByRole("heading", { name: "Your account", level: 1 }).waitFor()
      })
      assert.deepStrictEqual(complaints, [])
    }))
})
