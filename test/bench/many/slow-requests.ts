/** Clients that send requests slowly, or do not read their responses. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { setTimeout as wait } from "node:timers/promises"
import { inFlight, openLoop } from "./pace.ts"
import { call, type Service } from "./service.ts"
import type { Bench, Crowd, Guest, Phase, Scenario } from "./slow-scenario.ts"

const mebibyte = 1024 * 1024
const readSaveBytes = 256 * 1024
const holdMs = 10_000
const connectsAtATime = 100
const players = 40
const largeSaves = 58

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
  socket.on("error", () => undefined)
  await once(socket, "connect")
  return socket
}

/** Connections that have had a response and wait for their next request. */
async function restingConnections(service: Service, count: number): Promise<Array<Socket>> {
  const sockets: Array<Socket> = []
  await inFlight(count, connectsAtATime, async () => {
    const socket = await openConnection(service)
    socket.write("GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n")
    await once(socket, "data")
    socket.pause()
    sockets.push(socket)
  })
  return sockets
}

type Act = (socket: Socket, index: number) => void

/** Connections that are replaced at a steady rate by ones that do the same each. */
async function crowdOf(
  { service }: Bench,
  { connections, rate }: Load,
  acts: ReadonlyArray<readonly [name: string, act: Act]>
): Promise<Crowd> {
  const sockets = await restingConnections(service, connections)
  const phaseOf = ([name, act]: readonly [string, Act]): Phase => ({
    name,
    run: async () => {
      await openLoop(connections, rate, async (index) => {
        sockets[index]?.destroy()
        const socket = await openConnection(service)
        sockets[index] = socket
        act(socket, index)
      })
      await wait(holdMs)
    }
  })
  return {
    phases: acts.map(phaseOf),
    end: async () => {
      for (const socket of sockets) socket.destroy()
      return ""
    }
  }
}

/** So many connections, and how many of them begin in a second. */
export interface Load {
  readonly connections: number
  readonly rate: number
}

/** One guest with many large saves asks for all of them again and again, and reads nothing. */
export const unreadExports = (load: Load): Scenario => ({
  name: `${load.connections} exports of one guest with ${largeSaves} saves of 1 MiB`,
  gather: async (bench) => {
    const large = await bench.signIn()
    for (let n = 0; n < largeSaves; n++) await save(bench.service, large, `save-${n}`, mebibyte)
    const ask: Act = (socket) => {
      socket.pause()
      socket.write(head("GET", "/v1/players/me/export", large))
    }
    return crowdOf(bench, load, [["do not read", ask]])
  }
})

/** The body of a request in chunks of one byte, as many as its limit allows. */
const tinyChunks = "1\r\na\r\n".repeat(16_000)
const json = "Content-Type: application/json\r\n"

/** Bodies that do not end: too large by their declared length, in chunks of one byte, and of saves. */
export const unfinishedBodies = (load: Load): ReadonlyArray<Scenario> => {
  const scenario = (name: string, begin: (guest: Guest) => string, body: string): Scenario => ({
    name: `${load.connections} unfinished bodies: ${name}`,
    gather: async (bench) => {
      const guests = await guestsOf(bench)
      const send: Act = (socket, index) => {
        socket.write(begin(guests(index)))
        socket.write(body)
      }
      return crowdOf(bench, load, [["do not end", send]])
    }
  })
  const signIn = (length: string) => (guest: Guest) =>
    head("POST", "/v1/auth/guest", guest, `${json}${length}\r\n`)
  const put = (guest: Guest) =>
    head("PUT", "/v1/saves/body", guest, `${json}Content-Length: ${mebibyte}\r\n`)
  return [
    scenario(
      "sign-ins of 1.4 MiB",
      signIn(`Content-Length: ${1.4 * mebibyte}`),
      "x".repeat(mebibyte)
    ),
    scenario(
      "sign-ins in 16,000 chunks of one byte",
      signIn("Transfer-Encoding: chunked"),
      tinyChunks
    ),
    scenario("saves of 1 MiB", put, `{"data":"${"x".repeat(mebibyte - 100)}`)
  ]
}

async function guestsOf({ signIn }: Bench): Promise<(index: number) => Guest> {
  const guests = await Promise.all(Array.from({ length: players }, signIn))
  return (index) => guests[index % guests.length] ?? { token: "", headers: {} }
}

/** Readers of a save: those who read it, and those who do not. */
export const slowReaders = (load: Load): Scenario => ({
  name: `${load.connections} readers of a save of 256 KiB, ${load.rate} a second`,
  gather: async (bench) => {
    const guests = await guestsOf(bench)
    for (let n = 0; n < players; n++) await save(bench.service, guests(n), "read", readSaveBytes)
    const ask =
      (begin: (socket: Socket) => void): Act =>
      (socket, index) => {
        begin(socket)
        socket.write(head("GET", "/v1/saves/read", guests(index)))
      }
    return crowdOf(bench, load, [
      ["do not read", ask((socket) => socket.pause())],
      ["read", ask((socket) => socket.resume())]
    ])
  }
})
