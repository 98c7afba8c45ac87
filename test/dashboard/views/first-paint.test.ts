/**
 * What stands between a developer and the first paint on a slow device: bytes and requests. Times depend on
 * the machine, so they are printed and not judged.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Chromium, installed, needsChromium } from "../../support/client/chromium.ts"
import { signedIn } from "../../support/dashboard/visitor.ts"
import { AppLive } from "../../support/service.ts"

/** Compressed bytes of style and theme, without which nothing is painted. */
const blockingBytesMax = 10 * 1024

/** Platform, developer, projects; overview, live view and appeals. */
const readsMax = 6

/** How many times slower the processor is. */
const slowdown = 4

interface Loaded {
  readonly paint: number
  readonly answered: number
  readonly blocking: ReadonlyArray<readonly [name: string, bytes: number]>
  readonly reads: ReadonlyArray<string>
}

/** Runs in the page: what blocked the first paint, and which reads the first view needed. */
const measure = (): Loaded => {
  const entries = performance
    .getEntriesByType("resource")
    .filter((entry) => entry instanceof PerformanceResourceTiming)
  const blocks = (entry: PerformanceResourceTiming): boolean =>
    "renderBlockingStatus" in entry && entry.renderBlockingStatus === "blocking"
  const paths = entries.map(({ name }) => new URL(name).pathname)
  return {
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0,
    answered: Math.max(...entries.map(({ responseEnd }) => responseEnd)),
    blocking: entries.filter(blocks).map((entry) => [entry.name, entry.encodedBodySize]),
    reads: [...new Set(paths.filter((path) => path.startsWith("/v1/")))]
  }
}

layer(Layer.mergeAll(Chromium.layer, AppLive), {
  timeout: "120 seconds",
  excludeTestServices: true
})(`the first paint of the dashboard${needsChromium}`, (it) => {
  it.effect.skipIf(!installed)(
    "paints the dashboard after style and theme only, and fills the first view by six reads",
    () =>
      Effect.gen(function* () {
        const { page } = yield* signedIn()
        const loaded = yield* Effect.promise(async () => {
          const debug = await page.context().newCDPSession(page)
          await debug.send("Network.setCacheDisabled", { cacheDisabled: true })
          await debug.send("Emulation.setCPUThrottlingRate", { rate: slowdown })
          await page.goto(page.url())
          await page.getByText("Some seconds behind.").waitFor()
          return page.evaluate(measure)
        })
        const [paint, answered] = [Math.round(loaded.paint), Math.round(loaded.answered)]
        yield* Effect.log(`First paint after ${paint} ms, all data after ${answered} ms`)
        const names = loaded.blocking.map(([name]) => name.replace(/^.*\/(\w+)-.*$/, "$1"))
        assert.sameMembers(names, ["style", "theme"])
        const bytes = loaded.blocking.reduce((sum, [, each]) => sum + each, 0)
        assert.isBelow(bytes, blockingBytesMax)
        assert.isAtMost(loaded.reads.length, readsMax, loaded.reads.join())
      }),
    240_000
  )
})
