/**
 * One socket of a frame storm, from its first frame to its end: it comes in as somebody, says frames
 * faster than it listens, now and then waits until everything is answered, and goes, gently or not.
 */
import { type RawData, WebSocket } from "ws"
import type { Chance } from "../simulation/random.ts"
import type { Findings } from "./findings.ts"
import { closings, faultOf, frameOf, type Said } from "./frames.ts"
import { text } from "./hostile.ts"
import type { Suggestions } from "./suggestions.ts"

/** Where the storm rages. */
export interface Shore {
  readonly socketUrl: string
  readonly publishableKey: string
  readonly chance: Chance
  readonly suggestions: Suggestions
  readonly findings: Findings
}

const patienceMillis = 15_000
const lastMax = 20

const parse = (data: string): unknown => {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}

const textOf = (data: RawData): string => (Buffer.isBuffer(data) ? data.toString() : String(data))

/** Events that tell of ids that other frames can name. */
const telling = /^\{"t":"(?:room_joined|channel_joined|player_joined|reply)"/

export class Session {
  readonly #shore: Shore
  readonly #ws: WebSocket
  /** Types of the frames that were said, by what their replies carry. */
  readonly #asked = new Map<string, string>()
  /** Those that have to be answered yet. */
  readonly #owed = new Set<string>()
  readonly #last: Array<string> = []
  readonly #closed: Promise<void>
  #welcomed: () => void = () => undefined
  #settled: () => void = () => undefined
  #said = 0
  #syncs = 0
  #isClosed = false
  /** Our side has ended it, in a way that has no answer. */
  #cut = false

  constructor(shore: Shore) {
    this.#shore = shore
    const origin = shore.chance.happens(0.1) ? { origin: "https://game.example" } : {}
    this.#ws = new WebSocket(shore.socketUrl, { ...origin, perMessageDeflate: false })
    this.#ws.on("message", (data) => this.#hear(textOf(data)))
    this.#ws.on("error", (error) => this.#last.push(`error ${error.message}`))
    this.#closed = new Promise((resolve) => {
      this.#ws.on("close", (code, reason) => {
        this.#isClosed = true
        this.#last.push(`closed ${code} ${String(reason)}`)
        if (!closings.has(code) && !this.#cut) this.#find(`a socket is closed with ${code}`)
        resolve()
      })
    })
  }

  /** Says at most so many frames as the holder of a token, or as nobody; answers how many it said. */
  async play(token: string | undefined, frames: number): Promise<number> {
    await this.#within("to open", new Promise((resolve) => void this.#ws.once("open", resolve)))
    await this.#comeIn(token)
    while (this.#said < frames && !this.#isClosed) {
      for (let left = this.#shore.chance.integer(1, 24); left > 0; left--) this.#sayOne()
      await this.#settle()
    }
    await this.#go()
    return this.#said
  }

  async #comeIn(token: string | undefined): Promise<void> {
    const { chance, publishableKey: key } = this.#shore
    const welcomed = new Promise<void>((resolve) => (this.#welcomed = resolve))
    const frame = token === undefined ? { t: "auth", key, anon: true } : { t: "auth", key, token }
    const die = chance.fraction()
    if (die < 0.02) this.#send(text(chance))
    else if (die < 0.04) this.#send(JSON.stringify({ ...frame, key: text(chance) }))
    else this.#send(JSON.stringify(frame))
    // Not everybody waits to be welcomed.
    const early = die > 0.9 ? chance.integer(1, die > 0.98 ? 60 : 12) : 0
    for (let i = 0; i < early; i++) this.#sayOne()
    await this.#within("to be welcomed", welcomed)
  }

  #sayOne(): void {
    const { chance, suggestions } = this.#shore
    const said = frameOf(chance, suggestions.suggest, this.#said)
    if (said.rid !== undefined) {
      this.#asked.set(said.rid, said.t)
      // A ticket may wait for longer than we do.
      if (said.t !== "quickMatch") this.#owed.add(said.rid)
    }
    this.#sendFrame(said)
  }

  #sendFrame({ binary, data, pieces }: Said): void {
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
    this.#said += 1
    this.#last.push(`> ${String(data).slice(0, 300)}`)
    if (this.#last.length > lastMax) this.#last.shift()
  }

  /** Waits until everything is answered, or the socket closed. */
  async #settle(): Promise<void> {
    if (this.#isClosed) return
    const rid = `sync${(this.#syncs += 1)}`
    this.#asked.set(rid, "ping")
    this.#owed.add(rid)
    const settled = new Promise<void>((resolve) => (this.#settled = resolve))
    this.#send(JSON.stringify({ t: "ping", rid }))
    await this.#within("for an answer", settled, () =>
      Array.from(this.#owed, (it) => `${this.#asked.get(it)}`).join(" ")
    )
    this.#owed.clear()
  }

  #hear(data: string): void {
    this.#last.push(`< ${data.slice(0, 300)}`)
    if (this.#last.length > lastMax) this.#last.shift()
    const heard = parse(data)
    const fault = faultOf(heard, (rid) => this.#asked.get(rid))
    if (fault !== undefined) this.#find(fault)
    if (telling.test(data)) this.#shore.suggestions.learnFrom(heard)
    if (data.startsWith('{"t":"welcome"')) this.#welcomed()
    const [, rid] = /^\{"t":"reply","rid":"([^"]*)"/.exec(data) ?? []
    if (rid === undefined) return
    this.#owed.delete(rid)
    if (this.#owed.size === 0) this.#settled()
  }

  async #go(): Promise<void> {
    const { chance } = this.#shore
    this.#cut = true
    if (chance.happens(0.3)) this.#ws.terminate()
    else this.#ws.close(chance.pick([1000, 1001, 3000, 4999]) ?? 1000)
    await this.#within("to close", this.#closed)
  }

  /** Waits for something, for the end of the socket, or until it has waited for too long. */
  async #within(what: string, done: Promise<unknown>, who = (): string => ""): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#find(`waited too long ${what} ${who()}`)
        this.#cut = true
        this.#ws.terminate()
        resolve()
      }, patienceMillis)
    })
    await Promise.race([done, this.#closed, late])
    clearTimeout(timer)
  }

  #find(what: string): void {
    this.#shore.findings.add(what, this.#last.join("\n"))
  }
}
