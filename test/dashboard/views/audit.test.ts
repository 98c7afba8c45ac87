/** The audit log in a real browser: what an entry changed. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestApp } from "#testing/app"
import { request } from "#testing/players"
import { Chromium, installed, needsChromium } from "../../support/client/chromium.ts"
import { expectAccessible, openView, signedIn } from "../../support/dashboard/visitor.ts"
import { AppLive } from "../../support/service.ts"

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

/** Pushes a config with the secret key; returns its version. */
const push = Effect.fnUntraced(function* (body: object) {
  const { secretKey, url } = yield* TestApp
  const headers = { "x-svc-key": secretKey }
  const answer = yield* request(`${url}/v1/config`, { method: "PUT", headers, body })
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return Number(Object(answer.body).configVersion)
})

layer(Layer.mergeAll(Chromium.layer, AppLive), {
  timeout: "120 seconds",
  excludeTestServices: true
})(`the audit log${needsChromium}`, (it) => {
  it.effect.skipIf(!installed)(
    "shows what a push and a new name changed",
    () =>
      Effect.gen(function* () {
        yield* push({ version: 1, audience: "general" })
        const version = yield* push({ version: 1, audience: "mixed" })
        const { complaints, page } = yield* signedIn()
        const dialog = page.getByRole("dialog")
        yield* openView(page, "Project settings")
        for (const [index, name] of ["Duel", "Arena"].entries()) {
          yield* ask(async () => {
            await page.getByLabel("Name", { exact: true }).fill(name)
            await page.getByRole("button", { name: "Rename" }).click()
            await page.getByText("The project has its new name.").nth(index).waitFor()
          })
        }
        yield* openView(page, "Audit log")
        yield* ask(() =>
          page
            .getByRole("button", { name: `What version ${version} of the config changed` })
            .click()
        )
        const difference = dialog.getByRole("region", { name: "What changed" })
        yield* ask(() => difference.waitFor())
        const text = yield* ask(() => difference.innerText())
        assert.match(text, /-\s+"audience": "general"/)
        assert.match(text, /\+\s+"audience": "mixed"/)
        yield* expectAccessible(page)
        yield* ask(async () => {
          await page.keyboard.press("Escape")
          await page.getByLabel("Scope").selectOption("all")
        })
        const renamed = page.getByRole("listitem").filter({ hasText: "project.rename" })
        const name = renamed.first().getByRole("region", { name: "What changed" })
        assert.match(yield* ask(() => name.innerText()), /- Duel\n\+ Arena/)
        yield* expectAccessible(page)
        assert.deepStrictEqual(complaints, [])
      }),
    240_000
  )
})
