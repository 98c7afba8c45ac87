/** `npm run start:two`: the button of Star rush kills the runner of the room, and the game goes on. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import type { Page } from "playwright-core"
import { poolLayer } from "#sql/database"
import { TestDatabase } from "#testing/app"
import { freePort } from "#testing/runners"
import { Chromium, installed, needsChromium, newVisitor } from "../../support/client/chromium.ts"
import { DatabaseLive } from "../../support/service.ts"
import { dataFolder } from "../../support/data-folder.ts"

const pathOf = (file: string) => fileURLToPath(new URL(`../../../${file}`, import.meta.url))

/** Starts two runners; returns the port and what they print. */
const startTwo = Effect.gen(function* () {
  const { url: databaseUrl } = yield* TestDatabase
  const port = yield* freePort
  const dataDir = yield* dataFolder("svc-kill-")
  const env = {
    PATH: pathOf("node_modules/.bin"),
    HOST: "127.0.0.1",
    PORT: `${port}`,
    SVC_BASE_URL: `http://localhost:${port}`,
    DATABASE_URL: databaseUrl,
    SVC_DATA_DIR: dataDir
  }
  let output = ""
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn("node", [pathOf("src/server/demo/two.ts")], { env })),
    (child) =>
      Effect.promise(() => {
        const ended = new Promise((resolve) => child.once("exit", resolve))
        child.kill("SIGTERM")
        return ended
      })
  )
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()))
  }
  const addresses = () => [...output.matchAll(/runner {10}(\S+)/g)].map(([, address]) => address)
  /** Waits until this many runners have started in all. */
  const started = (count: number) =>
    Effect.sync(addresses).pipe(
      Effect.filterOrFail(
        ({ length }) => length >= count,
        () => new Error(output)
      ),
      Effect.retry({ times: 1200, schedule: Schedule.spaced(100) })
    )
  yield* started(2)
  return { port, started, output: () => output }
})

const enter = Effect.fnUntraced(function* (port: number, name: string) {
  const visitor = yield* newVisitor()
  return yield* Effect.promise(async () => {
    const page = await visitor.newPage()
    await page.goto(`http://demo-games--dev.localhost:${port}/arena/`)
    await page.fill(".start input", name)
    await page.click(".start button")
    await page.waitForSelector(".start", { state: "hidden" })
    return page
  })
})

/** Waits until a page shows a text; a failure shows the page. */
const sees = (page: Page, selector: string, text: string) =>
  Effect.promise(async () => {
    const found = page.waitForFunction(
      ([selector, text]) =>
        document.querySelector(selector ?? "")?.textContent?.includes(text ?? ""),
      [selector, text],
      { timeout: 90_000 }
    )
    await found.catch(async () => {
      const shown = await page.locator("body").textContent()
      throw new Error(`${selector} does not show "${text}": ${shown}`)
    })
  })

const roomOf = (page: Page) =>
  Effect.promise(async () => /room (\S+)/.exec((await page.textContent("#net")) ?? "")?.[1])

/** The score of a player in the list that a page shows. */
const scoreIn = (page: Page, name: string) =>
  Effect.promise(() => page.locator(".hud li", { hasText: name }).locator("b").textContent())

/** Waits until the score is in the snapshot of the room, which the service writes within a second. */
const scoreIsSaved = Effect.gen(function* () {
  const { url } = yield* TestDatabase
  const saved = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return yield* sql`select 1 from rooms where snapshot::text ~ '"scores": *\\{[^}]*: *[1-9]'`
  }).pipe(Effect.provide(poolLayer({ url: Redacted.make(url), connections: 1 })))
  yield* saved.pipe(
    Effect.filterOrFail(
      ({ length }) => length > 0,
      () => new Error("The score is in no snapshot")
    ),
    Effect.retry({ times: 60, schedule: Schedule.spaced(250) })
  )
})

/** Moves the ship of a page over the arena until its score has grown. */
const collectStars = Effect.fnUntraced(function* (page: Page, name: string) {
  const before = Number(yield* scoreIn(page, name))
  yield* Effect.promise(async () => {
    const { height, width } = page.viewportSize() ?? { width: 1280, height: 720 }
    await page.mouse.move(width / 2, height / 2)
    await page.mouse.down()
    for (let row = 1; row <= 24; row += 1) {
      const x = row % 2 === 0 ? width * 0.1 : width * 0.9
      await page.mouse.move(x, (height * ((row % 12) + 0.5)) / 12)
      await page
        .waitForFunction(
          ([name, before]) =>
            [...document.querySelectorAll(".hud li")].some(
              (row) =>
                row.textContent?.includes(String(name)) &&
                Number(row.querySelector("b")?.textContent) > Number(before)
            ),
          [name, before],
          { timeout: 4000 }
        )
        .then(
          () => (row = 99),
          () => undefined
        )
    }
    await page.mouse.up()
  })
  assert.isAbove(Number(yield* scoreIn(page, name)), before, `the score of ${name}`)
})

layer(Layer.merge(DatabaseLive, Chromium.layer), { excludeTestServices: true })(
  `the button of Star rush${needsChromium}`,
  (it) => {
    it.effect.skipIf(!installed)(
      "kills the runner of the room, and both players go on in the same room",
      () =>
        Effect.gen(function* () {
          const { output, port, started } = yield* startTwo
          assert.strictEqual(output().split("Player backend listening").length, 2, output())
          const ada = yield* enter(port, "Ada")
          const bob = yield* enter(port, "Bob")
          yield* sees(ada, ".hud", "Bob")
          yield* sees(bob, ".hud", "Ada (host)")
          yield* collectStars(ada, "Ada")
          const score = yield* scoreIn(ada, "Ada")
          yield* scoreIsSaved
          const room = yield* roomOf(ada)
          assert.strictEqual(yield* roomOf(bob), room)
          yield* Effect.promise(() => bob.click("#kill"))
          // A third start replaces the runner that was killed.
          const addresses = yield* started(3)
          assert.strictEqual(new Set(addresses).size, 3, output())
          assert.strictEqual(output().split("A runner has ended").length, 2, output())
          yield* sees(ada, ".hud", "Bob")
          assert.isAtLeast(Number(yield* scoreIn(ada, "Ada")), Number(score))
          yield* collectStars(ada, "Ada")
          yield* collectStars(bob, "Bob")
          for (const page of [ada, bob]) {
            assert.strictEqual(yield* roomOf(page), room)
            assert.notInclude(yield* Effect.promise(() => page.innerText(".hud")), "away")
          }
          const seen = yield* scoreIn(bob, "Ada")
          yield* sees(ada, ".hud", `Ada (host)${seen}`)
        }),
      300_000
    )
  }
)
