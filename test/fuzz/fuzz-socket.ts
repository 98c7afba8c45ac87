/**
 * One fuzzed socket: authenticates, sends bursts of frames, waits for the replies after each burst, and
 * closes or terminates.
 */
import { type RawData, WebSocket } from "ws"
import type { Chance } from "../simulation/random.ts"
import type { Findings } from "./findings.ts"
import { expectedCloseCodes, faultOf, randomFrame, type FuzzFrame } from "./random-frames.ts"
import { hostileText } from "./hostile-values.ts"
import type { Suggestions } from "./suggestions.ts"

/** What a fuzzed socket needs. */
export interface SessionOptions {
  readonly socketUrl: string
  readonly publishableKey: string
  readonly chance: Chance
  readonly suggestions: Suggestions
  readonly findings: Findings
}

const timeoutMillis = 15_000
const lastMax = 20

const parse = (data: string): unknown => {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}

const rawText = (data: RawData): string => (Buffer.isBuffer(data) ? data.toString() : String(data))

/** Events with ids that later frames can use. */
const idBearingEvent = /^\{"t":"(?:room_joined|channel_joined|player_joined|reply)"/

export class FuzzSocket {
  readonly #options: SessionOptions
  readonly #ws: WebSocket
  /** Types of the sent frames by `rid`. */
  readonly #asked = new Map<string, string>()
  /** The `rid`s without a reply so far. */
  readonly #pending = new Set<string>()
  readonly #last: Array<string> = []
  readonly #closed: Promise<void>
  #welcomed: () => void = () => undefined
  #settled: () => void = () => undefined
  #sent = 0
  #syncs = 0
  #isClosed = false
  /** The client ended the socket. */
  #cut = false

  constructor(options: SessionOptions) {
    this.#options = options
    const origin = options.chance.happens(0.1) ? { origin: "https://game.example" } : {}
    this.#ws = new WebSocket(options.socketUrl, { ...origin, perMessageDeflate: false })
    this.#ws.on("message", (data) => this.#receive(rawText(data)))
    this.#ws.on("error", (error) => this.#last.push(`error ${error.message}`))
    this.#closed = new Promise((resolve) => {
      this.#ws.on("close", (code, reason) => {
        this.#isClosed = true
        this.#last.push(`closed ${code} ${String(reason)}`)
        if (!expectedCloseCodes.has(code) && !this.#cut)
          this.#find(`a socket is closed with ${code}`)
        resolve()
      })
    })
  }

  /** Sends at most `frames` frames, anonymously without a token; returns how many it sent. */
  async run(token: string | undefined, frames: number): Promise<number> {
    await this.#within("to open", new Promise((resolve) => void this.#ws.once("open", resolve)))
    await this.#authenticate(token)
    while (this.#sent < frames && !this.#isClosed) {
      for (let left = this.#options.chance.integer(1, 24); left > 0; left--) this.#sendOne()
      await this.#sync()
    }
    await this.#close()
    return this.#sent
  }

  async #authenticate(token: string | undefined): Promise<void> {
    const { chance, publishableKey: key } = this.#options
    const welcomed = new Promise<void>((resolve) => (this.#welcomed = resolve))
    const frame = token === undefined ? { t: "auth", key, anon: true } : { t: "auth", key, token }
    const die = chance.fraction()
    if (die < 0.02) this.#send(hostileText(chance))
    else if (die < 0.04) this.#send(JSON.stringify({ ...frame, key: hostileText(chance) }))
    else this.#send(JSON.stringify(frame))
    // Some clients send frames before the welcome.
    const early = die > 0.9 ? chance.integer(1, die > 0.98 ? 60 : 12) : 0
    for (let i = 0; i < early; i++) this.#sendOne()
    await this.#within("to be welcomed", welcomed)
  }

  #sendOne(): void {
    const { chance, suggestions } = this.#options
    const frame = randomFrame(chance, suggestions.suggest, this.#sent)
    if (frame.rid !== undefined) {
      this.#asked.set(frame.rid, frame.t)
      // A ticket may wait longer than the time limit of this client.
      if (frame.t !== "quickMatch") this.#pending.add(frame.rid)
    }
    this.#sendFrame(frame)
  }

  #sendFrame({ binary, data, pieces }: FuzzFrame): void {
    if (pieces === 1) return this.#send(data, binary)
    const bytes = Buffer.from(data)
    const size = Math.ceil(bytes.length / pieces)
    for (let at = 0; at < bytes.length; at += size) {
      const fin = at + size >= bytes.length
      this.#ws.send(bytes.subarray(at, at + size), { binary, fin }, () => undefined)
    }
    this.#note(data)
  }

  #send(data: string | Buffer, binary = false): void {
    this.#ws.send(data, { binary }, () => undefined)
    this.#note(data)
  }

  #note(data: string | Buffer): void {
    this.#sent += 1
    this.#last.push(`> ${String(data).slice(0, 300)}`)
    if (this.#last.length > lastMax) this.#last.shift()
  }

  /** Waits until every frame has its reply, or the socket closes. */
  async #sync(): Promise<void> {
    if (this.#isClosed) return
    const rid = `sync${(this.#syncs += 1)}`
    this.#asked.set(rid, "ping")
    this.#pending.add(rid)
    const settled = new Promise<void>((resolve) => (this.#settled = resolve))
    this.#send(JSON.stringify({ t: "ping", rid }))
    await this.#within("for an answer", settled, () =>
      Array.from(this.#pending, (it) => `${this.#asked.get(it)}`).join(" ")
    )
    this.#pending.clear()
  }

  #receive(data: string): void {
    this.#last.push(`< ${data.slice(0, 300)}`)
    if (this.#last.length > lastMax) this.#last.shift()
    const received = parse(data)
    const fault = faultOf(received, (rid) => this.#asked.get(rid))
    if (fault !== undefined) this.#find(fault)
    if (idBearingEvent.test(data)) this.#options.suggestions.learnFrom(received)
    if (data.startsWith('{"t":"welcome"')) this.#welcomed()
    const [, rid] = /^\{"t":"reply","rid":"([^"]*)"/.exec(data) ?? []
    if (rid === undefined) return
    this.#pending.delete(rid)
    if (this.#pending.size === 0) this.#settled()
  }

  async #close(): Promise<void> {
    const { chance } = this.#options
    this.#cut = true
    if (chance.happens(0.3)) this.#ws.terminate()
    else this.#ws.close(chance.pick([1000, 1001, 3000, 4999]) ?? 1000)
    await this.#within("to close", this.#closed)
  }

  /** Waits for a promise, the end of the socket or the time limit, which is a finding. */
  async #within(what: string, done: Promise<unknown>, who = (): string => ""): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#find(`waited too long ${what} ${who()}`)
        this.#cut = true
        this.#ws.terminate()
        resolve()
      }, timeoutMillis)
    })
    await Promise.race([done, this.#closed, late])
    clearTimeout(timer)
  }

  #find(what: string): void {
    this.#options.findings.add(what, this.#last.join("\n"))
  }
}
