/**
 * Benchmark of the death of a media process: browser tabs in one call, whose media process is killed
 * again and again. Measures when they learn that the call is lost, when they are in it again, and when
 * they hear each other, with the load of the machine beside it.
 *
 *   node test/bench/voice-deaths.ts --tabs 3 --rounds 10
 */
import { loadavg } from "node:os"
import { setTimeout as delay } from "node:timers/promises"
import { parseArgs } from "node:util"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Browser, Page } from "playwright-core"
import { cloneDatabase, testServer } from "#testing/database"
import { startCluster } from "#testing/runners"
import { launch } from "../support/client/chromium.ts"
import { mediaProcessesOf } from "../support/voice-peer.ts"

const { values } = parseArgs({
  options: { tabs: { type: "string", default: "3" }, rounds: { type: "string", default: "10" } }
})
const tabCount = Number(values.tabs)
const roundCount = Number(values.rounds)
const patienceMillis = 60_000
/** A spare process starts within this time. */
const settleMillis = 3000

/** A tab in the call of the development page. */
class Tab {
  readonly #page: Page
  /** When the newest frame of each kind came or went. */
  readonly #seen = new Map<string, number>()
  joins = 0

  constructor(page: Page) {
    this.#page = page
    page.setDefaultTimeout(patienceMillis)
    const see = ({ payload }: { readonly payload: string | Buffer }) => {
      const name = /"t":"(voice\w+)"/.exec(String(payload))?.[1]
      if (name !== undefined) this.#seen.set(name, performance.now())
      if (name === "voiceJoin") this.joins += 1
    }
    page.on("websocket", (socket) => {
      socket.on("framesent", see)
      socket.on("framereceived", see)
    })
  }

  async open(url: string): Promise<void> {
    await this.#page.goto(`${url}/dev/voice`)
    await this.#page.selectOption("[name=mode]", "sfu")
    await this.#page.getByRole("button", { name: "Join" }).click()
  }

  async hearsAll(): Promise<void> {
    await this.#page.waitForFunction(
      (others) => document.querySelectorAll("li.speaking").length === others,
      tabCount - 1
    )
  }

  /** Waits for a frame after this time; returns when it came. */
  async next(name: string, after: number): Promise<number> {
    for (const end = after + patienceMillis; performance.now() < end;) {
      const at = this.#seen.get(name) ?? 0
      if (at > after) return at
      await delay(2)
    }
    throw new Error(`${name} has not come`)
  }
}

const openTabs = async (browser: Browser, url: string): Promise<ReadonlyArray<Tab>> => {
  const tabs: Array<Tab> = []
  for (let i = 0; i < tabCount; i++) {
    const tab = new Tab(await (await browser.newContext()).newPage())
    await tab.open(url)
    tabs.push(tab)
  }
  for (const tab of tabs) await tab.hearsAll()
  return tabs
}

/** Kills the media process; returns the milliseconds until each tab has come so far. */
const round = async (runner: number, tabs: ReadonlyArray<Tab>) => {
  const [pid] = mediaProcessesOf(runner)
  if (pid === undefined) throw new Error("No media process")
  const joins = tabs.reduce((sum, tab) => sum + tab.joins, 0)
  const killedAt = performance.now()
  process.kill(pid, "SIGKILL")
  const times = await Promise.all(
    tabs.map(async (tab) => {
      const closed = await tab.next("voice_closed", killedAt)
      // The client publishes once it has joined.
      const joined = await tab.next("voicePublish", closed)
      await tab.next("voice_speaking", closed)
      await tab.hearsAll()
      return { closed, joined, heard: performance.now() }
    })
  )
  const latest = (of: (time: (typeof times)[number]) => number) =>
    Math.max(...times.map(of)) - killedAt
  return {
    closed: latest(({ closed }) => closed),
    joined: latest(({ joined }) => joined),
    heard: latest(({ heard }) => heard),
    joins: tabs.reduce((sum, tab) => sum + tab.joins, 0) - joins
  }
}

const run = Effect.gen(function* () {
  const database = yield* Effect.flatMap(testServer, cloneDatabase)
  const { runners } = yield* startCluster({
    databaseUrl: Redacted.value(database),
    size: 1,
    env: { SVC_LOG_LEVEL: "error", SVC_VOICE_UDP_PORTS: "0" }
  })
  const [runner] = runners
  if (runner === undefined) return
  const browser = yield* Effect.acquireRelease(Effect.promise(launch), (open) =>
    Effect.promise(() => open.close())
  )
  const tabs = yield* Effect.promise(() => openTabs(browser, runner.url))
  for (let number = 1; number <= roundCount; number++) {
    yield* Effect.promise(() => delay(settleMillis))
    const { closed, heard, joined, joins } = yield* Effect.promise(() => round(runner.pid, tabs))
    console.log(
      `${number}: voice_closed after ${closed.toFixed(0)} ms, joined after ${joined.toFixed(0)} ms ` +
        `by ${joins} joins, heard after ${heard.toFixed(0)} ms, load ${loadavg()[0]?.toFixed(1)}`
    )
  }
})

run.pipe(
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  Effect.provide(SecureRandom.layerWebCrypto),
  NodeRuntime.runMain
)
