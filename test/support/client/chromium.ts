/** A headless Chromium for the duration of a test file. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { type Browser, type BrowserContextOptions, chromium } from "playwright-core"

const { stdout } = spawnSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" })
const executablePath = stdout.trim()

/** Whether Chromium is installed. */
export const installed = executablePath !== ""

/** Ends the name of a test that is skipped without Chromium. */
export const needsChromium = installed ? "" : " (skipped: needs Chromium, apt-get install chromium)"

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
  "--use-fake-ui-for-media-stream",
  // Peers of tests are at the addresses of this machine.
  "--allow-loopback-in-peer-connection"
]

/**
 * A second of sound as WAV, which is the microphone: Chromium's own one beeps for 20 ms only. The pitch
 * rises, since a browser takes a steady tone for noise and suppresses it.
 */
const makeSweep = (): Buffer => {
  const rate = 48_000
  const wav = Buffer.alloc(44 + rate * 2)
  wav.write("RIFF", 0)
  wav.writeUInt32LE(wav.length - 8, 4)
  wav.write("WAVEfmt ", 8)
  wav.writeUInt32LE(16, 16)
  wav.writeUInt16LE(1, 20)
  wav.writeUInt16LE(1, 22)
  wav.writeUInt32LE(rate, 24)
  wav.writeUInt32LE(rate * 2, 28)
  wav.writeUInt16LE(2, 32)
  wav.writeUInt16LE(16, 34)
  wav.write("data", 36)
  wav.writeUInt32LE(rate * 2, 40)
  for (let i = 0; i < rate; i++) {
    const seconds = i / rate
    const sample = Math.sin(2 * Math.PI * (300 + 850 * seconds) * seconds)
    wav.writeInt16LE(Math.round(sample * 8000), 44 + i * 2)
  }
  return wav
}

/** Timeout of a step in a page, on a busy machine. */
const patienceMillis = 30_000

/** Starts a browser. */
export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath, args, timeout: patienceMillis })

export class Chromium extends Context.Service<Chromium, Browser>()(
  "test/support/client/chromium/Chromium"
) {
  static readonly layer = Layer.effect(
    Chromium,
    Effect.acquireRelease(
      Effect.promise(async () => {
        const folder = mkdtempSync(join(tmpdir(), "svc-sweep-"))
        const sweep = join(folder, "sweep.wav")
        writeFileSync(sweep, makeSweep())
        const browser = await chromium.launch({
          executablePath,
          args: [...args, `--use-file-for-fake-audio-capture=${sweep}`],
          timeout: patienceMillis
        })
        browser.on("disconnected", () => rmSync(folder, { recursive: true, force: true }))
        return browser
      }),
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
