/** The clients of the data benchmark, in a process of their own. */
import * as Schema from "effect/Schema"
import { Target } from "../wire/protocol.ts"
import { Quantiles, quantilesOf } from "../many/figures.ts"
import { busyPercent, inFlight } from "../many/pace.ts"
import { obey } from "../many/worker.ts"
import { Connection, requestBytes } from "./connection.ts"

/**
 * What is asked; each client by itself, as fast as it is answered. For `signed guest` the bare handlers
 * make the same tokens as the service, for `guest` none.
 */
export const operations = ["guest", "signed guest", "save", "load", "stats"] as const
export type Operation = (typeof operations)[number]

export const Command = Schema.Union([
  /** Signs so many guests in; the requests of the operations are theirs. */
  Schema.Struct({ t: Schema.Literal("gather"), target: Target, players: Schema.Int }),
  Schema.Struct({
    t: Schema.Literal("drive"),
    operation: Schema.Literals(operations),
    connections: Schema.Int,
    seconds: Schema.Number
  })
])
export type Command = typeof Command.Type

export const Done = Schema.Struct({})

/** Times in milliseconds. */
export const Driven = Schema.Struct({
  requests: Schema.Int,
  seconds: Schema.Number,
  latency: Quantiles,
  busyPercent: Schema.Number
})
export type Driven = typeof Driven.Type

const statsPerReport = 8
const savesPerPlayer = 4

/** About a kilobyte: what a small game remembers. */
const saveData = {
  level: 12,
  position: { x: 103.25, y: -4.5, z: 77 },
  inventory: Array.from({ length: 24 }, (_, slot) => ({ slot, item: `item-${slot}`, count: slot }))
}

const saveBody = JSON.stringify({ data: saveData })

const statsBody = JSON.stringify({
  stats: Object.fromEntries(
    Array.from({ length: statsPerReport }, (_, index) => [`stat_${index}`, index + 0.5])
  )
})

const decodeSession = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ accessToken: Schema.String }))
)

let url = ""
let requests: Readonly<Record<Operation, ReadonlyArray<Buffer>>> = {
  guest: [],
  "signed guest": [],
  save: [],
  load: [],
  stats: []
}

async function gather(target: typeof Target.Type, players: number): Promise<void> {
  url = target.url
  const key = { "x-svc-key": target.key }
  const guest = requestBytes("POST", "/v1/auth/guest", key, "{}")
  const tokens: Array<string> = []
  const connection = await Connection.open(url)
  await inFlight(players, 1, async () => {
    tokens.push(decodeSession(await connection.exchange(guest)).accessToken)
  })
  connection.close()
  const headers = tokens.map((token) => ({ ...key, authorization: `Bearer ${token}` }))
  const ofSaves = (method: string, body: string) =>
    Array.from({ length: savesPerPlayer }).flatMap((_, slot) =>
      headers.map((its) => requestBytes(method, `/v1/saves/slot-${slot}`, its, body))
    )
  requests = {
    guest: [guest],
    "signed guest": [requestBytes("POST", "/v1/auth/guest", { ...key, "x-signed": "yes" }, "{}")],
    save: ofSaves("PUT", saveBody),
    load: ofSaves("GET", ""),
    stats: headers.map((its) => requestBytes("POST", "/v1/stats", its, statsBody))
  }
}

async function drive(operation: Operation, count: number, seconds: number): Promise<Driven> {
  const mine = requests[operation]
  const connections = await Promise.all(Array.from({ length: count }, () => Connection.open(url)))
  const latencies: Array<number> = []
  const started = performance.now()
  const until = started + seconds * 1000
  let next = 0
  const client = async (connection: Connection): Promise<void> => {
    while (performance.now() < until) {
      const request = mine[next++ % mine.length]
      if (request === undefined) throw new Error("nobody is there to ask")
      const sent = performance.now()
      await connection.exchange(request)
      latencies.push(performance.now() - sent)
    }
  }
  const busy = await busyPercent(async () => {
    await Promise.all(connections.map(client))
  })
  const took = (performance.now() - started) / 1000
  for (const connection of connections) connection.close()
  return {
    requests: latencies.length,
    seconds: took,
    latency: quantilesOf(latencies),
    busyPercent: busy
  }
}

const decodeCommand = Schema.decodeUnknownSync(Command)

if (import.meta.main) {
  obey(async (input) => {
    const command = decodeCommand(input)
    if (command.t === "drive") {
      return drive(command.operation, command.connections, command.seconds)
    }
    await gather(command.target, command.players)
    return {}
  })
}
