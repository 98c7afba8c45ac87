/** The view of Functions in a real browser, with code that runs. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import type { SqlClient } from "effect/sql"
import type { Page } from "playwright-core"
import { TestApp } from "#testing/app"
import { at, request } from "#testing/players"
import { Chromium, installed, needsChromium } from "../../support/client/chromium.ts"
import { expectAccessible, openView, signedIn } from "../../support/dashboard/visitor.ts"
import { call, deploy, enable } from "../../support/function-calls.ts"
import { addDeadLetterOf } from "../../support/dead-letters.ts"
import { appWithSql } from "../../support/devices.ts"

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

const code = (name: string) => `export default {
  async fetch(request, env) {
    console.log("${name} was called")
    console.error("${name} has a problem")
    return new Response("${name}")
  }
}`

const bindings = [
  { name: "DB", type: "db" },
  { name: "API_KEY", type: "secret" }
]

const tab = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click()

const secret = "a value that nobody sees again"

const deployVersion = (name: string) =>
  Effect.flatMap(TestApp, (app) =>
    deploy(app, { bindings, message: name, crons: ["*/5 * * * *"] }, code(name))
  )

/** Calls the live version; returns what it answers. */
const callCode = Effect.gen(function* () {
  const app = yield* TestApp
  const { body } = yield* call(app, "GET")
  // The service believes to be at its base URL.
  const url = String(at(body, "url")).replace("http://localhost:8080", app.url)
  return (yield* request(url, { method: "GET" })).body
})

/** Opens the view with a live version. */
const openedView = Effect.gen(function* () {
  const app = yield* TestApp
  yield* enable(app)
  yield* deployVersion("one")
  const { complaints, page } = yield* signedIn()
  yield* openView(page, "Functions")
  return { app, complaints, dialog: page.getByRole("dialog"), page }
})

layer(Layer.mergeAll(Chromium.layer, appWithSql()), {
  timeout: "120 seconds",
  excludeTestServices: true
})(`the view of Functions${needsChromium}`, (it) => {
  const test = (
    name: string,
    run: () => Effect.Effect<void, never, Chromium | SqlClient.SqlClient | TestApp | Scope.Scope>
  ) => it.effect.skipIf(!installed)(name, run, 240_000)

  test("turns functions on, changes their limits, and goes back a version", () =>
    Effect.gen(function* () {
      const { complaints, page } = yield* signedIn()
      const dialog = page.getByRole("dialog")
      yield* openView(page, "Functions")
      yield* ask(() => page.getByText("Functions are off").waitFor())
      yield* expectAccessible(page)
      yield* ask(async () => {
        await page.getByRole("button", { name: "Turn on" }).click()
        await page.getByText("Functions are on.").waitFor()
        await page.getByText("nothing yet").waitFor()
        await page.getByRole("button", { name: "Change limits" }).click()
        await page.getByLabel("CPU time of a call").fill("0")
        await page.getByRole("button", { name: "Save" }).click()
        await dialog.getByRole("alert").getByText("invalid_request").waitFor()
        await page.getByLabel("CPU time of a call").fill("1200")
        await page.getByRole("button", { name: "Save" }).click()
        await page.getByText("1,200 ms").waitFor()
      })
      yield* deployVersion("first")
      yield* deployVersion("second")
      assert.strictEqual(yield* callCode, "second")
      yield* ask(async () => {
        await page.reload()
        await page.getByText("Version 2").waitFor()
        await page.getByText(/^next/).waitFor()
        await page.getByRole("cell", { name: "DB" }).waitFor()
      })
      yield* expectAccessible(page)
      yield* ask(async () => {
        await tab(page, "Versions")
        await page.getByRole("button", { name: "Make version 1 live" }).click()
        await dialog.getByRole("region", { name: /^Modules/ }).waitFor()
      })
      yield* expectAccessible(page)
      yield* ask(async () => {
        await dialog.getByRole("button", { name: "Make live" }).click()
        await page.getByText("Version 1 is live.").waitFor()
      })
      yield* expectAccessible(page)
      assert.strictEqual(yield* callCode, "first")
      assert.deepStrictEqual(complaints, [])
    }))

  test("shows log lines as they come, filters them, and pauses", () =>
    Effect.gen(function* () {
      const { complaints, page } = yield* openedView
      yield* callCode
      yield* ask(async () => {
        await tab(page, "Logs")
        await page.getByText("one was called").waitFor()
      })
      yield* callCode
      yield* ask(async () => {
        await page.getByText("one was called").nth(1).waitFor()
        await page.getByLabel("Level").selectOption("error")
        await page.getByText("one was called").first().waitFor({ state: "detached" })
        await page.getByText("one has a problem").first().waitFor()
        await page.getByLabel("Filter").fill("no such line")
        await page.getByText("No line matches the filter.").waitFor()
        await page.getByLabel("Filter").fill("")
        await tab(page, "Pause")
        await page.getByText("Paused").waitFor()
      })
      yield* expectAccessible(page)
      assert.deepStrictEqual(complaints, [])
    }))

  test("runs statements on a database, and shows rows or what is wrong", () =>
    Effect.gen(function* () {
      const { complaints, page } = yield* openedView
      const run = async (sql: string) => {
        await page.getByLabel("Statement").fill(sql)
        await page.getByRole("button", { name: "Run" }).click()
      }
      yield* ask(async () => {
        await tab(page, "Database")
        await run("create table scores (id integer primary key, player text, score integer)")
        await page.getByRole("region", { name: "Result", exact: true }).waitFor()
        await run("insert into scores (player, score) values ('Ada', 7), ('Bob', null)")
        await page.getByText("2 rows changed, last id 2").waitFor()
        await run("select player, score from scores order by id")
        await page.getByText("2 rows", { exact: true }).waitFor()
        await page.getByRole("cell", { name: "NULL" }).waitFor()
        await page.getByRole("columnheader", { name: "score" }).waitFor()
      })
      yield* expectAccessible(page)
      yield* ask(async () => {
        await run("selct 1")
        await page.getByRole("alert").getByText("sql_error").waitFor()
        await page.getByRole("cell", { name: "NULL" }).waitFor({ state: "detached" })
      })
      assert.deepStrictEqual(complaints, [])
    }))

  test("sets and deletes secrets, and never shows their values", () =>
    Effect.gen(function* () {
      const { complaints, dialog, page } = yield* openedView
      yield* ask(async () => {
        await tab(page, "Secrets")
        await page.getByText("No secret").waitFor()
        await page.getByLabel("Name").fill("API_KEY")
        await page.getByLabel("Value").fill(secret)
        await page.getByRole("button", { name: "Set", exact: true }).click()
        await page.getByText("API_KEY is set.").waitFor()
        await page.getByRole("cell", { name: "API_KEY", exact: true }).waitFor()
      })
      yield* expectAccessible(page)
      const shown = yield* ask(() =>
        page.evaluate(() => {
          const fields = [...document.querySelectorAll("input")].map(({ value }) => value)
          return fields.join() + document.documentElement.innerHTML
        })
      )
      assert.include(shown, "API_KEY")
      assert.notInclude(shown, secret)
      yield* ask(async () => {
        await page.getByRole("button", { name: "Delete API_KEY" }).click()
        await dialog.getByRole("button", { name: "Delete" }).click()
        await page.getByText("API_KEY is deleted.").waitFor()
        await page.getByText("No secret").waitFor()
      })
      assert.deepStrictEqual(complaints, [])
    }))

  test("shows dead letters page by page, and retries and deletes them", () =>
    Effect.gen(function* () {
      const { app, complaints, dialog, page } = yield* openedView
      yield* ask(async () => {
        await tab(page, "Dead letters")
        await page.getByText("No dead letter").waitFor()
      })
      yield* expectAccessible(page)
      const first = yield* addDeadLetterOf(app.publishableKey, '{"player":"Ada"}')
      const binary = yield* addDeadLetterOf(app.publishableKey, "\u{FF}", "bytes")
      yield* Effect.forEach(Array.from({ length: 19 }), () => addDeadLetterOf(app.publishableKey))
      yield* ask(async () => {
        await page.reload()
        await page.getByRole("listitem").nth(19).waitFor()
        await page.getByText(`Body of ${first}`, { exact: true }).waitFor({ state: "detached" })
        await page.getByRole("button", { name: "Load more" }).click()
        await page.getByText(`Body of ${first}`, { exact: true }).click()
        await page.getByText('"player": "Ada"').waitFor()
        await page.getByText(`Body of ${binary} (bytes, as base64)`).click()
        await page.getByText("w78=").waitFor()
      })
      yield* expectAccessible(page)
      yield* ask(async () => {
        await page.getByRole("button", { name: `Delete ${first}`, exact: true }).click()
        await dialog.getByRole("button", { name: "Delete" }).click()
        await page.getByText(`${first} is deleted.`).waitFor()
        await page.getByRole("button", { name: "Load more" }).waitFor({ state: "detached" })
        await page.getByRole("button", { name: `Retry ${binary}`, exact: true }).click()
        await page.getByText(`${binary} is delivered again.`).waitFor()
        await page.getByText(`Body of ${binary}`, { exact: true }).waitFor({ state: "detached" })
        await page.getByLabel("Queue or hook").selectOption("onStats")
        await page.getByText("No dead letter").waitFor()
      })
      const { body } = yield* call(app, "GET", "/dead-letters?name=JOBS")
      assert.notInclude(JSON.stringify(body), `"id":"${first}"`)
      assert.notInclude(JSON.stringify(body), `"id":"${binary}"`)
      // What another tab has deleted is an error in place.
      yield* ask(() => page.getByLabel("Queue or hook").selectOption(""))
      const other = String(at(body, "deadLetters", "0", "id"))
      yield* ask(() => page.getByRole("button", { name: `Retry ${other}`, exact: true }).waitFor())
      yield* call(app, "DELETE", `/dead-letters/${other}`)
      yield* ask(async () => {
        await page.getByRole("button", { name: `Retry ${other}`, exact: true }).click()
        await page.getByRole("alert").getByText("not_found").waitFor()
      })
      assert.deepStrictEqual(complaints, [])
    }))

  test("turns functions off, and deletes all for who types the project's name", () =>
    Effect.gen(function* () {
      const { app, complaints, dialog, page } = yield* openedView
      yield* ask(async () => {
        await page.getByRole("button", { name: "Turn off" }).click()
        await dialog.getByRole("button", { name: "Turn off" }).click()
        await page.getByText("Functions are off.").waitFor()
        await page.getByRole("button", { name: "Delete code and data" }).click()
        await dialog.getByRole("textbox").fill("another")
        await dialog.getByRole("button", { name: "Delete code and data" }).click()
      })
      assert.deepInclude((yield* call(app, "GET")).body, { deployed: true, enabled: false })
      yield* ask(async () => {
        const [, , slug = ""] = new URL(page.url()).pathname.split("/")
        await dialog.getByRole("textbox").fill(slug)
        await dialog.getByRole("button", { name: "Delete code and data" }).click()
        await page.getByText("Functions are off", { exact: true }).waitFor()
      })
      assert.deepInclude((yield* call(app, "GET")).body, { deployed: false })
      assert.deepStrictEqual(complaints, [])
    }))

  test("says why functions are suspended, and fits a phone", () =>
    Effect.gen(function* () {
      const viewport = { width: 390, height: 844 }
      const { page } = yield* signedIn({ viewport })
      yield* ask(async () => {
        const isStatus = (url: URL) => url.pathname.endsWith("/development/functions")
        await page.route(isStatus, async (route) => {
          const response = await route.fetch()
          const json: unknown = await response.json()
          const suspended = { enabled: true, suspended: true, suspendedReason: "balance" }
          await route.fulfill({ response, json: Object.assign({}, json, suspended) })
        })
        await page.getByRole("button", { name: "Views" }).click()
      })
      yield* openView(page, "Functions")
      yield* ask(() => page.getByText("the account owes money").waitFor())
      yield* expectAccessible(page)
      const width = yield* ask(() => page.evaluate(() => document.documentElement.scrollWidth))
      assert.isAtMost(width, viewport.width)
      yield* ask(() => page.getByRole("link", { name: "Top up" }).waitFor())
    }))
})
