/**
 * The network between runners: in-memory sockets under the RPC protocol of Effect Cluster. Bytes arrive
 * in order after a delay. A connection can be cut (both ends notice) or silently drop everything until
 * it heals. A killed process leaves its peers with a closed socket, or with silence.
 */
import { Effect, Layer, Latch } from "effect"
import { Runners, type RunnerAddress } from "effect/cluster"
import { NetAddress } from "effect/net"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { Socket, SocketServer } from "effect/socket"
import { formatAddress } from "#server/cluster/runner-address"
import { rpcPings } from "#server/cluster/runner-client"
import type { Chance } from "./random.ts"
import type { Process, Simulator } from "./simulator.ts"

type Chunk = Uint8Array | string
type Read = Effect.Effect<readonly [Chunk, ...Array<Chunk>], Socket.SocketError>

const openMillis = 1000

const broken = (text: string) =>
  new Socket.SocketError({ reason: new Socket.SocketReadError({ cause: new Error(text) }) })

const notOpened = (kind: "Unknown" | "Timeout", text: string) =>
  new Socket.SocketError({ reason: new Socket.SocketOpenError({ kind, cause: new Error(text) }) })

/** One end of a connection. */
class End {
  readonly process: Process
  readonly #network: Network
  peer: End | undefined
  #inbox: Array<Chunk> = []
  #waiter: ((read: Read) => void) | undefined
  #error: Socket.SocketError | undefined
  /** Bytes in flight to this end, in order. */
  #lastArrival = 0

  constructor(process: Process, network: Network) {
    this.process = process
    this.#network = network
  }

  get open(): boolean {
    return this.#error === undefined
  }

  /** The other end sends a chunk to this one. */
  arrive(happen: () => void): void {
    const { simulator } = this.process
    const delay = this.#network.delay()
    this.#lastArrival = Math.max(this.#lastArrival, simulator.now + delay)
    const from = this.peer?.process
    const land = (): void => {
      if (from !== undefined && this.#network.isCut(from, this.process)) {
        this.#network.whenHealed(land)
      } else {
        this.process.enqueue(happen)
      }
    }
    simulator.after(this.#lastArrival - simulator.now, land)
  }

  receive(chunk: Chunk): void {
    if (!this.open) return
    this.#inbox.push(chunk)
    this.#drain()
  }

  fail(error: Socket.SocketError): void {
    this.#error ??= error
    this.#drain()
  }

  /** Closes this end; the other end sees the close. */
  close(): void {
    if (!this.open) return
    this.fail(broken("closed here"))
    this.peer?.arrive(() => this.peer?.fail(broken("closed by peer")))
  }

  #drain(): void {
    const waiter = this.#waiter
    if (waiter === undefined) return
    const [first, ...rest] = this.#inbox
    if (first !== undefined) {
      this.#inbox = []
      this.#waiter = undefined
      waiter(Effect.succeed([first, ...rest]))
    } else if (this.#error !== undefined) {
      this.#waiter = undefined
      waiter(Effect.fail(this.#error))
    }
  }

  readonly pull: Read = Effect.callback((resume) => {
    this.#waiter = resume
    this.#drain()
    return Effect.sync(() => {
      if (this.#waiter === resume) this.#waiter = undefined
    })
  })

  write(chunk: Chunk | Socket.CloseEvent): Effect.Effect<void, Socket.SocketError> {
    return Effect.suspend(() => {
      if (!this.open) return Effect.fail(broken("written to a closed socket"))
      if (Socket.isCloseEvent(chunk)) this.close()
      else this.peer?.arrive(() => this.peer?.receive(chunk))
      return Effect.void
    })
  }
}

const reading = (end: End): Socket.Reader => ({
  pull: end.pull,
  upgrade: Socket.SocketUpgradeError.unsupported
})

const writing = (end: Effect.Effect<End>): Socket.Writer => ({
  write: (chunk) => Effect.flatMap(end, (open) => open.write(chunk)),
  writeAll: (chunks) =>
    Effect.flatMap(end, (open) =>
      Effect.forEach(chunks, (chunk) => open.write(chunk), { discard: true })
    )
})

interface Listener {
  readonly process: Process
  readonly accept: (end: End) => void
}

export class Network {
  readonly #simulator: Simulator
  readonly #chance: Chance
  readonly #listeners = new Map<string, Listener>()
  readonly #ends = new Set<End>()
  readonly #cuts = new Set<string>()
  readonly #refusals = new Set<string>()
  /** Processes whose whole machine is lost. */
  readonly #silent = new Set<Process>()
  #held: Array<() => void> = []

  constructor(simulator: Simulator, chance: Chance) {
    this.#simulator = simulator
    this.#chance = chance
  }

  /** Latency of a chunk, in milliseconds. */
  delay(): number {
    return this.#chance.happens(0.02) ? this.#chance.integer(5, 60) : this.#chance.fraction() * 2
  }

  isCut(a: Process, b: Process): boolean {
    return this.#cuts.has(`${a.name} ${b.name}`)
  }

  /** Drops everything between two processes in both directions, without closing connections. */
  cut(a: Process, b: Process): void {
    this.#cuts.add(`${a.name} ${b.name}`).add(`${b.name} ${a.name}`)
  }

  /** Drops everything from one process to another; the other direction works. */
  cutOneWay(from: Process, to: Process): void {
    this.#cuts.add(`${from.name} ${to.name}`)
  }

  /** Refuses connections from one process to another, and resets those between them. */
  refuse(from: Process, to: Process): void {
    this.#refusals.add(`${from.name} ${to.name}`)
    this.reset(from, to)
  }

  /** Heals all partitions; chunks in flight arrive. */
  heal(): void {
    this.#cuts.clear()
    this.#refusals.clear()
    const held = this.#held
    this.#held = []
    for (const land of held) land()
  }

  whenHealed(land: () => void): void {
    this.#held.push(land)
  }

  /** Closes every connection between two processes; chunks in flight are lost. */
  reset(a: Process, b: Process): void {
    for (const end of this.#ends) {
      const other = end.peer?.process
      if (!((end.process === a && other === b) || (end.process === b && other === a))) continue
      end.process.enqueue(() => end.fail(broken("connection reset")))
    }
  }

  /** Ends a process: its peers see closed connections, unless the whole machine is lost. */
  gone(process: Process, silently: boolean): void {
    if (silently) this.#silent.add(process)
    for (const end of this.#ends) {
      if (end.process !== process) continue
      this.#ends.delete(end)
      if (!silently) end.peer?.arrive(() => end.peer?.fail(broken("connection reset")))
    }
  }

  /** A connection attempt gets no answer. */
  #ignores(process: Process, from: Process): boolean {
    return this.#silent.has(process) || this.isCut(from, process) || this.isCut(process, from)
  }

  #refuses(process: Process, from: Process): boolean {
    return process.state === "dead" || this.#refusals.has(`${from.name} ${process.name}`)
  }

  #connect(from: Process, address: string): Effect.Effect<End, Socket.SocketError> {
    return Effect.callback<End, Socket.SocketError>((resume) => {
      const answer = (millis: number, happen: () => void): void => {
        this.#simulator.after(millis, happen, { process: from })
      }
      const listener = this.#listeners.get(address)
      if (listener !== undefined && this.#ignores(listener.process, from)) {
        return answer(openMillis, () => resume(Effect.fail(notOpened("Timeout", "no answer"))))
      }
      if (listener === undefined || this.#refuses(listener.process, from)) {
        return answer(1, () => resume(Effect.fail(notOpened("Unknown", "refused"))))
      }
      const near = new End(from, this)
      const far = new End(listener.process, this)
      near.peer = far
      far.peer = near
      this.#ends.add(near).add(far)
      far.arrive(() => listener.accept(far))
      answer(this.delay(), () => resume(Effect.succeed(near)))
    })
  }

  /** A socket that opens a connection whenever it is read. */
  socket(from: Process, address: string): Socket.Socket {
    const opened = Latch.makeUnsafe(false)
    let current: End | undefined
    const reader = Effect.acquireRelease(this.#connect(from, address), (end) =>
      Effect.sync(() => {
        end.close()
        this.#ends.delete(end)
        opened.closeUnsafe()
        current = undefined
      })
    ).pipe(
      Effect.map((end) => {
        current = end
        opened.openUnsafe()
        return reading(end)
      })
    )
    const end: Effect.Effect<End> = Effect.flatMap(opened.await, () =>
      current === undefined ? Effect.suspend(() => end) : Effect.succeed(current)
    )
    return Socket.make({ reader, writer: Effect.succeed(writing(end)) })
  }

  /** The listening side of a process at an address. */
  server(process: Process, address: string): SocketServer.SocketServer["Service"] {
    return {
      address: NetAddress.unixPathAddress(address),
      run: <R, E, A>(handler: (socket: Socket.Socket) => Effect.Effect<A, E, R>) =>
        Effect.gen({ self: this }, function* () {
          const runFork = Effect.runForkWith(yield* Effect.context<R>())
          const accept = (end: End): void => {
            const socket = Socket.make({
              reader: Effect.succeed(reading(end)),
              writer: Effect.succeed(writing(Effect.succeed(end)))
            })
            runFork(
              Effect.ensuring(
                handler(socket),
                Effect.sync(() => end.close())
              )
            )
          }
          this.#listeners.set(address, { process, accept })
          return yield* Effect.never
        })
    }
  }
}

/** The connections of a runner, outgoing and incoming. */
export const transport = (network: Network, process: Process, self: RunnerAddress.RunnerAddress) =>
  Layer.mergeAll(
    Layer.succeed(SocketServer.SocketServer, network.server(process, formatAddress(self))),
    Layer.effect(
      Runners.RpcClientProtocol,
      Effect.gen(function* () {
        const serialization = yield* RpcSerialization.RpcSerialization
        return {
          codecFor: serialization.codecFor,
          make: (address: RunnerAddress.RunnerAddress) =>
            RpcClient.makeProtocolSocket(rpcPings).pipe(
              Effect.provideService(Socket.Socket, network.socket(process, formatAddress(address))),
              Effect.provideService(RpcSerialization.RpcSerialization, serialization)
            )
        }
      })
    )
  )
