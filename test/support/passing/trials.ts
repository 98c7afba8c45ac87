/** Clients of a function that go away, stall, half-close or reset at a chosen point of a call. */
import { setTimeout as pause } from "node:timers/promises"
import type { TestPlayer } from "#testing/players"
import type { Chance } from "../../simulation/random.ts"
import { responsesIn, Wire } from "../http/wire.ts"
import type { Way } from "./recorded-function.ts"

const kinds = ["call", "upload", "download", "socket"] as const

/** Moments at which a client strikes. */
const points = ["sent part", "waited", "head", "body", "end"] as const

const acts = [
  "close",
  "reset",
  "half-close",
  "stall",
  "stall and go on",
  "garbage",
  "none"
] as const

export interface Trial {
  /** Name of the call, which no other has. */
  readonly call: string
  readonly way: Way
  readonly kind: (typeof kinds)[number]
  readonly route: string
  readonly player: TestPlayer | undefined
  /** What the client sends, as latin1. */
  readonly bytes: string
  readonly point: (typeof points)[number]
  /** Share of the bytes that is sent before the act. */
  readonly share: number
  /** Milliseconds from the bytes to the act, and of a stall. */
  readonly waitMillis: number
  readonly stallMillis: number
  readonly act: (typeof acts)[number]
}

const routes: Readonly<Record<Trial["kind"], ReadonlyArray<string>>> = {
  call: ["call", "slow", "slow"],
  upload: ["upload", "early", "back"],
  download: ["drip", "flood"],
  socket: ["echo", "push", "refused"]
}

const handshake = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Version: 13"
]

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

/** Headers of framing, and a body. */
const bodyOf = (kind: Trial["kind"], chance: Chance): readonly [ReadonlyArray<string>, string] => {
  if (kind === "socket") return [handshake, ""]
  if (kind !== "upload") return [[], ""]
  const text = "b".repeat(Math.trunc(10 ** (1 + chance.fraction() * 5.2)))
  return chance.happens(0.5)
    ? [[`Content-Length: ${text.length}`], text]
    : [["Transfer-Encoding: chunked"], `${chunk(text.slice(0, 9))}${chunk(`c${text}`)}0\r\n\r\n`]
}

/** Milliseconds between almost none and the most, short ones as likely as long ones. */
const spread = (chance: Chance, max: number): number => 0.5 * (max * 2) ** chance.fraction()

export interface TrialWorld {
  readonly ways: ReadonlyArray<Way>
  readonly players: ReadonlyArray<TestPlayer>
  /** Longest wait before an act, in milliseconds. */
  readonly waitMillis: number
}

export const makeTrial = (
  call: string,
  chance: Chance,
  { players, waitMillis, ways }: TrialWorld
): Trial => {
  const way = chance.pick(ways)
  if (way === undefined) throw new Error("There is no way to the function.")
  const kind = chance.pick(kinds) ?? "call"
  const route = chance.pick(routes[kind]) ?? "call"
  const player = chance.happens(0.7) ? chance.pick(players) : undefined
  const [lines, body] = bodyOf(kind, chance)
  const head = [
    `${kind === "upload" ? "POST" : "GET"} ${way.path}/${route}/${call} HTTP/1.1`,
    `Host: ${way.host}`,
    ...(player === undefined ? [] : [`Authorization: Bearer ${player.accessToken}`]),
    ...(kind === "upload" && chance.happens(0.2) ? ["Expect: 100-continue"] : []),
    ...lines
  ]
  return {
    call,
    way,
    kind,
    route,
    player,
    bytes: `${head.join("\r\n")}\r\n\r\n${body}`,
    point: chance.pick(points) ?? "waited",
    share: chance.fraction(),
    waitMillis: spread(chance, waitMillis),
    stallMillis: spread(chance, 300),
    act: chance.pick(acts) ?? "close"
  }
}

export const nameOf = ({ act, call, kind, point, route, share, way, ...trial }: Trial): string =>
  `${call}: ${kind} ${route} at ${way.name}, ${act} after ${point} ` +
  `(${share.toFixed(2)}, ${trial.waitMillis.toFixed(1)} ms, stall ${trial.stallMillis.toFixed(0)} ms)`

/** Longest time that a client waits for a point, and a half-closed connection stays open. */
const patienceMillis = 40_000

/** A masked text frame. */
const frame = "\x81\x85\x01\x02\x03\x04igohn"

/** Sends the bytes and waits for the point. */
const approach = async (wire: Wire, trial: Trial): Promise<void> => {
  const { bytes, point, share, waitMillis } = trial
  const responses = () => responsesIn(wire.received, [])
  const upTo = point === "sent part" ? Math.trunc(bytes.length * share) : bytes.length
  wire.send(bytes.slice(0, upTo))
  if (point === "sent part" || point === "waited") return pause(waitMillis)
  const reached = {
    head: () => wire.received.includes("\r\n\r\n"),
    body: () => (responses()[0]?.body ?? "") !== "" || responses()[0]?.status === 101,
    end: () => responses()[0]?.isWhole === true
  }[point]
  await wire.until(reached, patienceMillis)
  if (trial.kind === "socket" && responses()[0]?.status === 101) {
    wire.send(frame.repeat(3))
    await pause(waitMillis / 4)
  } else if (point === "end") {
    // The connection is free for another request.
    wire.send(bytes.slice(0, Math.trunc(bytes.length * share)))
    await pause(waitMillis / 4)
  }
}

/** What went wrong on the connection of a trial. */
const strike = async (
  wire: Wire,
  { act, bytes, stallMillis }: Trial
): Promise<string | undefined> => {
  const { socket } = wire
  switch (act) {
    case "close":
      socket.destroy()
      return undefined
    case "reset":
      socket.resetAndDestroy()
      return undefined
    case "half-close":
      return (await wire.end(patienceMillis)) ? undefined : "a half-closed connection stays open"
    case "stall":
    case "stall and go on":
      socket.pause()
      await pause(stallMillis)
      socket.resume()
      if (act === "stall and go on") await pause(stallMillis)
      return undefined
    case "garbage":
      wire.send(`\0\xff${bytes.slice(7, 40)}\r\n\r\n`.repeat(20))
      await pause(stallMillis / 10)
      return undefined
    case "none":
      return undefined
  }
}

/** Returns whose response a client got that is not its own. */
const foreignResponse = ({ received }: Wire, { call, player }: Trial): string | undefined => {
  const foreign = responsesIn(received, []).find(
    ({ headers }) =>
      headers.has("x-call") &&
      (headers.get("x-call") !== call || headers.get("x-player") !== (player?.id ?? "null"))
  )
  return foreign === undefined ? undefined : `gets the response of ${foreign.headers.get("x-call")}`
}

/** Runs a trial; returns what went wrong on its connection. The connection is closed afterwards. */
export const runTrial = async (trial: Trial): Promise<ReadonlyArray<string>> => {
  const wire = new Wire(trial.way.url)
  await approach(wire, trial)
  const faults = [await strike(wire, trial), foreignResponse(wire, trial)]
  wire.socket.destroy()
  await wire.closed
  return faults.flatMap((fault) => (fault === undefined ? [] : [`${nameOf(trial)}: ${fault}`]))
}
