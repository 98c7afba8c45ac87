/** A developer in front of the dashboard, in a real browser. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { BrowserContextOptions, Page } from "playwright-core"
import { TestApp } from "#testing/app"
import { at } from "#testing/players"
import { newVisitor } from "../client/chromium.ts"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

const rules = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]

/** A page of the dashboard, and what the browser complained about. */
export interface DashboardPage {
  readonly page: Page
  /** Errors of scripts and of the content security policy. */
  readonly complaints: ReadonlyArray<string>
}

/** Opens the dashboard without a session. */
export const opened = Effect.fnUntraced(function* (
  path: string,
  options: BrowserContextOptions = {}
) {
  const { url } = yield* TestApp
  // Colours that are still changing have no contrast to measure.
  const visitor = yield* newVisitor({ reducedMotion: "reduce", ...options })
  return yield* Effect.promise(async (): Promise<DashboardPage> => {
    const page = await visitor.newPage()
    const complaints: Array<string> = []
    page.on("pageerror", (error) => complaints.push(String(error)))
    page.on("console", (message) => {
      if (/Content Security Policy|Refused/.test(message.text())) complaints.push(message.text())
    })
    await page.goto(url + path)
    return { page, complaints }
  })
})

/** Signs in with the form, as the demo's developer. */
export const signIn = Effect.fnUntraced(function* (page: Page) {
  const { developer } = yield* TestApp
  yield* Effect.promise(async () => {
    await page.getByLabel("Email").fill(developer.email)
    await page.getByLabel("Password").fill(developer.password)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.locator("#main").waitFor()
  })
})

/** Opens the dashboard and signs in. */
export const signedIn = Effect.fnUntraced(function* (options: BrowserContextOptions = {}) {
  const dashboard = yield* opened("/dashboard", options)
  yield* signIn(dashboard.page)
  return dashboard
})

/** Opens a view by the navigation and waits for its title. */
export const openView = (page: Page, name: string) =>
  Effect.promise(async () => {
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name }).click()
    await page.getByRole("heading", { name, level: 1 }).waitFor()
  })

/** Fails for every rule of WCAG 2.2 AA that the page violates, in the light and in the dark theme. */
export const expectAccessible = (page: Page) =>
  Effect.promise(async () => {
    // The page's policy refuses a script tag; the debugger's channel is not bound to it.
    await page.evaluate(axe)
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme })
      const result: unknown = await page.evaluate(`axe.run({ runOnly: ${JSON.stringify(rules)} })`)
      const found = at(result, "violations")
      const texts = (Array.isArray(found) ? found : []).map(
        (violation) =>
          `${String(at(violation, "id"))} in ${colorScheme}: ${String(at(violation, "help"))} ` +
          JSON.stringify(at(violation, "nodes", "0", "html"))
      )
      assert.deepStrictEqual(texts, [], page.url())
    }
  })
