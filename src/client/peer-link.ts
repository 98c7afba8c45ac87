/**
 * The data channels between this player and one other member. The player with the lower id makes the
 * offers; the other asks for one with `restart`. Each attempt has a connection and a number of its own,
 * by which late signals of an earlier one are ignored.
 */
import type { FramePayload } from "./frames.ts"
import type {
  DataChannelLike,
  PeerConnectionClass,
  PeerConnectionLike,
  PeerDescription,
  RtcServers
} from "./peer-connection.ts"
import type { PeerRoute } from "./room.ts"
import type { Timers } from "./timers.ts"
import type { RoomEvent } from "./wire.ts"

export type Signal = Extract<RoomEvent, { readonly t: "signal" }>

/** Timeout of an attempt: from the first signal to open channels. */
const attemptMillis = 15_000
/** A connection that has lost its path may find it again for this long. */
const disconnectedMillis = 5000
/** Shortest time between two attempts, which the other member can ask for. */
const betweenAttemptsMillis = 500
const firstRetryMillis = 1000
/** Further attempts after failures. Then the link waits until the other member begins. */
const retriesMax = 6
/** Bytes that may wait to be sent on a channel. */
const unsentMaxBytes = 1024 * 1024
/** Candidates that may arrive before the description of their attempt. */
const earlyCandidatesMax = 64

export interface LinkOptions {
  readonly isCaller: boolean
  readonly timers: Timers
  readonly RTCPeerConnection: PeerConnectionClass
  readonly servers: () => Promise<RtcServers>
  readonly signal: (step: Omit<FramePayload<"signal">, "to">) => Promise<unknown>
  readonly received: (text: string) => void
  readonly routed: (route: PeerRoute) => void
  readonly log: (...parts: ReadonlyArray<unknown>) => void
}

interface Attempt {
  readonly gen: number
  readonly connection: PeerConnectionLike
  readonly reliable: DataChannelLike
  readonly fast: DataChannelLike
  isDescribed: boolean
}

// The client's own check would make a bundler split a file that every game loads.
const isObject = (data: unknown): data is object => typeof data === "object" && data !== null

const descriptionOf = (data: unknown, type: PeerDescription["type"]): PeerDescription => {
  const sdp = isObject(data) && "sdp" in data ? data.sdp : undefined
  return { type, sdp: typeof sdp === "string" ? sdp : "" }
}

export class PeerLink {
  readonly #options: LinkOptions
  #attempt: Attempt | undefined
  #route: PeerRoute = "server"
  readonly #early: Array<{ readonly gen: number; readonly data: object }> = []
  #gen = 0
  #retries = 0
  #begunAt = -Infinity
  #cancelTimer: () => void = () => undefined
  /** Steps of the connection, one after the other. */
  #steps: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(options: LinkOptions) {
    this.#options = options
  }

  get route(): PeerRoute {
    return this.#route
  }

  /**
   * Starts the exchange, unless the channels are open. The caller offers, the other member asks for
   * an offer.
   */
  begin(): void {
    if (this.#route === "direct") return
    this.#retries = 0
    this.#soon(() => this.#begin())
  }

  receive({ data, gen = 0, kind }: Signal): void {
    const { isCaller } = this.#options
    if (kind === "restart" && isCaller) {
      this.#retries = 0
      this.#soon(() => this.#begin())
    }
    if (kind === "offer" && !isCaller) {
      this.#retries = 0
      this.#soon(() => this.#step(() => this.#accept(gen, descriptionOf(data, "offer"))))
    }
    if (kind === "answer" && isCaller) {
      this.#step(() => this.#describe(gen, descriptionOf(data, "answer")))
    }
    if (kind === "candidate" && isObject(data)) this.#step(() => this.#addCandidate(gen, data))
  }

  /** Sends over an open channel. False if there is none. */
  send(text: string, isReliable: boolean): boolean {
    const attempt = this.#attempt
    if (this.#route !== "direct" || attempt === undefined) return false
    const channel = isReliable ? attempt.reliable : attempt.fast
    if (channel.bufferedAmount > unsentMaxBytes) return !isReliable
    try {
      channel.send(text)
      return true
    } catch (error) {
      this.#options.log("peer", error)
      return false
    }
  }

  close(): void {
    this.#isClosed = true
    this.#end()
  }

  /** Runs now, or a moment after the last attempt. A later call replaces an earlier one. */
  #soon(run: () => void): void {
    if (this.#isClosed) return
    const { timers } = this.#options
    const wait = this.#begunAt + betweenAttemptsMillis - timers.elapsed()
    this.#cancelTimer()
    if (wait <= 0) run()
    else this.#cancelTimer = timers.after(wait, run)
  }

  #begin(): void {
    const { isCaller, signal } = this.#options
    this.#step(async () => {
      if (isCaller) return this.#offer()
      this.#started()
      await signal({ kind: "restart" })
    })
  }

  /** Runs a step of the current attempt. An error fails the attempt. */
  #step(run: () => Promise<void>): void {
    this.#steps = this.#steps.then(async () => {
      if (this.#isClosed) return
      try {
        await run()
      } catch (error) {
        this.#options.log("peer", error)
        this.#failed()
      }
    })
  }

  async #offer(): Promise<void> {
    this.#gen = Math.max(this.#gen + 1, this.#options.timers.now())
    const { connection, gen } = await this.#open(this.#gen)
    const offer = await connection.createOffer()
    await connection.setLocalDescription(offer)
    await this.#options.signal({ kind: "offer", data: { sdp: offer.sdp ?? "" }, gen })
  }

  async #accept(gen: number, offer: PeerDescription): Promise<void> {
    const { connection } = await this.#open(gen)
    await this.#describe(gen, offer)
    const answer = await connection.createAnswer()
    await connection.setLocalDescription(answer)
    await this.#options.signal({ kind: "answer", data: { sdp: answer.sdp ?? "" }, gen })
  }

  /** Closes the previous attempt, and opens a connection with both channels. */
  async #open(gen: number): Promise<Attempt> {
    const { RTCPeerConnection, servers, signal } = this.#options
    this.#started()
    const connection = new RTCPeerConnection(await servers())
    const attempt: Attempt = {
      gen,
      connection,
      reliable: connection.createDataChannel("reliable", { negotiated: true, id: 0 }),
      fast: connection.createDataChannel("fast", {
        negotiated: true,
        id: 1,
        ordered: false,
        maxRetransmits: 0
      }),
      isDescribed: false
    }
    this.#attempt = attempt
    this.#follow(attempt)
    connection.addEventListener("icecandidate", ({ candidate }) => {
      if (candidate === null || candidate === undefined) return
      signal({ kind: "candidate", data: candidate.toJSON(), gen }).catch(() => undefined)
    })
    return attempt
  }

  /** Handles the state changes of an attempt. */
  #follow(attempt: Attempt): void {
    const { connection, fast, reliable } = attempt
    const ifCurrent = (run: () => void) => () => {
      if (attempt === this.#attempt && !this.#isClosed) run()
    }
    const opened = ifCurrent(() => {
      if (reliable.readyState !== "open" || fast.readyState !== "open") return
      this.#retries = 0
      this.#cancelTimer()
      this.#setRoute("direct")
    })
    const lost = ifCurrent(() => this.#failed())
    for (const channel of [reliable, fast]) {
      channel.addEventListener("open", opened)
      channel.addEventListener("close", lost)
      channel.addEventListener("message", ({ data }) => {
        if (attempt === this.#attempt && typeof data === "string") this.#options.received(data)
      })
    }
    const changed = ifCurrent(() => {
      const state = connection.connectionState
      if (state === "failed" || state === "closed") this.#failed()
      if (state !== "disconnected") return
      const check = ifCurrent(() => {
        if (connection.connectionState === "disconnected") this.#failed()
      })
      this.#options.timers.after(disconnectedMillis, check)
    })
    connection.addEventListener("connectionstatechange", changed)
  }

  async #describe(gen: number, description: PeerDescription): Promise<void> {
    const attempt = this.#attempt
    if (attempt?.gen !== gen || attempt.isDescribed) return
    attempt.isDescribed = true
    await attempt.connection.setRemoteDescription(description)
    const early = this.#early.splice(0).filter((candidate) => candidate.gen === gen)
    for (const { data } of early) await this.#addCandidate(gen, data)
  }

  async #addCandidate(gen: number, data: object): Promise<void> {
    const attempt = this.#attempt
    if (attempt?.gen !== gen || !attempt.isDescribed) {
      if (this.#early.length < earlyCandidatesMax) this.#early.push({ gen, data })
      return
    }
    // A candidate that this platform cannot use is no failure: others follow.
    await attempt.connection.addIceCandidate(data).catch((error: unknown) => {
      this.#options.log("peer", error)
    })
  }

  /** An attempt begins: it ends the one before, and has limited time. */
  #started(): void {
    const { timers } = this.#options
    this.#end()
    this.#begunAt = timers.elapsed()
    this.#cancelTimer = timers.after(attemptMillis, () => this.#failed())
  }

  /** Tries again later, a few times. */
  #failed(): void {
    if (this.#isClosed) return
    this.#end()
    if (this.#retries >= retriesMax) return
    const { timers } = this.#options
    const ceiling = firstRetryMillis * 2 ** this.#retries
    this.#retries += 1
    const delay = ceiling * (0.5 + timers.random() / 2)
    this.#cancelTimer = timers.after(delay, () => this.#begin())
  }

  #end(): void {
    this.#cancelTimer()
    const attempt = this.#attempt
    this.#attempt = undefined
    attempt?.connection.close()
    this.#setRoute("server")
  }

  #setRoute(route: PeerRoute): void {
    if (this.#route === route) return
    this.#route = route
    this.#options.routed(route)
  }
}
