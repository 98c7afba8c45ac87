/** The development page with a voice call, in two tabs. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "playwright-core"
import { TestApp } from "#testing/app"
import { request } from "#testing/players"
import { Chromium, installed, needsChromium, newVisitor } from "../support/client/chromium.ts"
import { DatabaseLive } from "../support/service.ts"

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

const AppLive = TestApp.layerWith({ SVC_VOICE_UDP_PORTS: "0" }).pipe(Layer.provide(DatabaseLive))

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("/dev/voice", (it) => {
  it.layer(Chromium.layer, { timeout: "120 seconds" })("in Chromium", (it) => {
    it.effect.skipIf(!installed)(
      `holds a call between two tabs of one browser${needsChromium}`,
      () =>
        Effect.gen(function* () {
          const { url } = yield* TestApp
          const visitor = yield* newVisitor()
          const open = Effect.fnUntraced(function* () {
            const page = yield* ask(() => visitor.newPage())
            yield* ask(() => page.goto(`${url}/dev/voice`))
            yield* ask(() => page.selectOption("[name=mode]", "sfu"))
            yield* ask(() => page.getByRole("button", { name: "Join" }).click())
            return page
          })
          const hears = (page: Page) => ask(() => page.waitForSelector("li.speaking"))
          const one = yield* open()
          const two = yield* open()
          yield* hears(one)
          yield* hears(two)
          yield* ask(() => two.getByRole("button", { name: "Leave" }).click())
          yield* ask(() => one.waitForFunction(() => document.querySelectorAll("li").length === 1))
        }),
      { tags: "long" }
    )
  })

  it.effect("serves the voice page to browsers on this machine only", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      const headers = { "x-forwarded-for": "203.0.113.9" }
      assert.strictEqual((yield* request(`${url}/dev/voice`)).status, 200)
      assert.strictEqual((yield* request(`${url}/dev/voice`, { headers })).status, 404)
    })
  )
})
