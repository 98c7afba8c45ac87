/**
 * What slow clients cost: the memory of the service above the same connections at rest, and the latency
 * of others. See README.md.
 */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import { Worker } from "node:worker_threads"
import * as Schema from "effect/Schema"
import { memoryOf, settled, withReporter } from "./many/memory.ts"
import { inFlight, openLoop } from "./many/pace.ts"
import { call, type Service, startService } from "./many/service.ts"
import { echo } from "./servers/echo.ts"

const { values: options } = parseArgs({
  options: {
    readers: { type: "string", default: "10000" },
    bodies: { type: "string", default: "1200" },
    exports: { type: "string", default: "64" },
    rate: { type: "string", default: "100" },
    only: { type: "string", multiple: true, default: [] }
  }
})

const mebibyte = 1024 * 1024
const readSaveBytes = 256 * 1024
const holdMs = 10_000
const sampleMs = 200
const probePlayers = 12
const players = 40

const Session = Schema.Struct({ accessToken: Schema.String })
const decodeSession = Schema.decodeUnknownSync(Session)

/** A guest with an address of its own, as a trusted proxy forwards it. */
interface Guest {
  readonly token: string
  readonly headers: Readonly<Record<string, string>>
}

let addresses = 0

async function signIn({ target }: Service): Promise<Guest> {
  addresses += 1
  const own = {
    "x-svc-key": target.key,
    "x-forwarded-for": `192.0.${addresses >> 8}.${addresses & 255}`
  }
  const { accessToken } = decodeSession(await call("POST", `${target.url}/v1/auth/guest`, own, {}))
  return { token: accessToken, headers: { ...own, authorization: `Bearer ${accessToken}` } }
}

const save = ({ target }: Service, { headers }: Guest, key: string, bytes: number) =>
  call("PUT", `${target.url}/v1/saves/${key}`, headers, { data: "x".repeat(bytes - 2) })

const head = (method: string, path: string, { headers }: Guest, more = ""): string =>
  `${method} ${path} HTTP/1.1\r\nHost: bench\r\n` +
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("") +
  `${more}\r\n`

async function openConnection({ target }: Service): Promise<Socket> {
  const { hostname, port } = new URL(target.url)
  const socket = connect(Number(port), hostname)
  await once(socket, "connect")
  socket.on("error", () => undefined)
  return socket
}

/** Connections that have had a response and wait for their next request. */
async function restingConnections(service: Service, count: number): Promise<Array<Socket>> {
  const sockets: Array<Socket> = []
  await inFlight(count, 100, async () => {
    const socket = await openConnection(service)
    socket.write("GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n")
    await once(socket, "data")
    socket.pause()
    sockets.push(socket)
  })
  return sockets
}

/** Requests of other players at a steady rate, from a thread of their own; ends with their latencies. */
function probe({ target }: Service, guests: ReadonlyArray<Guest>): () => Promise<string> {
  const workerData = {
    url: `${target.url}/v1/players/me`,
    echoUrl: bare.target.url,
    headers: guests.map(({ headers }) => headers)
  }
  const worker = new Worker(new URL("slow-clients-probe.ts", import.meta.url), { workerData })
  return async () => {
    const reported = once(worker, "message")
    worker.postMessage("report", [])
    return String((await reported)[0])
  }
}

/** The share of a core that the service takes from now until it is asked. */
async function busyMeter(service: Service): Promise<() => Promise<string>> {
  const from = performance.now()
  const before = await service.cpuMicros()
  return async () => {
    const micros = (await service.cpuMicros()) - before
    return `service ${(micros / 10 / (performance.now() - from)).toFixed(0)} % of a core`
  }
}

interface Attack {
  readonly name: string
  readonly connections: number
  readonly act: (socket: Socket, index: number) => void
}

/** Runs one attack; logs the growth above the same connections at rest. */
async function run(service: Service, others: ReadonlyArray<Guest>, attack: Attack): Promise<void> {
  const sockets = await restingConnections(service, attack.connections)
  await settled(service)
  await memoryOf(service.pid, "gc")
  const rest = (await memoryOf(service.pid, "now")).rss
  const stopResting = probe(service, others)
  await wait(holdMs)
  console.log(
    `${attack.name}\n  at rest, ${(rest / mebibyte).toFixed(0)} MiB; ${await stopResting()}`
  )
  const stop = probe(service, others)
  const busy = await busyMeter(service)
  let peak = rest
  const stopping = new AbortController()
  const sampled = (async () => {
    while (!stopping.signal.aborted) {
      peak = Math.max(peak, (await memoryOf(service.pid, "now")).rss)
      await wait(sampleMs)
    }
  })()
  await openLoop(sockets.length, Number(options.rate), async (index) => {
    sockets[index]?.destroy()
    const socket = await openConnection(service)
    sockets[index] = socket
    attack.act(socket, index)
  })
  await wait(holdMs)
  stopping.abort()
  await sampled
  const grown = ((peak - rest) / mebibyte).toFixed(0)
  console.log(`  peak +${grown} MiB; ${await busy()}; ${await stop()}`)
  for (const socket of sockets) socket.destroy()
  await settled(service)
}

/** The body of a request in chunks of one byte, as many as its limit allows. */
const tinyChunks = "1\r\na\r\n".repeat(16_000)

/** Unfinished bodies: too large by their declared length, in chunks of one byte, and of saves. */
function bodiesOf(guestOf: (index: number) => Guest): ReadonlyArray<Attack> {
  const connections = Number(options.bodies)
  const json = "Content-Type: application/json\r\n"
  const attack = (name: string, act: Attack["act"]): Attack => ({
    name: `${connections} unfinished bodies: ${name}`,
    connections,
    act
  })
  const signInHead = (index: number, length: string): string =>
    head("POST", "/v1/auth/guest", guestOf(index), `${json}${length}\r\n`)
  return [
    attack("sign-ins of 1.4 MiB", (socket, index) => {
      socket.write(signInHead(index, "Content-Length: 1400000"))
      socket.write("x".repeat(mebibyte))
    }),
    attack("sign-ins in 16,000 chunks of one byte", (socket, index) => {
      socket.write(signInHead(index, "Transfer-Encoding: chunked"))
      socket.write(tinyChunks)
    }),
    attack("saves of 1 MiB", (socket, index) => {
      const length = `${json}Content-Length: ${mebibyte}\r\n`
      socket.write(head("PUT", "/v1/saves/body", guestOf(index), length))
      socket.write(`{"data":"${"x".repeat(mebibyte - 100)}`)
    })
  ]
}

/** Readers of a save, who do or do not read the response. */
function readersOf(guestOf: (index: number) => Guest): ReadonlyArray<Attack> {
  const connections = Number(options.readers)
  const attack = (what: string, begin: (socket: Socket) => void): Attack => ({
    name: `${connections} readers of a save of 256 KiB, who ${what} it`,
    connections,
    act: (socket, index) => {
      begin(socket)
      socket.write(head("GET", "/v1/saves/read", guestOf(index)))
    }
  })
  return [
    attack("read", (socket) => socket.resume()),
    attack("do not read", (socket) => socket.pause())
  ]
}

function attacksOf(guests: ReadonlyArray<Guest>, large: Guest): ReadonlyArray<Attack> {
  const guestOf = (index: number): Guest => guests[index % guests.length] ?? large
  const connections = Number(options.exports)
  return [
    {
      name: `${connections} unread exports of one guest with 58 saves of 1 MiB`,
      connections,
      act: (socket) => {
        socket.pause()
        socket.write(head("GET", "/v1/players/me/export", large))
      }
    },
    ...bodiesOf(guestOf),
    ...readersOf(guestOf)
  ]
}

const bare = await echo.start(undefined)
const service = await withReporter(() =>
  startService(
    undefined,
    { features: { saves: true } },
    {
      SVC_THROTTLES: "on",
      SVC_TRUSTED_PROXIES: "127.0.0.1",
      SVC_GUEST_SAVE_BYTES: `${100 * mebibyte}`,
      SVC_LOG_LEVEL: "error"
    }
  )
)
try {
  const large = await signIn(service)
  for (let n = 0; n < 58; n++) await save(service, large, `save-${n}`, mebibyte)
  const guests: Array<Guest> = []
  for (let n = 0; n < players; n++) guests.push(await signIn(service))
  for (const guest of guests) await save(service, guest, "read", readSaveBytes)
  const others: Array<Guest> = []
  for (let n = 0; n < probePlayers; n++) others.push(await signIn(service))
  const attacks = attacksOf(guests, large)
  const chosen = attacks.filter(
    (_, n) => options.only.length === 0 || options.only.includes(`${n + 1}`)
  )
  for (const attack of chosen) await run(service, others, attack)
} finally {
  await service.stop()
  await bare.stop()
}
