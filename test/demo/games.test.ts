/** The demo games in Chromium: two pages play each of them, on the seeded project and over hosting. */
import { globSync, readFileSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import type { Page } from "playwright-core"
import { inject } from "vitest"
import { TestApp, TestDatabase } from "#testing/app"
import { request } from "#testing/players"
import { freePort } from "#testing/runners"
import { violationsOf } from "../support/client/axe.ts"
import { Chromium, installed, needsChromium, newVisitor } from "../support/client/chromium.ts"

const folder = new URL("../../docs/demo/", import.meta.url)

class Demo extends Context.Service<Demo, { readonly url: string; readonly demo: string }>()(
  "test/demo/games/Demo"
) {}

/** A service on the port of its base URL, since hosted pages find it there. */
const DemoLive = Layer.unwrap(
  Effect.map(Effect.scoped(freePort), (port) => {
    const url = `http://localhost:${port}`
    const app = TestApp.layerWith({
      PORT: String(port),
      SVC_BASE_URL: url,
      SVC_DEMO_GAMES: "on",
      SVC_THROTTLES: "on",
      SVC_VOICE_UDP_PORTS: "0"
    })
    const demo = `http://demo-games--dev.localhost:${port}`
    return Layer.effect(Demo, Effect.as(TestApp, Demo.of({ url, demo }))).pipe(Layer.provide(app))
  })
).pipe(
  Layer.provide(
    Layer.unwrap(Effect.sync(() => TestDatabase.layerOn(Redacted.make(inject("postgres")))))
  )
)

const options = { timeout: "120 seconds", excludeTestServices: true } as const

/** Opens a game as a new player. Errors of the page are in `faults`. */
const enter = Effect.fnUntraced(function* (path: string, name: string) {
  const { demo } = yield* Demo
  const visitor = yield* newVisitor()
  return yield* Effect.promise(async () => {
    const page = await visitor.newPage()
    const faults: Array<string> = []
    page.on("pageerror", (error) => faults.push(error.message))
    page.on("console", (line) => {
      if (line.type() === "error") faults.push(line.text())
    })
    await page.goto(demo + path)
    await page.fill(".start input", name)
    await page.click(".start button")
    await page.waitForSelector(".start", { state: "hidden" })
    return { page, faults }
  })
})

const sees = (page: Page, selector: string, text: string) =>
  Effect.promise(() =>
    page.waitForFunction(
      ([selector, text]) =>
        document.querySelector(selector ?? "")?.textContent?.includes(text ?? ""),
      [selector, text]
    )
  )

const press = (page: Page, key: string) => Effect.promise(() => page.keyboard.press(key))

const dropIn = (page: Page, column: number) =>
  Effect.promise(() => page.click(`.board button:nth-child(${column})[aria-disabled="false"]`))

layer(DemoLive, options)("the demo games", (it) => {
  it.effect(
    "leads from /demo to the address of the demo games, which are small enough to copy",
    () =>
      Effect.gen(function* () {
        const { demo, url } = yield* Demo
        const found = yield* Effect.promise(() => fetch(`${url}/demo`, { redirect: "manual" }))
        assert.deepStrictEqual([found.status, found.headers.get("location")], [302, `${demo}/`])
        const foreign = yield* request(`${url}/demo`, { headers: { "x-forwarded-for": "1.2.3.4" } })
        assert.strictEqual(foreign.status, 404)
        for (const file of globSync("**/*.js", { cwd: folder })) {
          const text = readFileSync(new URL(file, folder), "utf8")
          assert.isBelow(text.split("\n").length, 400, file)
        }
      })
  )
})

layer(Layer.merge(DemoLive, Chromium.layer), options)(`two pages${needsChromium}`, (it) => {
  it.effect.skipIf(!installed)(
    "plays Star rush: a bot comes to who is alone, and leaves when a player comes",
    () =>
      Effect.gen(function* () {
        const ada = yield* enter("/arena/", "Ada")
        yield* sees(ada.page, ".hud", "Ada (host)")
        yield* sees(ada.page, ".hud", "Robo")
        const bob = yield* enter("/arena/", "Bob")
        yield* sees(ada.page, ".hud", "Bob")
        yield* sees(bob.page, ".hud", "Ada (host)")
        yield* Effect.promise(() =>
          bob.page.waitForFunction(
            () => !document.querySelector(".hud")?.textContent?.includes("Robo")
          )
        )
        // A reload returns to the same seat.
        yield* Effect.promise(() => bob.page.reload())
        yield* sees(bob.page, ".hud", "Ada (host)")
        yield* sees(bob.page, ".hud", "Bob")
        assert.deepStrictEqual([...ada.faults, ...bob.faults], [])
      }),
    { tags: "long" }
  )

  it.effect.skipIf(!installed)(
    "plays a round of Star rush to its end, and begins the next one",
    () =>
      Effect.gen(function* () {
        const finn = yield* enter("/arena/", "Finn")
        // Nobody else comes, so the bot collects ten stars.
        yield* sees(finn.page, ".result:not([hidden]) h2", "Robo wins the round.")
        yield* sees(finn.page, ".hud", "Robo10")
        yield* sees(finn.page, ".hud", "Robo0")
        yield* Effect.promise(() => finn.page.waitForSelector(".result", { state: "hidden" }))
        yield* sees(finn.page, ".hud", "Robo1")
        yield* Effect.promise(() => finn.page.click("#sound"))
        yield* sees(finn.page, "#sound", "Sound: off")
        const faults = yield* Effect.promise(() => violationsOf(finn.page))
        assert.deepStrictEqual([...faults, ...finn.faults], [])
      }),
    { tags: "long" }
  )

  it.effect.skipIf(!installed)(
    "plays Four in a row to its end with chat and call, after the computer made room",
    () =>
      Effect.gen(function* () {
        const cleo = yield* enter("/four/", "Cleo")
        yield* sees(cleo.page, ".players", "Computer")
        yield* dropIn(cleo.page, 1)
        yield* sees(cleo.page, "#status", "Your turn")
        const dora = yield* enter("/four/", "Dora")
        yield* sees(cleo.page, ".players", "Dora")
        for (const column of [4, 5, 4, 5, 4, 6, 4].entries()) {
          yield* dropIn(column[0] % 2 === 0 ? cleo.page : dora.page, column[1])
        }
        yield* sees(dora.page, "#status", "Cleo wins!")
        yield* Effect.promise(() => dora.page.fill("#talk input", "Again?"))
        yield* press(dora.page, "Enter")
        yield* sees(cleo.page, ".chat ol", "Dora: Again?")
        for (const { page } of [cleo, dora]) yield* Effect.promise(() => page.click("#call"))
        yield* sees(cleo.page, "#voice", "Dora")
        yield* sees(dora.page, "#voice", "Cleo")
        yield* Effect.promise(() => dora.page.click("#mute"))
        yield* sees(dora.page, "#mute", "Unmute")
        yield* Effect.promise(() => dora.page.click("#call"))
        yield* sees(cleo.page, "#voice", "waiting for the other player")
        yield* Effect.promise(() => dora.page.click("#again"))
        yield* sees(cleo.page, "#status", "Your turn")
        const faults = yield* Effect.promise(() => violationsOf(cleo.page))
        assert.deepStrictEqual([...faults, ...cleo.faults, ...dora.faults], [])
      }),
    { tags: "long" }
  )
})
