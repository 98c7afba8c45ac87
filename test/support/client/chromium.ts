/** A headless Chromium for the duration of a test file. */
import { spawnSync } from "node:child_process"
import { Context, Effect, Layer } from "effect"
import { type Browser, type BrowserContextOptions, chromium } from "playwright-core"

const { stdout } = spawnSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" })
const executablePath = stdout.trim()

/** Whether Chromium is installed. */
export const installed = executablePath !== ""

const args = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--autoplay-policy=no-user-gesture-required",
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream"
]

/** Timeout of a step in a page, on a busy machine. */
const patienceMillis = 30_000

export class Chromium extends Context.Service<Chromium, Browser>()(
  "test/support/client/chromium/Chromium"
) {
  static readonly layer = Layer.effect(
    Chromium,
    Effect.acquireRelease(
      Effect.promise(() => chromium.launch({ executablePath, args, timeout: patienceMillis })),
      (browser) => Effect.promise(() => browser.close())
    )
  )
}

/** A browser context without stored data. */
export const newVisitor = (options: BrowserContextOptions = {}) =>
  Effect.flatMap(Chromium, (browser) =>
    Effect.acquireRelease(
      Effect.promise(async () => {
        const context = await browser.newContext(options)
        context.setDefaultTimeout(patienceMillis)
        return context
      }),
      (context) => Effect.promise(() => context.close())
    )
  )
