/**
 * Card images: how many a second, their CPU, and what drawing them costs the players of a room. Beside it
 * satori with resvg. See README.md.
 */
import { once } from "node:events"
import { readdir, readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import * as Schema from "effect/Schema"
import { inFlight } from "./many/pace.ts"
import { type Service, signIn, startService } from "./many/service.ts"
import { startPeer } from "./servers/peer-packages.ts"

const { values: options } = parseArgs({
  options: { cards: { type: "string", default: "300" }, seconds: { type: "string", default: "6" } }
})

const cards = Number(options.cards)
const restMs = Number(options.seconds) * 1000
const atATime = 4
/** Fewer than a player keeps. */
const linksPerPlayer = 250
const ticksPerSecond = 100

const config = {
  features: { multiplayer: true },
  share: { images: { enabled: true, title: "Star Racer" }, links: { enabled: true } }
}

const Shared = Schema.Struct({ imageUrl: Schema.String })
const decodeShared = Schema.decodeUnknownSync(Shared)

/** Makes links with different scores; returns the addresses of their cards. */
async function makeCards({ target }: Service, from: number, count: number) {
  const urls: Array<string> = []
  const tokens = await signIn(target, Math.ceil(count / linksPerPlayer))
  await inFlight(count, atATime, async () => {
    const score = from + urls.length
    const response = await fetch(`${target.url}/v1/share/links`, {
      method: "POST",
      headers: {
        "x-svc-key": target.key,
        authorization: `Bearer ${tokens[score % tokens.length] ?? ""}`,
        "content-type": "application/json"
      },
      body: JSON.stringify({ kind: "challenge", score, showName: true })
    })
    const { imageUrl } = decodeShared(await response.json())
    urls.push(`${target.url}${new URL(imageUrl).pathname}`)
  })
  return urls
}

async function fetchAll(urls: ReadonlyArray<string>): Promise<void> {
  let next = 0
  await inFlight(urls.length, atATime, async () => {
    const response = await fetch(urls[next++] ?? "")
    if (response.status !== 200) throw new Error(`${response.url} answered ${response.status}`)
    await response.bytes()
  })
}

/** CPU microseconds of a process and its children. */
async function cpuOf(pid: number): Promise<number> {
  let ticks = 0
  for (const name of await readdir("/proc")) {
    const stat = await readFile(`/proc/${name}/stat`, "utf8").catch(() => "")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    if (Number(name) === pid || Number(fields[1]) === pid) {
      if (!/postgres/.test(stat)) ticks += Number(fields[11]) + Number(fields[12])
    }
  }
  return (ticks * 1_000_000) / ticksPerSecond
}

/** Fetches the cards and prints rate and CPU. */
async function report(what: string, pid: number, urls: ReadonlyArray<string>): Promise<void> {
  const [cpu, at] = [await cpuOf(pid), performance.now()]
  await fetchAll(urls)
  const [micros, ms] = [(await cpuOf(pid)) - cpu, performance.now() - at]
  const rate = ((urls.length / ms) * 1000).toFixed(0)
  const each = (micros / urls.length / 1000).toFixed(1)
  process.stdout.write(`${what.padEnd(34)} ${rate.padStart(5)} cards/s  ${each} ms CPU a card\n`)
}

const Frame = Schema.fromJsonString(
  Schema.Struct({
    t: Schema.String,
    data: Schema.optionalKey(Schema.Unknown)
  })
)
const decodeFrame = Schema.decodeUnknownSync(Frame)
const Room = Schema.Struct({ roomId: Schema.String })
const decodeRoom = Schema.decodeUnknownSync(Room)

/** A player's socket, which is welcome; `onMessage` gets the data of each message in its room. */
async function connect({ target }: Service, token: string, onMessage: (data: unknown) => void) {
  const socket = new WebSocket(`${target.url.replace("http:", "ws:")}/v1/realtime`)
  const replies: Array<(data: unknown) => void> = []
  socket.addEventListener("message", ({ data }) => {
    const frame = decodeFrame(String(data))
    if (frame.t === "message") onMessage(frame.data)
    if (frame.t === "reply" || frame.t === "welcome") replies.shift()?.(frame.data)
  })
  await once(socket, "open")
  const request = (frame: object) => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    replies.push(resolve)
    socket.send(JSON.stringify(frame))
    return promise
  }
  await request({ t: "auth", key: target.key, token })
  return { socket, request }
}

const messagesPerSecond = 30

/** Measures how long a message takes to the other player of a room while something goes on. */
async function latencies(service: Service, meanwhile: () => Promise<void>): Promise<string> {
  const [ada = "", bob = ""] = await signIn(service.target, 2)
  const delays: Array<number> = []
  const host = await connect(service, ada, () => undefined)
  const guest = await connect(service, bob, (sentAt) => {
    delays.push(performance.now() - Number(sentAt))
  })
  const { roomId } = decodeRoom(await host.request({ t: "create", mode: "default", rid: "1" }))
  await guest.request({ t: "join", roomId, rid: "1" })
  const sending = setInterval(() => {
    host.socket.send(JSON.stringify({ t: "send", type: "n", data: performance.now() }))
  }, 1000 / messagesPerSecond)
  await meanwhile()
  clearInterval(sending)
  host.socket.close()
  guest.socket.close()
  const sorted = delays.toSorted((a, b) => a - b)
  const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1)
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${sorted.length} messages`
}

const fontFile = createRequire(import.meta.url).resolve(
  "@fontsource/inter/files/inter-latin-700-normal.woff"
)

await using stack = new AsyncDisposableStack()
const service = await startService(undefined, config)
stack.defer(service.stop)
const peer = await startPeer("card-satori.mjs", undefined, [fontFile])
stack.defer(peer.stop)
const peerCards = (from: number) =>
  Array.from({ length: cards }, (_, index) => `${peer.target.url}/card/${from + index}.png`)

await fetchAll(await makeCards(service, 0, 20))
await fetchAll(peerCards(0).slice(0, 20))
const mine = await makeCards(service, 1000, cards)
await report("ours, each card the first time", service.pid, mine)
await report("satori and resvg", peer.pid, peerCards(1000))
await report("ours, each card once more", service.pid, mine)

const more = await makeCards(service, 100_000, cards)
process.stdout.write(`a room at rest: ${await latencies(service, () => wait(restMs))}\n`)
process.stdout.write(`while cards are drawn: ${await latencies(service, () => fetchAll(more))}\n`)
